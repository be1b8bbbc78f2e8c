package wasi

import (
	"errors"
	"io/fs"
	"syscall"
)

// The error numbers that are used here.
const (
	errnoSuccess     = 0
	errnoAcces       = 2
	errnoAgain       = 6
	errnoBadF        = 8
	errnoExist       = 20
	errnoInval       = 28
	errnoIO          = 29
	errnoIsDir       = 31
	errnoLoop        = 32
	errnoMFile       = 33 // this call has too many files open
	errnoNameTooLong = 37
	errnoNFile       = 41 // all calls together have too many files open
	errnoNoEnt       = 44
	errnoNotDir      = 54
	errnoNotSup      = 58
	errnoROFS        = 69
	errnoPipe        = 70 // ESPIPE: this cannot seek
	errnoNotCapable  = 76
)

// errnoNames are the words by which the log names the results of path_open.
var errnoNames = map[uint64]string{
	errnoAcces: "EACCES", errnoAgain: "EAGAIN", errnoExist: "EEXIST", errnoInval: "EINVAL", errnoIO: "EIO", errnoIsDir: "EISDIR", errnoLoop: "ELOOP",
	errnoMFile: "EMFILE", errnoNameTooLong: "ENAMETOOLONG", errnoNFile: "ENFILE", errnoNoEnt: "ENOENT", errnoNotDir: "ENOTDIR", errnoNotSup: "ENOTSUP",
	errnoROFS: "EROFS", errnoNotCapable: "ENOTCAPABLE",
}

// errnoOf returns the number of a tree's error. The guest learns nothing else about the error.
func errnoOf(err error) uint64 {
	if err == nil {
		return errnoSuccess
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errnoNoEnt
		case errors.Is(err, fs.ErrPermission):
			return errnoAcces
		case errors.Is(err, fs.ErrInvalid):
			return errnoInval
		}
		return errnoNotCapable
	}
	switch number {
	case syscall.ENOTDIR:
		return errnoNotDir
	case syscall.EISDIR:
		return errnoIsDir
	case syscall.ELOOP:
		return errnoLoop
	case syscall.ENAMETOOLONG:
		return errnoNameTooLong
	case syscall.EMFILE, syscall.ENFILE:
		return errnoNFile
	case syscall.EAGAIN:
		return errnoAgain
	case syscall.EINVAL:
		return errnoInval
	}
	switch {
	case number.Is(fs.ErrNotExist):
		return errnoNoEnt
	case number.Is(fs.ErrPermission):
		return errnoAcces
	}
	return errnoIO
}
