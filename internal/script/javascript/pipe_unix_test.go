//go:build unix

package javascript_test

import "syscall"

// pipe makes what blocks a process that opens it to read.
func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }
