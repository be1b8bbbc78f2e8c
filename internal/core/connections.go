package core

import "sync/atomic"

// Connections count those that a process has open, both ways: from tools to the services that they ask, and from clients. Both take
// from the same descriptors, tools up to half of them. They are safe for concurrent use.
type Connections struct {
	all            int64
	tools, clients atomic.Int64
}

// NewConnections returns none, given the process's limit of descriptors. A quarter of them is kept for files, half of that for those of
// guests.
func NewConnections(descriptors int64) *Connections {
	return &Connections{all: max(2, descriptors-descriptors/4)}
}

// All returns how many there may be together.
func (c *Connections) All() int64 { return c.all }

// AddClients counts n more of clients, or less where n is negative. A caller that counts a connection before it asks ForClients overlooks
// no tool, as Take overlooks no client.
func (c *Connections) AddClients(n int64) { c.clients.Add(n) }

// ForClients returns how many connections clients may have besides those of tools.
func (c *Connections) ForClients() int64 { return c.all - c.tools.Load() }

// Take counts a connection of a tool, or reports that there is no room for it.
func (c *Connections) Take() bool {
	if n := c.tools.Add(1); n > max(1, c.all/2) || n+c.clients.Load() > c.all {
		c.tools.Add(-1)
		return false
	}
	return true
}

// Give gives back what Take has counted.
func (c *Connections) Give() { c.tools.Add(-1) }
