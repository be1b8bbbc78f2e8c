package server

import (
	"context"
	"io"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/door"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/wasmtools/service"
	public "github.com/toolsrv/toolsrv/wasmtools/web"
)

// listPatience is how long the client's first message may wait until all tools are listed. Most clients ask for the list only once. Codex
// gives a server ten seconds to start, others give it thirty and more.
const listPatience = 5 * time.Second

// StdioOptions are the settings of ServeStdio. In and Out are required.
type StdioOptions struct {
	// In has the client's messages, and Out gets the server's. Nothing else is written to Out.
	In  io.Reader
	Out io.Writer
	// Observers are told of each request, in addition to the log. The service's observers are told of calls.
	Observers []public.Observer
}

// ServeStdio serves the tools of a service over MCP to the one client at the other end of In and Out, such as the program that started this
// one. It listens on no address, and asks for no token: whoever starts a program may call everything that it has. Limits, switches and
// tools of the configuration apply.
//
// It returns nil when In ends or ctx does. Calls that still run then have 5 seconds to finish, or are cancelled at once if ctx has ended. A
// Read of In may continue after that, since nothing can end a read of standard input. An Out that can't be written to is an error. The service stays
// open.
func ServeStdio(ctx context.Context, of *service.Service, o StdioOptions) error {
	return serveStdio(ctx, (*core.Handle)(of).Service(), o, listPatience)
}

func serveStdio(ctx context.Context, of *core.Service, o StdioOptions, patience time.Duration) error {
	set := newToolset(of)
	defer set.Close()

	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if of.LogReady(ctx) {
			of.WarnUnmatched()
		}
	}()
	defer func() { cancel(); <-ready }()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-ready:
	case <-limit.C:
		of.Logger.Warn("the client won't wait for files that are slow to read or describe: the first script waits until its interpreter is compiled, and a module needs a manifest from `toolsrv pack`")
	case <-ctx.Done():
		return nil
	}
	return session.Stdio(ctx, set, o.In, o.Out, session.StdioOptions{Ready: ready, Logger: of.Logger, Observers: door.Observers(o.Observers), Tracer: of.Tracer})
}
