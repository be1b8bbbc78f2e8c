package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
)

var (
	// errChanged tells that a file is not, or no longer, what the scan saw.
	errChanged = errors.New("the file changes while it is read")
	// errUnreadable tells that the file's content is not to blame, so that a new try may go well without any change to it.
	errUnreadable = errors.New("can't be read")
)

// read returns the content of a module's file. Whatever lies at the path by now is opened once, and checked through
// that handle: it must be the regular file that want describes, before and after. Errors are errChanged,
// errUnreadable, or of the file's size.
func read(directory, name string, want fs.FileInfo) ([]byte, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer root.Close()
	// Without O_NONBLOCK, a FIFO put in the file's place just now would hold us until somebody writes to it.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if !info.Mode().IsRegular() || !same(info, want) {
		return nil, errChanged
	}
	if info.Size() > sandbox.MaxModule {
		return nil, fmt.Errorf("has %d bytes, a module may have %d: strip it of debug information (wasm-opt, wasm-strip)", info.Size(), sandbox.MaxModule)
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(f, content); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, errChanged
		}
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if after, err := f.Stat(); err != nil || !same(info, after) {
		return nil, errChanged
	}
	return content, nil
}
