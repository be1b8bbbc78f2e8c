package wasi

import (
	"io/fs"
	"maps"
	"time"
)

// A Permission is what a tool is granted of WASI: directories, which it finds in "/" under their names, and can only read. It must not be changed
// once a tool has it.
type Permission struct {
	// Directories are the granted directories. A name is a single element of a path.
	Directories map[string]Directory
}

// Equal reports whether another grant allows the same.
func (g *Permission) Equal(other any) bool {
	o, ok := other.(*Permission)
	return ok && maps.Equal(g.Directories, o.Directories)
}

// A Directory can be granted. It is comparable, and safe for concurrent use.
type Directory interface {
	// Open opens the directory for one call, which closes it. Its content may change at any time.
	Open() (Tree, error)
}

// A Tree is an open directory with everything below it. One goroutine uses it at a time.
//
// Names are relative to it, with slashes. "." is the tree itself; no other element is "." or "..". Names need not be valid UTF-8. A tree must make
// sure that nothing leads out of it, including links. An error that wraps a syscall.Errno, fs.ErrNotExist, fs.ErrPermission or fs.ErrInvalid means
// what it says; any other is taken for an attempt to leave the tree.
type Tree interface {
	// Open opens a regular file, which is also an io.ReaderAt, or a directory, which is also an fs.ReadDirFile and an io.Seeker. It opens nothing else,
	// such as a device, and does not block. It follows links.
	Open(name string) (fs.File, error)
	// Stat describes the target of a link, and Lstat the link itself.
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	// ReadLink returns the text of a link.
	ReadLink(name string) (string, error)
	// Close closes the tree. Files that were opened in it stay open.
	Close() error
}

// Guests find "/" open, whatever they are granted. In a start it is open, too, but empty: C libraries and Go check only once which directories are
// open, and a snapshot keeps what they found.
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
