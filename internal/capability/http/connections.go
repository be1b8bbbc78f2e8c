package http

import (
	"net"
	"sync"

	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// Connections counts the connections of all grants of a process. It is safe for concurrent use.
type Connections struct {
	room capability.Room

	mu   sync.Mutex
	idle map[*line]struct{} // the idle connections that calls keep
}

// NewConnections returns Connections, with none open yet. room bounds them; if it is nil, there is no bound.
func NewConnections(r capability.Room) *Connections {
	return &Connections{room: r, idle: map[*line]struct{}{}}
}

// take makes room for a connection. If there is none, it closes an idle one of any call. A nil c always has room.
func (c *Connections) take() *answer.Failure {
	if c == nil || c.room == nil || c.room.Take() {
		return nil
	}
	c.mu.Lock()
	idle := c.idle
	c.idle = map[*line]struct{}{}
	c.mu.Unlock()
	for l := range idle {
		l.close()
	}
	if c.room.Take() {
		return nil
	}
	return answer.Failf(answer.Unavailable, "The host has no room for another connection: its limit of open files (ulimit -n) is reached. Try again later.")
}

func (c *Connections) give() {
	if c != nil && c.room != nil {
		c.room.Give()
	}
}

// rest says that a call keeps an idle line, which may be closed to make room.
func (c *Connections) rest(l *line) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle[l] = struct{}{}
}

// wake undoes rest. It returns false if the line has been closed.
func (c *Connections) wake(l *line) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, idle := c.idle[l]
	delete(c.idle, l)
	return idle
}

// A connection gives back its room when it is first closed. It may be closed more than once.
type connection struct {
	net.Conn
	close func() error
}

func (c *connection) Close() error { return c.close() }

// counted wraps a connection so that closing it gives back its room.
func (c *Connections) counted(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		// The side that closes first keeps the port for a minute. With a connection for each call, the host would run out of ports at some 470 calls
		// a second to one address. When a connection is closed here, nobody needs the data that may be in transit.
		_ = tcp.SetLinger(0)
	}
	return &connection{conn, sync.OnceValue(func() error {
		err := conn.Close()
		c.give()
		return err
	})}
}
