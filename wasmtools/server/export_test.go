package server

import (
	"context"
	"net/http"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
)

// SetDrain changes how long running calls may take to finish. It must be called before Run.
func (s *Server) SetDrain(d time.Duration) { s.drain = d }

// SetConnections changes how many connections may be open, and how many more in spare places. It must be called before Run. A waiting client can be
// disconnected at once to make room.
func (s *Server) SetConnections(most, spare int64) {
	s.conns.both.AddClients(spare - s.conns.spare)
	s.conns.most, s.conns.spare, s.conns.tardy, s.conns.newcomer = most, spare, 0, 0
}

// SetHeads changes how many bytes large heads may take together. It must be called before Run.
func (s *Server) SetHeads(n int64) { s.conns.heads = n }

// Heads returns how many bytes large heads take together.
func (s *Server) Heads() int64 {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.held
}

// Waiting returns how many connections wait for a request, and how many for more of a body.
func (s *Server) Waiting() (requests, bodies int) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.unknown.n + s.conns.known.n, s.conns.bodies.n
}

// Hurry gives up a slow body, as a call does if there is no memory for its arguments.
func (s *Server) Hurry() bool { return s.conns.hurry() }

// HTTP returns the HTTP server, so that a test can check its limits.
func (s *Server) HTTP() *http.Server { return s.http }

// SetWriteTimeout changes the write timeout, as Reload does.
func (s *Server) SetWriteTimeout(d time.Duration) { s.writeTimeout.Store(int64(d)) }

// Mount adds a door. It must be called before Run.
func (s *Server) Mount(path string, door web.Door) { s.mount(path, door) }

// Calls returns how many calls of guests are running.
func (s *Server) Calls() int { return s.service.Engine.State().Calls }

// ServeStdioWithin does what ServeStdio does, but the first message waits for at most the given time.
func ServeStdioWithin(ctx context.Context, of *core.Service, o StdioOptions, patience time.Duration) error {
	return serveStdio(ctx, of, o, patience)
}

// Toolset returns the tools as MCP shows them.
func (s *Server) Toolset() *toolset.Set {
	for _, door := range s.doors {
		if d, ok := door.(mcpDoor); ok {
			return d.tools
		}
	}
	return nil
}

// EndUnread ends incomplete requests, as a stopping server does.
func (s *Server) EndUnread(now time.Time) { s.conns.endUnread(now) }

// Taken returns how many places clients take, and how many bytes large heads take.
func (s *Server) Taken() (places, heads int64) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.number, s.conns.held
}

// Writing returns how many parts of answers are being written.
func (s *Server) Writing() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.writing.n
}

// Principals returns the callers that are known by name.
func (s *Server) Principals() []*wasmtools.Principal { return administered{s}.Principals() }

// Look prepares a configuration, and returns the changes that it would make, as a dry run of the operation reload does.
func (s *Server) Look(c *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	before, next, err := s.prepare((*public.Config)(c.Handle()), true)
	if err == nil {
		(&prepared{server: s, before: before, next: next}).Changes()
	}
	return err
}
