package server

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections are those that are open. What exceeds their limit is closed unanswered: that takes neither memory nor time.
type connections struct {
	most   int64
	logger *slog.Logger

	open   sync.WaitGroup
	number atomic.Int64

	mu     sync.Mutex
	told   time.Time // when the log was told last
	closed int       // since then, above the limit
}

// closedEvery is how often the log says that connections above the limit are closed: they come as fast as a client likes.
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

// tell logs that a connection was closed, with those before it of which there was no line.
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
