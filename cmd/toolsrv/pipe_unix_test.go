//go:build unix

package main_test

import (
	"syscall"
	"testing"
)

// makePipe makes a file that nobody writes to: who opens it waits for ever.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
