//go:build unix

package javascript_test

import "syscall"

// pipe makes a named pipe, which blocks a process that opens it for reading.
func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }
