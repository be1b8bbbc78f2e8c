package python

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// maxFile is the largest size of a file, and maxTotal of everything that a script needs: an engine accepts 16 MiB.
	maxFile  = 16 << 20
	maxTotal = 32 << 20
	// maxFiles is how many files and folders may be looked at, and maxDepth how deeply folders may be nested.
	maxFiles = 20_000
	maxDepth = 64
)

// A disk is what may be read: everything, or what is below a root.
type disk struct {
	ctx   context.Context
	root  *os.Root // nil: everything
	at    string   // the root's path
	seen  map[string]bool
	total int64

	script  string // the path of the script
	content []byte // content of the script, in place of the file on disk; nil: read the file
}

// openDisk returns the disk below a root, or the whole disk if root is empty.
func openDisk(ctx context.Context, root string) (*disk, error) {
	d := &disk{ctx: ctx, seen: map[string]bool{}}
	if root == "" {
		return d, nil
	}
	var err error
	if d.at, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	d.root, err = os.OpenRoot(d.at)
	return d, err
}

func (d *disk) close() {
	if d.root != nil {
		d.root.Close()
	}
}

// inputs returns all that was looked at, sorted.
func (d *disk) inputs() []string {
	paths := make([]string, 0, len(d.seen))
	for path := range d.seen {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// inside returns the path relative to the root, and whether it may be looked at.
func (d *disk) inside(path string) (string, bool) {
	relative, err := filepath.Rel(d.at, path)
	return relative, err == nil && filepath.IsLocal(relative)
}

// look records that a path is looked at. It ends the work if there are too many, or if nobody waits for the result any more.
func (d *disk) look(path string) error {
	d.seen[path] = true
	switch {
	case d.ctx.Err() != nil:
		return d.ctx.Err()
	case len(d.seen) > maxFiles:
		return fmt.Errorf("the script imports more than %d files", maxFiles)
	case strings.Count(path, string(filepath.Separator))-strings.Count(d.at, string(filepath.Separator)) > maxDepth:
		return fmt.Errorf("folders are nested more than %d deep", maxDepth)
	}
	return nil
}

func (d *disk) stat(path string) (fs.FileInfo, error) {
	if err := d.look(path); err != nil {
		return nil, err
	}
	if d.root == nil {
		return os.Stat(path)
	}
	name, ok := d.inside(path)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return d.root.Stat(name)
}

func (d *disk) isFile(path string) bool {
	info, err := d.stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (d *disk) isFolder(path string) bool {
	info, err := d.stat(path)
	return err == nil && info.IsDir()
}

// open opens a file or a folder. Without O_NONBLOCK, a pipe would block until somebody writes to it.
func (d *disk) open(path string) (*os.File, error) {
	if err := d.look(path); err != nil {
		return nil, err
	}
	if d.root == nil {
		return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	name, ok := d.inside(path)
	if !ok {
		return nil, errors.New("it is not below the tools directory")
	}
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// read returns the content of a regular file.
func (d *disk) read(path string) ([]byte, error) {
	data, err := d.contentOf(path)
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it has more than %s", text.Size(maxFile))
	}
	if d.total += int64(len(data)); d.total > maxTotal {
		return nil, fmt.Errorf("the script, with all that it imports, needs more than %s", text.Size(maxTotal))
	}
	return data, nil
}

// contentOf returns the content of a regular file, or only the beginning if there is too much.
func (d *disk) contentOf(path string) ([]byte, error) {
	if d.content != nil && path == d.script {
		return d.content, d.look(path)
	}
	f, err := d.open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, cause(err)
}

// list returns the sorted names of a folder's entries.
func (d *disk) list(path string) ([]string, error) {
	f, err := d.open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, cause(err)
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("it holds more than %d files", maxFiles)
	}
	slices.Sort(names)
	return names, nil
}

// holdsModules reports whether a folder without __init__.py is still a package: it contains a module.
func (d *disk) holdsModules(path string) bool {
	names, err := d.list(path)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".py") || isIdentifier(name) && d.holdsModulesBelow(filepath.Join(path, name))
	})
}

func (d *disk) holdsModulesBelow(path string) bool { return d.isFolder(path) && d.holdsModules(path) }

// cause returns an error without the path of a file on this machine.
func cause(err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
