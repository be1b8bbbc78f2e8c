package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	for descriptors, want := range map[int64]int64{1024: 768, 20: 15, 1: 1, 1 << 20: maxConns, 13_000: 9750} {
		if got := mostConnections(descriptors); got != want {
			t.Errorf("with %d descriptors: got %d connections, want %d", descriptors, got, want)
		}
	}
	if n := account.MachineDescriptors(); n < 3 {
		t.Errorf("the process may have %d descriptors", n)
	}
}

// TestConnectionsOfTools has tools and clients take from the same descriptors: tools half of them at most, and clients the rest.
func TestConnectionsOfTools(t *testing.T) {
	t.Parallel()
	c := connections{most: 20, all: 20, logger: slog.New(slog.DiscardHandler)}
	take := func() (n int) {
		for c.Take() {
			n++
		}
		return n
	}
	if n := take(); n != 10 {
		t.Errorf("tools could take %d of 20", n)
	}
	var clients []net.Conn
	closed := func() bool {
		ours, theirs := net.Pipe()
		clients = append(clients, theirs)
		c.changed(ours, http.StateNew)
		_ = ours.SetDeadline(time.Now().Add(-time.Second))
		_, err := ours.Read(make([]byte, 1))
		return errors.Is(err, io.ErrClosedPipe)
	}
	for i := range 11 {
		if got := closed(); got != (i == 10) {
			t.Errorf("client %d beside 10 connections of tools: closed %t", i, got)
		}
	}
	for range 10 {
		c.Give()
	}
	c.changed(clients[10], http.StateClosed)
	for i := range 5 {
		if closed() {
			t.Errorf("client %d was closed, and tools have no connections", 10+i)
		}
	}
	if n := take(); n != 5 {
		t.Errorf("tools could take %d of the 5 that are left", n)
	}
}

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	machine, c := account.MachineMemory(), config.Default()
	if got := HeapLimit(c); got < machine/4 || got > machine/2 {
		t.Errorf("by default: got %d of %d bytes, want 27 to 40 percent", got, machine)
	}
	c.Server.Memory = machine * 2
	if got := HeapLimit(c); got != machine/4 {
		t.Errorf("beside tools that may take all: got %d of %d bytes, want a quarter", got, machine)
	}
}

// TestBodyMemory has a server with little memory let calls hold less of it.
func TestBodyMemory(t *testing.T) {
	t.Parallel()
	for machine, want := range map[int64]int64{256 << 20: 32 << 20, 2 << 30: 256 << 20, 64 << 30: 256 << 20} {
		if got := bodyMemory(machine); got != want {
			t.Errorf("of %d bytes: got %d, want %d", machine, got, want)
		}
	}
}
