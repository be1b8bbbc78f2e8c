package nats_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A gate stands between a replica and a node, and can be shut: then its connections end, and there are no others.
type gate struct {
	listener net.Listener
	mu       sync.Mutex
	isShut   bool
	conns    map[net.Conn]bool
}

func newGate(t testing.TB, c *cluster) *gate {
	t.Helper()
	return newGateTo(t, c.nodes[0].Addr().String())
}

func newGateTo(t testing.TB, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: l, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go g.pass(conn, to)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		g.shut()
	})
	return g
}

func (g *gate) url() string { return "nats://" + g.listener.Addr().String() }

func (g *gate) pass(from net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil || !g.keep(from, to) {
		from.Close()
		return
	}
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
	from.Close()
}

func (g *gate) keep(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		g.conns[c] = true
		if g.isShut {
			c.Close()
		}
	}
	return !g.isShut
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = true
	for c := range g.conns {
		c.Close()
	}
	clear(g.conns)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = false
}
