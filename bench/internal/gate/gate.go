// Package gate is a proxy between two processes that talk over TCP. It can hold back or delay what they send.
package gate

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Gate passes on connections to its address. It is safe for concurrent use.
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

// Address returns the address that the gate listens on.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Shut lets nothing pass, as if packets were lost: connections stay open and new ones can be made, but all are silent.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen() {
		g.opened = make(chan struct{})
	}
}

// Open lets everything pass again, including what was sent meanwhile, as when a network comes back before the senders give up.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen() {
		close(g.opened)
	}
}

// Delay delays everything that is sent from now on, in each direction. The order stays the same.
func (g *Gate) Delay(by time.Duration) { g.delay.Store(int64(by)) }

// isOpen must be called with the lock held.
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

// keep records a connection, and reports whether it may be used.
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

// mostUnderWay is how many pieces from one side can be delayed at a time.
const mostUnderWay = 64

// A piece is a part of the bytes that one side has sent, with the time when the other side gets it.
type piece struct {
	said []byte
	due  time.Time
}

// copy passes on what one side sends until that side ends, and then ends the other side, too.
func (g *Gate) copy(to, from net.Conn) {
	defer from.Close()
	pieces := make(chan piece, mostUnderWay)
	g.running.Go(func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			g.wait()
			if _, err := to.Write(p.said); err != nil {
				from.Close() // ends the goroutine that writes the pieces
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
