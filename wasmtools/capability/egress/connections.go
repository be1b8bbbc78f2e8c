package egress

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// A Room bounds how many connections there are. It is safe for concurrent use, and never waits.
type Room interface {
	// Take counts a connection that is about to be made, or reports that there is no room for it.
	Take() bool
	// Give gives back what Take has counted.
	Give()
}

// Connections are those of all grants of a process. They are safe for concurrent use.
type Connections struct {
	room Room

	mu   sync.Mutex
	open map[*http.Transport]int // how many each has
}

// NewConnections returns none, for which there will be as much room as the Room has; nil: any number.
func NewConnections(r Room) *Connections {
	return &Connections{room: r, open: map[*http.Transport]int{}}
}

// take makes room for a connection of t. Where there is none, it closes those that are idle, of whichever grant. A nil c has room.
func (c *Connections) take(t *http.Transport) *answer.Failure {
	if c == nil {
		return nil
	}
	if c.room != nil && !c.room.Take() {
		c.mu.Lock()
		all := slices.Collect(maps.Keys(c.open))
		c.mu.Unlock()
		for _, t := range all {
			t.CloseIdleConnections()
		}
		if !c.room.Take() {
			return answer.Failf(answer.Unavailable, "The host has no room for another connection: as many are open as its limit of open files (ulimit -n) allows. Try again later.")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[t]++
	return nil
}

func (c *Connections) give(t *http.Transport) {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.open[t]--; c.open[t] == 0 {
		delete(c.open, t)
	}
	c.mu.Unlock()
	if c.room != nil {
		c.room.Give()
	}
}

// A connection gives back its room when it is closed.
type connection struct {
	net.Conn
	close func() error
}

func (c *connection) Close() error { return c.close() }

// counted returns a connection that gives back its room when it is closed, which may be more than once.
func (c *Connections) counted(t *http.Transport, conn net.Conn) net.Conn {
	return &connection{conn, sync.OnceValue(func() error {
		err := conn.Close()
		c.give(t)
		return err
	})}
}

// Retire says that other grants have taken g's place: of its connections none is idle from now on. Requests that are under way, and
// those of calls that are, go on.
func (g *Grant) Retire() {
	g.retired.Store(true)
	g.closeIdle()
}

func (g *Grant) closeIdle() {
	for _, r := range g.rules {
		r.transport.CloseIdleConnections() // and those that become idle before the next request
	}
}
