package wasi

import (
	"io/fs"
	"maps"
	"time"
)

// A Permission is what a tool is granted of WASI: directories, which it finds in "/" under their names and can only read. It must not
// be changed once a tool has it.
type Permission struct {
	// Directories are those that are granted. A name is a single element of a path.
	Directories map[string]Directory
}

// Equal reports whether another grant allows the same.
func (g *Permission) Equal(other any) bool {
	o, ok := other.(*Permission)
	return ok && maps.Equal(g.Directories, o.Directories)
}

// A Directory is what can be granted. It is comparable, and safe for concurrent use.
type Directory interface {
	// Open opens the directory for one call, which closes it. What is in it may change at any time.
	Open() (Tree, error)
}

// A Tree is an open directory with all that is in it. One goroutine uses it at a time.
//
// Names are relative to it, with slashes, "." for itself, and no other element "." or "..". They need not be valid UTF-8. A tree has
// to see to it that nothing leads out of it, links included. An error that wraps a syscall.Errno, fs.ErrNotExist, fs.ErrPermission
// or fs.ErrInvalid means what it says; any other is taken for an attempt to leave the tree.
type Tree interface {
	// Open opens a regular file, which also is an io.ReaderAt, or a directory, which also is an fs.ReadDirFile and an
	// io.Seeker. It opens nothing else, such as a device, and waits for nobody. Links are followed.
	Open(name string) (fs.File, error)
	// Stat describes what a link leads to, and Lstat the link.
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	// ReadLink returns where a link leads.
	ReadLink(name string) (string, error)
	// Close closes the tree. Files that it has opened stay open.
	Close() error
}

// Guests find "/" open. It does not depend on the grant and is there in a start, too, if empty, C libraries and Go look once for the
// directories that they find open, and a snapshot keeps what they have seen.
const (
	rootFD   = 3
	rootName = "/"
)

// A rootInfo describes "/".
type rootInfo struct{}

var _ fs.FileInfo = rootInfo{}

func (rootInfo) Name() string       { return rootName }
func (rootInfo) Size() int64        { return 0 }
func (rootInfo) Mode() fs.FileMode  { return fs.ModeDir }
func (rootInfo) ModTime() time.Time { return time.Time{} }
func (rootInfo) IsDir() bool        { return true }
func (rootInfo) Sys() any           { return nil }
