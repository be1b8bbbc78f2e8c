// Package sdk contains the SDKs, so that a new project builds with the one for this toolsrv, even before it is published.
package sdk

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"
)

// archive has what tool authors import, without tests and interpreters. TestArchive compares it with the tree. Its files are not compressed, so
// that git stores a change as a small difference. Packages of toolsrv are compressed anyway.
//
//go:embed sdk.zip
var archive string

// Files returns the files of one SDK. Its name is that of its folder in the source: go, rust, python or js.
func Files(name string) (fs.FS, error) {
	all, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("read the SDKs that toolsrv carries: %w", err)
	}
	if _, err := fs.Stat(all, name); err != nil {
		return nil, fmt.Errorf("read the SDKs that toolsrv carries: %w", err)
	}
	return fs.Sub(all, name)
}
