// Package sdk carries the SDKs, so that a new project builds with the one that fits this toolsrv, even before a registry has it.
package sdk

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"
)

// archive has what tool authors import, without tests and interpreters; TestArchive compares it with the tree. Its files are not compressed: git
// keeps a change of one as a small difference, and what a program is packed in compresses it all the same.
//
//go:embed sdk.zip
var archive string

// Files returns the files of one SDK. It is called as its folder in the source: go, rust, python or js.
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
