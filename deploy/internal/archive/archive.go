// Package archive makes the archives that a user unpacks: the program, its manual pages and completions, and all licences; a .tar.gz, or for
// Windows a .zip.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// A File is a file in an archive or a package.
type File struct {
	Name    string // with slashes
	Content []byte
	Mode    int64
}

// Make writes toolsrv_SYSTEM.tar.gz, or .zip, for each system. The name has no version, so that one address always leads to the latest release.
func Make(ctx context.Context, r *release.Release) error {
	shared, err := Shared(ctx, r)
	if err != nil {
		return err
	}
	for _, s := range release.Systems() {
		program, err := os.ReadFile(r.Program(s))
		if err != nil {
			return err
		}
		folder := "toolsrv_" + s.String()
		files := append([]File{{s.Binary(), program, 0o755}}, shared...)
		for i := range files {
			files[i].Name = path.Join(folder, files[i].Name)
		}
		pack, ending := tarball, ".tar.gz"
		if s.OS == "windows" {
			pack, ending = Zip, ".zip"
		}
		content, err := pack(files, r.Time)
		if err != nil {
			return err
		}
		if err := r.Write(folder+ending, content); err != nil {
			return err
		}
	}
	return nil
}

// Shared returns the files that go with the program and are the same on every system: completions, manual pages, and licences.
func Shared(ctx context.Context, r *release.Release) ([]File, error) {
	own := r.Program(release.System{OS: runtime.GOOS, Arch: runtime.GOARCH})
	var files []File
	for shell, name := range map[string]string{"bash": "toolsrv.bash", "zsh": "_toolsrv", "fish": "toolsrv.fish", "powershell": "toolsrv.ps1"} {
		script, err := r.Output(ctx, nil, own, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, File{"completions/" + name, script, 0o644})
	}
	pages, err := r.Scratch("man")
	if err != nil {
		return nil, err
	}
	if _, err := r.Output(ctx, nil, own, "manpages", pages); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, File{"man/man1/" + e.Name(), text, 0o644})
	}
	licenses, err := r.Output(ctx, nil, own, "licenses")
	if err != nil {
		return nil, err
	}
	files = append(files, File{"LICENSES", licenses, 0o644})
	for _, name := range []string{"LICENSE", "NOTICE", "README.md"} {
		text, err := os.ReadFile(filepath.Join(r.Root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, File{name, text, 0o644})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// tarball returns a .tar.gz of files that all have the same time and belong to root.
func tarball(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Content)), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Zip returns a .zip of files that all have the same time.
func Zip(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(f.Mode))
		w, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
