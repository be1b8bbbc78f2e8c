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
type connections struct {
	most   int64
	logger *slog.Logger

	open   sync.WaitGroup
	number atomic.Int64

	mu     sync.Mutex
	told   time.Time // when the log was told last
	closed int       // since then, above the limit
}

// closedEvery is the least time between two lines of the log on closed connections, since they come as fast as a client likes.
const closedEvery = time.Second

// changed is the http.Server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
		if c.number.Add(1) > c.most {
			_ = conn.Close()
			c.tell()
		}
	case http.StateClosed, http.StateHijacked:
		c.number.Add(-1)
		c.open.Done()
	}
}

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
