package server

import (
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
)

// Limits of everything that a client can prolong or enlarge.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second // header and body
	replyTimeout      = 30 * time.Second // the time for writing the answer, after the longest call
	idleTimeout       = 2 * time.Minute  // the time between two requests of a connection
	maxHeader         = 32 << 10         // the bytes of a head, including the request line
	maxConns          = 12_000           // the most open connections: nine tenths of them suffice for 10,000 streams
	maxSessions       = 10_000           // of MCP clients
	flushTimeout      = time.Second      // the time for the last answers of a drain to arrive
	drainLimit        = 30 * time.Second // the time that orchestrators leave between SIGTERM and SIGKILL
)

// connMemory is how many bytes are counted for a connection: two buffers and the stacks of two goroutines, a small head, a small body, and as much
// again for garbage that is not collected yet.
const connMemory = 32 << 10

// newConnections returns an empty connections. Its limits depend on how many connections the process may have, in and out, and on its
// memory: connections may take a sixteenth of the memory, and unfinished heads a sixty-fourth.
func newConnections(both *core.Connections, memory int64, logger *slog.Logger) *connections {
	most := max(1, min(maxConns, memory/16/connMemory, both.All()*16/17))
	c := &connections{
		most: most, spare: max(1, most/16), both: both, heads: memory / 64, logger: logger,
		tardy: tardy, newcomer: newcomer, left: make(chan struct{}, 1), all: map[*watchedConn]struct{}{},
	}
	both.AddClients(c.spare)
	return c
}

// mostStreams returns how many connections may be streams, which last for hours. The rest is for requests.
func mostStreams(connections int64) int { return int(max(1, connections-connections/10)) }

// mostSessions returns how many MCP sessions there may be. Most have no stream, and take a small part of a connection's memory.
func mostSessions(connections int64) int { return int(min(maxSessions, 4*connections)) }

// writeTimeout returns how long a request may take from the end of its header to the end of the answer. In net/http that includes reading the body
// and running the tool.
func writeTimeout(c *config.Config) time.Duration {
	longest := c.Limits.Timeout
	for _, o := range c.Overrides {
		longest = max(longest, o.Limits.Timeout)
	}
	return readTimeout + longest + replyTimeout
}
