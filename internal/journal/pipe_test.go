package journal_test

import (
	"io"
	"os"
	"testing"
)

// pipe returns the writing end of a pipe that is read until it is closed.
func pipe(tb testing.TB) *os.File {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, r)
		close(done)
	}()
	tb.Cleanup(func() {
		w.Close()
		<-done
		r.Close()
	})
	return w
}
