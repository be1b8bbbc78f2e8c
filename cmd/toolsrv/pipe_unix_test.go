//go:build unix

package main_test

import (
	"syscall"
	"testing"
)

// makePipe makes a pipe that nobody writes to: whoever opens it waits forever.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
