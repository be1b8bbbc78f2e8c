package local

import (
	"errors"
	"os"
	"syscall"
)

// allocate makes the disk reserve space for an unused part of a file.
func allocate(file *os.File, from, length int64) error {
	for {
		err := syscall.Fallocate(int(file.Fd()), 0, from, length)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, errors.ErrUnsupported):
			return fillZeros(file, from, length)
		default:
			return err
		}
	}
}
