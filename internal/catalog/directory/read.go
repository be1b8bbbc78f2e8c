package directory

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/catalog"
)

// A reader reads a file, and fails if it is no longer what it was when it was opened.
type reader struct {
	file *os.File
	info fs.FileInfo
	left int64
}

// open opens the file at a name in a directory, if it is the regular file that want describes.
func open(directory, name string, want fs.FileInfo) (*reader, error) {
	root, err := openRoot(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Without O_NONBLOCK, opening a FIFO that was put in the file's place just now would block until somebody writes to it.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return newReader(f, want)
}

// newReader returns a reader of an open file, if that is the regular file that want describes. Otherwise it closes the file.
func newReader(f *os.File, want fs.FileInfo) (*reader, error) {
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !same(info, want)) {
		err = catalog.ErrChanged
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &reader{f, info, info.Size()}, nil
}

// Read reads the file. At the end it fails if the size has changed, or somebody has written to the file meanwhile.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return n, catalog.ErrChanged
	}
	if errors.Is(err, io.EOF) {
		if after, failed := r.file.Stat(); r.left > 0 || failed != nil || !same(r.info, after) {
			return n, catalog.ErrChanged
		}
	}
	return n, err
}

// Close closes the file.
func (r *reader) Close() error { return r.file.Close() }
