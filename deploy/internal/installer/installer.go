// Package installer makes the files that download, check and install the archives of a release: a script for POSIX shells, the formula of Homebrew,
// and the manifests of scoop and winget.
package installer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

//go:embed templates
var templates embed.FS

// Make writes install.sh, toolsrv.rb for Homebrew, toolsrv.json for scoop, and the three toolsrv.toolsrv.*.yaml for winget. It reads the archives,
// which must have been made before.
func Make(_ context.Context, r *release.Release) error {
	script, err := os.ReadFile(filepath.Join(r.Root, "deploy", "install.sh"))
	if err != nil {
		return err
	}
	if err := r.Write("install.sh", script); err != nil {
		return err
	}
	a, err := archivesOf(r)
	if err != nil {
		return err
	}
	return fs.WalkDir(templates, "templates", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t, err := template.ParseFS(templates, name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, a); err != nil {
			return err
		}
		return r.Write(d.Name(), out.Bytes())
	})
}

// archives is the data for the templates.
type archives struct {
	Version string
	Date    string            // of the release
	files   map[string]string // names by system
	sums    map[string]string // SHA-256 in hex, by system
}

func archivesOf(r *release.Release) (*archives, error) {
	a := &archives{Version: r.Version, Date: r.Time.Format(time.DateOnly), files: map[string]string{}, sums: map[string]string{}}
	for _, s := range r.Systems {
		name := "toolsrv_" + s.String() + ".tar.gz"
		if s.OS == "windows" {
			name = "toolsrv_" + s.String() + ".zip"
		}
		content, err := os.ReadFile(filepath.Join(r.Out, name))
		if err != nil {
			return nil, fmt.Errorf("hash an archive, which has to be made before: %w", err)
		}
		sum := sha256.Sum256(content)
		a.files[s.String()], a.sums[s.String()] = name, hex.EncodeToString(sum[:])
	}
	return a, nil
}

// URL returns the address of the archive for a system.
func (a *archives) URL(system string) (string, error) {
	name, found := a.files[system]
	if !found {
		return "", fmt.Errorf("there is no archive for %s", system)
	}
	return "https://github.com/toolsrv/toolsrv/releases/download/v" + a.Version + "/" + name, nil
}

// Sum returns the SHA-256 of the archive of a system.
func (a *archives) Sum(system string) (string, error) {
	sum, found := a.sums[system]
	if !found {
		return "", fmt.Errorf("there is no archive for %s", system)
	}
	return sum, nil
}

// UpperSum is Sum in the form for winget.
func (a *archives) UpperSum(system string) (string, error) {
	sum, err := a.Sum(system)
	return strings.ToUpper(sum), err
}
