package server

import (
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
)

// Proves: Clients keep nobody out
func TestConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ descriptors, memory, most, spare int64 }{
		{1 << 20, 64 << 30, maxConns, 750},
		{13_000, 64 << 30, 9176, 573},
		{1024, 64 << 30, 722, 45},
		{256, 64 << 30, 180, 11},
		{20, 64 << 30, 14, 1},
		{1, 64 << 30, 1, 1},
		{1 << 20, 4 << 30, 8192, 512},
		{1 << 20, 512 << 20, 1024, 64},
		{1 << 20, 128 << 20, 256, 16},
		{1 << 20, 1 << 10, 1, 1},
	} {
		got := newConnections(core.NewConnections(c.descriptors), c.memory, nil)
		if got.most != c.most || got.spare != c.spare {
			t.Errorf("with %d descriptors and %d bytes: got %d connections and %d to spare, want %d and %d", c.descriptors, c.memory, got.most, got.spare, c.most, c.spare)
		}
		if got.most+got.spare > got.both.All() {
			t.Errorf("with %d descriptors: %d connections and %d to spare are more than %d", c.descriptors, got.most, got.spare, got.both.All())
		}
	}
	if n := account.MachineDescriptors(); n < 3 {
		t.Errorf("the process may have %d descriptors", n)
	}
}

// TestConnectionsOfTools checks that tools and clients share file descriptors: tools get half of them at most, and clients the rest.
// Proves: A service can't use up the host
func TestConnectionsOfTools(t *testing.T) {
	t.Parallel()
	c := newConnections(core.NewConnections(28), 1<<30, slog.New(slog.DiscardHandler)) // 21 connections in and out: 19 for clients, and a spare one
	c.newcomer = 0
	take := func() (n int) {
		for c.both.Take() {
			n++
		}
		return n
	}
	if n := take(); n != 10 {
		t.Errorf("tools could take %d of 21", n)
	}
	enter := func() *watchedConn {
		w := newWatchedConn(&net.TCPConn{}, c, nil)
		c.changed(w, http.StateNew)
		return w
	}
	var clients []*watchedConn
	for i := range 12 {
		clients = append(clients, enter())
		if got, want := clients[i].gone, i == 11; got != want {
			t.Errorf("client %d beside 10 connections of tools: closed %t", i, got)
		}
		if got, want := clients[i].spare.Load(), i >= 10; got != want {
			t.Errorf("client %d beside 10 connections of tools: in a spare place %t", i, got)
		}
	}
	for range 10 {
		c.both.Give()
	}
	for range 5 {
		if w := enter(); w.gone || w.spare.Load() {
			t.Error("a client was closed or got a spare place while tools had no connections")
		}
	}
	if n := take(); n != 4 {
		t.Errorf("tools could take %d of the remaining 4", n)
	}
	for _, w := range clients {
		c.changed(w, http.StateClosed)
	}
	if c.number != 5 || c.going != 0 {
		t.Errorf("%d connections are counted, %d of them as closing; want 5 and none", c.number, c.going)
	}
}

// BenchmarkConnection measures the work of connections for a request over a connection that stays open.
func BenchmarkConnection(b *testing.B) {
	c := newConnections(core.NewConnections(1<<20), 1<<30, slog.New(slog.DiscardHandler))
	w := newWatchedConn(&net.TCPConn{}, c, nil)
	c.changed(w, http.StateNew)
	for b.Loop() {
		c.await(w)
		c.changed(w, http.StateActive)
		c.write(&w.inWrite, true)
		c.write(&w.inWrite, false)
		c.changed(w, http.StateIdle)
	}
}
