// Package textfile reads files that people write, and pipes in their place.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Max is how many bytes [Read] reads at most: 1 MiB.
const Max = 1 << 20

// patience is how long a pipe may take to deliver everything.
const patience = 10 * time.Second

var errSilent = fmt.Errorf("it is a pipe, and nobody has written to it and closed it within %v: start what writes to it, or name a file", patience)

// TooLarge is the error for a file of more than most bytes.
func TooLarge(most int) error {
	return fmt.Errorf("the file is larger than %s", text.Size(int64(most)))
}

// Read reads a file of at most Max bytes, without its byte order mark. An error names the file.
func Read(path string) ([]byte, error) {
	content, err := UpTo(path, Max)
	return bytes.TrimPrefix(content, []byte("\ufeff")), err
}

// UpTo reads a file of at most most bytes. A pipe has ten seconds to deliver them. An error names the file.
func UpTo(path string, most int) ([]byte, error) {
	// Without O_NONBLOCK, opening a pipe would wait until somebody writes to it, and nothing could end that.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	until := time.Now().Add(patience)
	_ = f.SetReadDeadline(until) // some files have no deadlines, such as those on disk, but reading these doesn't block
	for {
		content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, wrong(path, errSilent)
		case errors.Is(err, syscall.EISDIR):
			return nil, wrong(path, errors.New("it is a folder: name a file"))
		case err != nil:
			return nil, err
		case len(content) > most:
			return nil, wrong(path, TooLarge(most))
		case len(content) > 0 || !isPipe(f):
			return content, nil
		// Nobody has opened the other end yet, or somebody has and wrote nothing: the system doesn't tell which.
		case time.Now().After(until):
			return nil, wrong(path, errSilent)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Regular reads a regular file as [UpTo] does. It refuses any other, since a pipe can't be read more than once.
func Regular(path string, most int) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, wrong(path, errors.New("it is not a regular file"))
	}
	return UpTo(path, most)
}

func wrong(path string, err error) error { return &fs.PathError{Op: "read", Path: path, Err: err} }

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
