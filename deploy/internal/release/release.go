// Package release has the basis for every part of a release: a checkout of one commit, and the programs built from it for each system. The same
// commit gives the same bits, wherever and whenever it is built.
package release

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A System is an operating system and a processor, with Go's names.
type System struct{ OS, Arch string }

// Systems returns the systems that a release is for.
func Systems() []System {
	return []System{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}}
}

func (s System) String() string { return s.OS + "_" + s.Arch }

// Binary is the name of the program's file.
func (s System) Binary() string {
	if s.OS == "windows" {
		return "toolsrv.exe"
	}
	return "toolsrv"
}

// A Release is one commit, built. It is made by Open, and not changed afterwards.
type Release struct {
	Root    string    // the checkout
	Out     string    // the folder that everything is written to
	Version string    // the tag without its v, such as 1.2.0; between tags Go's version of the commit, such as 0.0.0-20260102150405-abcdefabcdef
	Commit  string    // its full hash
	Time    time.Time // the commit's time in UTC, which every file gets
	Systems []System  // the systems of the programs
	work    string    // binaries and intermediate files
}

// Open builds the programs of the checkout at root, for these systems or for all. Files are written to out, which must be empty or not exist, so that
// no file of another release is taken for one of this release. Close removes intermediate files.
func Open(ctx context.Context, root, out string, systems ...System) (*Release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	switch entries, err := os.ReadDir(out); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("%s holds files already: remove it, or name another folder", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // everybody may read the files
		return nil, err
	}
	if len(systems) == 0 {
		systems = Systems()
	}
	r := &Release{Root: root, Out: out, Systems: systems}
	if err := r.identify(ctx); err != nil {
		return nil, err
	}
	if r.work, err = os.MkdirTemp("", "toolsrv-dist-"); err != nil {
		return nil, err
	}
	if err := r.build(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Close removes intermediate files. The files in Out stay.
func (r *Release) Close() error { return os.RemoveAll(r.work) }

// identify reads the commit from git.
func (r *Release) identify(ctx context.Context) error {
	text, err := r.Output(ctx, nil, "git", "show", "--no-patch", "--format=%H %cI", "HEAD")
	if err != nil {
		return fmt.Errorf("read the commit: %w", err)
	}
	commit, at, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return fmt.Errorf("read the commit's time: %w", err)
	}
	r.Commit, r.Time = commit, t.UTC()
	return nil
}

// build builds the program for each system, as make build does: without libc and without the paths of this machine. The version is the one that Go
// has written into the program, so that all parts of a release have the same version as `toolsrv version` prints.
func (r *Release) build(ctx context.Context) error {
	for _, s := range r.Systems {
		file := r.Program(s)
		environment := []string{"CGO_ENABLED=0", "GOGC=400", "GOFLAGS=", "GOOS=" + s.OS, "GOARCH=" + s.Arch}
		if _, err := r.Output(ctx, environment, "go", "build", "-trimpath", "-tags=grpcnotrace", "-buildvcs=true", "-ldflags=-s -w", "-o", file, "./cmd/toolsrv"); err != nil {
			return fmt.Errorf("build for %s: %w", s, err)
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		version := strings.TrimPrefix(info.Main.Version, "v")
		if version == "" || version == "(devel)" {
			return errors.New("the program has no version in it: build in a checkout with its git history")
		}
		if r.Version != "" && r.Version != version {
			return fmt.Errorf("the programs have two versions, %s and %s: the checkout has changed meanwhile", r.Version, version)
		}
		r.Version = version
	}
	return nil
}

// Program returns the path of the program that was built for a system.
func (r *Release) Program(s System) string {
	return filepath.Join(r.work, "bin", s.String(), s.Binary())
}

// Scratch returns an empty folder for intermediate files, which Close removes.
func (r *Release) Scratch(name string) (string, error) {
	return os.MkdirTemp(r.work, name+"-")
}

// Output runs a command in the checkout with these variables in addition to those of the process, and returns its output. An error contains the
// command's messages.
func (r *Release) Output(ctx context.Context, environment []string, name string, arguments ...string) ([]byte, error) {
	return r.OutputIn(ctx, r.Root, environment, name, arguments...)
}

// OutputIn is Output for a command in another folder.
func (r *Release) OutputIn(ctx context.Context, folder string, environment []string, name string, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = folder
	cmd.Env = append(slices.Clip(os.Environ()), environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// Write writes a file of the release. It must not exist: two parts of a release that write the same file are a mistake.
func (r *Release) Write(name string, content []byte) error {
	file := filepath.Join(r.Out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
