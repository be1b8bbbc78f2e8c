package server

import (
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// The limits of what a client can prolong or enlarge.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second // header and body
	replyTimeout      = 30 * time.Second // writing the answer, after the longest call
	idleTimeout       = 2 * time.Minute  // between two requests of a connection
	maxHeader         = 32 << 10         // bytes, request line included
	maxConns          = 10_000           // open connections at most
	flushTimeout      = time.Second      // the last answers of a drain, on their way
	drainLimit        = 30 * time.Second // what orchestrators give a process between SIGTERM and SIGKILL
)

// connMemory is what a connection is counted with, in bytes: two buffers and the stacks of two goroutines, a small head, a small body, and
// as much again until Go's collector has been there.
const connMemory = 32 << 10

// newConnections returns none, with how many there may be, given the process's limit of descriptors and its memory. A quarter of the
// descriptors is kept for files, half of that for those of guests. Connections may take a sixteenth of the memory, and unfinished heads
// a sixty-fourth.
func newConnections(descriptors, memory int64, logger *slog.Logger) *connections {
	all := allConnections(descriptors)
	most := max(1, min(maxConns, memory/16/connMemory, all*16/17))
	return &connections{
		most: most, spare: max(1, most/16), all: all, heads: memory / 64, logger: logger,
		tardy: tardy, newcomer: newcomer, left: make(chan struct{}, 1),
	}
}

// allConnections returns how many there may be together with those that tools have to the services that they ask.
func allConnections(descriptors int64) int64 { return max(2, descriptors-descriptors/4) }

// mostStreams returns how many of the connections may be streams that last for hours. The rest is for requests.
func mostStreams(connections int64) int { return int(max(1, connections-connections/10)) }

// mostSessions returns how many sessions MCP clients may have, most of them without a stream: each takes a third of a connection.
func mostSessions(connections int64) int { return int(min(maxConns, 4*connections)) }

// HeapLimit returns how large Go's heap should get at most, in bytes: nine tenths of the memory that the process has, less
// what tools and their code may take, but at least a quarter of all. Memory for compiling counts as both.
func HeapLimit(c *config.Config) int64 {
	machine, tools, code := account.MachineMemory(), c.Server.Memory, c.Server.CodeMemory
	if tools == 0 {
		tools = account.DefaultMemory()
	}
	if code == 0 {
		code = account.DefaultCode()
	}
	return max(machine/4, machine/10*9-tools-code)
}

// bodyMemory returns how many bytes of large arguments and results all calls may hold, of the memory that the process has. Checks may take
// a quarter as much, and what they need more comes from that of the tools.
func bodyMemory(machine int64) int64 { return min(256<<20, machine/8) }

// writeTimeout returns how long a request may take from the end of its header to the end of the answer. For net/http that
// includes reading the body and running the tool.
func writeTimeout(c *config.Config) time.Duration {
	longest := c.Limits.Timeout
	for _, o := range c.Overrides {
		longest = max(longest, o.Limits.Timeout)
	}
	return readTimeout + longest + replyTimeout
}
