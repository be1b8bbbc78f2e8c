// Package files grants directories to tools, which can only read them, through WASI.
//
// Nothing leads out of a directory: os.Root follows links only within it. Only regular files and directories are opened, never a device, a pipe or a
// socket. A directory is opened for each call that uses it, so that the next call sees a directory that has replaced it.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
)

// Grant returns the grant of directories, by the names under which a tool finds them in "/". It opens nothing yet. If a directory can't be opened
// during a call, that call gets an error.
func Grant(directories map[string]string) *wasi.Permission {
	g := &wasi.Permission{Directories: make(map[string]wasi.Directory, len(directories))}
	for name, path := range directories {
		g.Directories[name] = directory(path)
	}
	return g
}

// Check returns an error if a path can't be granted, because it is not a directory that this process can read now.
func Check(path string) error {
	root, err := directory(path).root()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Readdirnames(1); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// A directory is the path of a granted directory.
type directory string

var _ wasi.Directory = directory("")

// root opens the directory. With the separator at the end, the system refuses anything that is not a directory. Otherwise it would open that too, and
// wait for the other end of a pipe.
func (d directory) root() (*os.Root, error) {
	return os.OpenRoot(string(d) + string(filepath.Separator))
}

// Open opens the directory for a call.
func (d directory) Open() (wasi.Tree, error) {
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	return tree{root}, nil
}

// A tree is an open directory.
type tree struct{ root *os.Root }

var _ wasi.Tree = tree{}

// errKind refuses what is neither a regular file nor a directory.
var errKind = fmt.Errorf("%w: it is neither a regular file nor a directory", fs.ErrPermission)

// Open opens a regular file or a directory, without waiting. It checks the type before, since opening some devices has side effects, and again
// afterwards, since somebody may have replaced the file. It closes a file of a wrong type.
func (t tree) Open(name string) (fs.File, error) {
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !plain(info) {
		return nil, errKind
	}
	f, err := t.root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !plain(info) {
		err = errKind
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// plain reports whether a file of this type may be opened.
func plain(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }

// Stat describes what a link leads to.
func (t tree) Stat(name string) (fs.FileInfo, error) { return t.root.Stat(name) }

// Lstat describes a link.
func (t tree) Lstat(name string) (fs.FileInfo, error) { return t.root.Lstat(name) }

// ReadLink returns where a link leads.
func (t tree) ReadLink(name string) (string, error) { return t.root.Readlink(name) }

// Close closes the directory.
func (t tree) Close() error { return t.root.Close() }
