package server

import (
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
	maxConns          = 10_000           // open connections at most; one more is closed at once
	flushTimeout      = time.Second      // the last answers of a drain, on their way
	drainLimit        = 30 * time.Second // what orchestrators give a process between SIGTERM and SIGKILL
)

// mostConnections returns how many connections may be open at a time, given the process's limit of descriptors. A quarter of that is
// kept for files, half of it for those of guests.
func mostConnections(descriptors int64) int64 {
	return min(maxConns, allConnections(descriptors))
}

// allConnections returns how many there may be together with those that tools have to the services that they ask.
func allConnections(descriptors int64) int64 { return max(1, descriptors-descriptors/4) }

// mostStreams returns how many of the connections may be streams that last for hours. The rest is for requests.
func mostStreams(connections int64) int { return int(max(1, connections-connections/10)) }

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

// bodyMemory returns how many bytes of large arguments and results all calls may hold, of the memory that the process has. Checking them
// takes several times as much.
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
