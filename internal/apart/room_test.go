package apart_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/apart"
)

// TestRoomGivenUp makes a waiter that wants much memory give up: the waiters behind it are served, and no memory is lost.
// Proves: Files of others are not trusted
func TestRoomGivenUp(t *testing.T) {
	t.Parallel()
	r, never := apart.NewRoom(10), make(chan struct{})
	if !r.Take(6, never) {
		t.Fatal("there is no room at first")
	}
	gone, much, little := make(chan struct{}), make(chan bool), make(chan bool)
	go func() { much <- r.Take(8, gone) }()
	go func() { little <- r.Take(4, never) }()
	close(gone)
	if <-much {
		t.Error("more than the whole room was given out")
	}
	if !<-little {
		t.Error("the waiter behind the one that gave up got nothing")
	}
	r.Give(6)
	r.Give(4)
	if !r.Take(10, never) {
		t.Error("room was lost")
	}
}
