package server

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections counts the open connections. One above the limit is closed without an answer, which takes neither memory nor time.
//
// It is the [egress.Room] of tools, too: the connections to services that they ask take from the same descriptors, up to half of them.
type connections struct {
	most   int64
	all    int64 // of connections both ways
	logger *slog.Logger

	open   sync.WaitGroup
	number atomic.Int64

	outside atomic.Int64 // of tools

	leaving atomic.Bool // another process takes new connections

	mu     sync.Mutex
	each   map[*watchedConn]struct{} // those that are open
	told   time.Time                 // when the log was told last
	closed int                       // since then, above the limit
}

// closedEvery is the least time between two lines of the log on closed connections, since they come as fast as a client likes.
const closedEvery = time.Second

// changed is the http.Server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
		c.note(conn, true)
		if n := c.number.Add(1); n > c.most || n > c.all-c.outside.Load() {
			_ = conn.Close()
			c.tell()
		}
	case http.StateIdle:
		if w, ok := conn.(*watchedConn); ok {
			w.unasked.Store(time.Now().UnixNano())
		}
	case http.StateClosed, http.StateHijacked:
		c.note(conn, false)
		c.number.Add(-1)
		c.open.Done()
	}
}

// note has each know whether a connection is open.
func (c *connections) note(conn net.Conn, open bool) {
	w, ok := conn.(*watchedConn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if open {
		c.each[w] = struct{}{}
	} else {
		delete(c.each, w)
	}
}

// closeUnasked closes the connections on which no request is being read or answered, and none was since a time.
func (c *connections) closeUnasked(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.each {
		if t := w.unasked.Load(); t != 0 && t <= since.UnixNano() {
			_ = w.Close()
		}
	}
}

// Take counts a connection of a tool to a service, or reports that there is no room for it.
func (c *connections) Take() bool {
	for {
		n := c.outside.Load()
		if n >= max(1, c.all/2) || n+c.number.Load() >= c.all {
			return false
		}
		if c.outside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Give gives back what Take has counted.
func (c *connections) Give() { c.outside.Add(-1) }

// tell logs that connections were closed: this one, and those since the last line.
func (c *connections) tell() {
	c.mu.Lock()
	c.closed++
	closed, now := c.closed, time.Now()
	due := now.Sub(c.told) >= closedEvery
	if due {
		c.told, c.closed = now, 0
	}
	c.mu.Unlock()
	if due {
		c.logger.Warn("too many open connections: new ones are closed", "limit", c.most, "closed", closed)
	}
}
