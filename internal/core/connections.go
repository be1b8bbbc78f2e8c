package core

import "sync/atomic"

// Connections counts a process's open connections: those of tools to services, and those of clients. Both use the same file descriptors, and tools
// may use up to half of them. It is safe for concurrent use.
type Connections struct {
	all            int64
	tools, clients atomic.Int64
}

// NewConnections returns Connections that count none yet. descriptors is how many file descriptors the process may have. A quarter of them is kept
// for files, and half of that quarter for files of guests.
func NewConnections(descriptors int64) *Connections {
	return &Connections{all: max(2, descriptors-descriptors/4)}
}

// All returns how many connections there may be in total.
func (c *Connections) All() int64 { return c.all }

// AddClients counts n more connections of clients, or fewer if n is negative. Count a connection before you call ForClients: then no connection of a
// tool is overlooked, just as Take overlooks none of a client.
func (c *Connections) AddClients(n int64) { c.clients.Add(n) }

// ForClients returns how many connections clients may have in addition to those of tools.
func (c *Connections) ForClients() int64 { return c.all - c.tools.Load() }

// Take counts a connection of a tool. It returns false if there is no room for it.
func (c *Connections) Take() bool {
	if n := c.tools.Add(1); n > max(1, c.all/2) || n+c.clients.Load() > c.all {
		c.tools.Add(-1)
		return false
	}
	return true
}

// Give gives back a connection that Take has counted.
func (c *Connections) Give() { c.tools.Add(-1) }
