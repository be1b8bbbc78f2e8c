// Package gate stands between two processes that talk over TCP, and can stop what they say.
package gate

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Gate passes on what comes to its address. It is safe for concurrent use.
type Gate struct {
	to       string
	listener net.Listener
	running  sync.WaitGroup
	delay    atomic.Int64 // nanoseconds

	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	conns  map[net.Conn]bool
	closed bool
}

// New opens a gate to an address.
func New(to string) (*Gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gate{to: to, listener: l, opened: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(g.opened)
	g.running.Go(g.accept)
	return g, nil
}

// Address is where the gate listens.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Shut has nothing pass, as where packets are lost: connections stay, others can be made, and all are silent.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen() {
		g.opened = make(chan struct{})
	}
}

// Open has all pass again, with what was said meanwhile: who sends has not given it up yet, as with a network that is back soon.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen() {
		close(g.opened)
	}
}

// Delay has all take so much longer that comes from now on, in each direction. Nothing overtakes what came before.
func (g *Gate) Delay(by time.Duration) { g.delay.Store(int64(by)) }

// isOpen is called with the lock.
func (g *Gate) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// Close ends the gate and all connections.
func (g *Gate) Close() error {
	g.mu.Lock()
	g.closed = true
	for c := range g.conns {
		_ = c.Close()
	}
	if !g.isOpen() {
		close(g.opened)
	}
	g.mu.Unlock()
	err := g.listener.Close()
	g.running.Wait()
	return err
}

func (g *Gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.running.Go(func() { g.pass(conn) })
	}
}

// keep notes a connection, and reports whether it may be used.
func (g *Gate) keep(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.conns[c] = true
	return true
}

func (g *Gate) forget(c net.Conn) {
	_ = c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

// wait returns once the gate is open.
func (g *Gate) wait() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	<-opened
}

func (g *Gate) pass(from net.Conn) {
	defer g.forget(from)
	if !g.keep(from) {
		return
	}
	g.wait()
	to, err := net.Dial("tcp", g.to)
	if err != nil {
		return
	}
	defer g.forget(to)
	if !g.keep(to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { g.copy(to, from) })
	both.Go(func() { g.copy(from, to) })
	both.Wait()
}

// mostUnderWay is how many pieces of what one side says are under way at most.
const mostUnderWay = 64

// A piece is what one side has said, and when the other one hears it.
type piece struct {
	said []byte
	due  time.Time
}

// copy passes on what one side says until it ends, which ends the other, too.
func (g *Gate) copy(to, from net.Conn) {
	defer from.Close()
	pieces := make(chan piece, mostUnderWay)
	g.running.Go(func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			g.wait()
			if _, err := to.Write(p.said); err != nil {
				from.Close() // which ends the pieces
			}
		}
	})
	defer close(pieces)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{bytes.Clone(buffer[:n]), time.Now().Add(time.Duration(g.delay.Load()))}
		}
		if err != nil {
			return
		}
	}
}

var _ io.Closer = (*Gate)(nil)
