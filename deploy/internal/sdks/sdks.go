// Package sdks makes the packages of the SDKs for the registries of their languages: a wheel and a source distribution for Python, a
// tarball for npm, two crates, and the Go module in the form of a proxy. Nothing is published.
package sdks

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// flit builds the packages for Python. It is the requirement of sdk/python/pyproject.toml, pinned to one version, since another version could write
// different bits.
const flit = "flit_core==3.12.0"

// goModule is the SDK for Go.
const goModule = "github.com/toolsrv/toolsrv/sdk/go"

// Make writes the packages below sdk/: the folders python, npm and crates have the files to upload, and the folder goproxy is one for
// GOPROXY=file://….
func Make(ctx context.Context, r *release.Release) (err error) {
	scratch, err := r.Scratch("sdks")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	m := maker{Release: r, source: filepath.Join(scratch, "source"), made: filepath.Join(scratch, "made")}
	if err := m.export(ctx); err != nil {
		return fmt.Errorf("read the SDKs of the commit: %w", err)
	}
	if m.version, err = m.sdkVersion(); err != nil {
		return err
	}
	for _, pack := range []func(context.Context) error{m.python, m.npm, m.crates, m.module} {
		if err := pack(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A maker makes the packages of one release.
type maker struct {
	*release.Release
	version string // of the SDKs
	source  string // the SDKs of the commit, without other files of the checkout
	made    string // files that the languages' own programs have made
}

// export writes the commit's SDKs to a folder, with the same modes everywhere. A link is replaced by the file that it leads to.
func (m *maker) export(ctx context.Context) error {
	text, err := m.Output(ctx, nil, "git", "archive", "--format=tar", m.Commit, "LICENSE", "sdk")
	if err != nil {
		return err
	}
	for files := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var content []byte
		mode := os.FileMode(0o644)
		switch h.Typeflag {
		case tar.TypeReg:
			content, err = io.ReadAll(files)
			if h.Mode&0o100 != 0 {
				mode = 0o755
			}
		case tar.TypeSymlink: // links lead to LICENSE, which comes first
			content, err = os.ReadFile(filepath.Join(m.source, filepath.FromSlash(path.Join(path.Dir(h.Name), h.Linkname))))
		default:
			continue
		}
		if err != nil {
			return err
		}
		file := filepath.Join(m.source, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(file, content, mode), os.Chmod(file, mode)); err != nil { // whatever the umask is
			return err
		}
	}
}

// sdkVersion returns the version of the SDKs, which must be the version in the tag of a release.
func (m *maker) sdkVersion() (string, error) {
	text, err := os.ReadFile(filepath.Join(m.source, "sdk", "js", "package.json"))
	if err != nil {
		return "", err
	}
	var said struct{ Version string }
	if err := json.Unmarshal(text, &said); err != nil {
		return "", fmt.Errorf("read sdk/js/package.json: %w", err)
	}
	if tagged := "v" + m.Version; !module.IsPseudoVersion(tagged) && tagged != "v"+said.Version {
		return "", fmt.Errorf("the SDKs have version %s, and the release is %s: give them the same", said.Version, m.Version)
	}
	return said.Version, nil
}

// python builds a wheel and a source distribution with the backend that the package names. pip gets it from the registry.
func (m *maker) python(ctx context.Context) error {
	backend, made := filepath.Join(m.made, "flit"), filepath.Join(m.made, "python")
	if _, err := m.Output(ctx, nil, "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", backend, flit); err != nil {
		return err
	}
	if err := os.MkdirAll(made, 0o755); err != nil {
		return err
	}
	const program = "import sys; from flit_core import buildapi as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"
	environment := []string{"PYTHONPATH=" + backend, "PYTHONDONTWRITEBYTECODE=1", "SOURCE_DATE_EPOCH=" + strconv.FormatInt(m.Time.Unix(), 10)}
	if _, err := m.OutputIn(ctx, filepath.Join(m.source, "sdk", "python"), environment, "python3", "-c", program, made); err != nil {
		return err
	}
	return m.take("python", made, "toolsrv-"+m.version+"-py3-none-any.whl", "toolsrv-"+m.version+".tar.gz")
}

// npm packs the JavaScript SDK and its types. npm gives all files the same time. By default it would give the tarball the name of the Helm chart.
func (m *maker) npm(ctx context.Context) error {
	made := filepath.Join(m.made, "npm")
	if err := os.MkdirAll(made, 0o755); err != nil {
		return err
	}
	if _, err := m.OutputIn(ctx, filepath.Join(m.source, "sdk", "js"), nil, "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", made); err != nil {
		return err
	}
	name := "toolsrv-npm-" + m.version + ".tgz"
	if err := os.Rename(filepath.Join(made, "toolsrv-"+m.version+".tgz"), filepath.Join(made, name)); err != nil {
		return err
	}
	return m.take("npm", made, name)
}

// crates packs both crates together, because one requires this version of the other. Cargo gives all files the same time. The crates are compiled in
// the test, which takes a while.
func (m *maker) crates(ctx context.Context) error {
	made := filepath.Join(m.made, "crates")
	if _, err := m.OutputIn(ctx, filepath.Join(m.source, "sdk", "rust"), nil,
		"cargo", "package", "--quiet", "--locked", "--no-verify", "--target-dir", made, "-p", "toolsrv-macros", "-p", "toolsrv"); err != nil {
		return err
	}
	return m.take("crates", filepath.Join(made, "package"), "toolsrv-macros-"+m.version+".crate", "toolsrv-"+m.version+".crate")
}

// take copies files to a folder of the release, from the folder in which a language's program has made them.
func (m *maker) take(folder, made string, names ...string) error {
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(made, name))
		if err != nil {
			return err
		}
		if err := m.Write("sdk/"+folder+"/"+name, content); err != nil {
			return err
		}
	}
	return nil
}

// module writes the Go module in the form in which a proxy serves the tag sdk/go/vVERSION.
func (m *maker) module(context.Context) error {
	v := module.Version{Path: goModule, Version: "v" + m.version}
	var archive bytes.Buffer
	if err := zip.CreateFromVCS(&archive, v, m.Root, m.Commit, "sdk/go"); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(m.source, "sdk", "go", "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": v.Version, "Time": m.Time})
	if err != nil {
		return err
	}
	folder := "sdk/goproxy/" + goModule + "/@v/"
	for name, content := range map[string][]byte{
		"list": []byte(v.Version + "\n"), v.Version + ".info": info, v.Version + ".mod": mod, v.Version + ".zip": archive.Bytes(),
	} {
		if err := m.Write(folder+name, content); err != nil {
			return err
		}
	}
	return nil
}
