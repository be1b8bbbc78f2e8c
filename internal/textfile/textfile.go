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
)

// Max is how many bytes [Read] reads at most: 1 MiB.
const Max = 1 << 20

// patience is how long a pipe may take to bring all that it has.
const patience = 10 * time.Second

var (
	// ErrTooLarge is why a larger file is refused.
	ErrTooLarge = errors.New("the file is larger than 1 MiB")

	errSilent = fmt.Errorf("it is a pipe, and nobody has written to it and closed it within %v: start what writes to it, or name a file", patience)
)

// Read reads a file of at most Max bytes, without its byte order mark. An error is ErrTooLarge, or names the file.
func Read(path string) ([]byte, error) {
	text, err := UpTo(path, Max)
	switch {
	case err != nil:
		return nil, err
	case len(text) > Max:
		return nil, fmt.Errorf("%s: %w", path, ErrTooLarge)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

// UpTo reads a file. It returns most+1 bytes of one that has more than most. A pipe has ten seconds to bring them.
func UpTo(path string, most int) ([]byte, error) {
	// Without O_NONBLOCK, opening a pipe would wait until somebody writes to it, whatever else was to be done.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	until := time.Now().Add(patience)
	_ = f.SetReadDeadline(until) // where the system knows none, as for a file on disk, nothing waits, either
	for {
		text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = &fs.PathError{Op: "read", Path: path, Err: errSilent}
		}
		if err != nil || len(text) > 0 || !isPipe(f) {
			return text, err
		}
		// Nobody has opened the other end yet, or somebody has and wrote nothing: the system doesn't tell which.
		if time.Now().After(until) {
			return nil, &fs.PathError{Op: "read", Path: path, Err: errSilent}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Regular reads a regular file as [UpTo] does. It refuses any other: what is read more than once can't be a pipe.
func Regular(path string, most int) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	return UpTo(path, most)
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
