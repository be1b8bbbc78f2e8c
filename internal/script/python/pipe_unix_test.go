//go:build unix

package python_test

import (
	"syscall"
	"testing"
)

// makePipe makes a named pipe, which blocks a process that opens it for reading.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
