// Package server puts the parts together: it listens, serves the tools of a directory over HTTP, takes up a changed
// configuration, drains running calls and closes everything in order.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/mcp"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A Server is the whole service. Its address is bound by New. Requests are answered while Run runs.
type Server struct {
	logger   *slog.Logger
	listener net.Listener
	core     *core
	web      *web.Mux
	rest     *openapi.Door
	tools    *toolset.Set // nil: no MCP
	mcp      *mcp.Door
	http     *http.Server
	cut      context.CancelCauseFunc // ends the context of all requests
	calls    inFlight
	conns    *connections
	draining atomic.Bool
	handing  atomic.Bool   // HandOver was called
	drain    time.Duration // how long running calls may take to finish
	// writeTimeout is that of the current configuration; http.WriteTimeout is that of the start.
	writeTimeout atomic.Int64

	started *config.Config // the configuration of the start, for settings that need a restart
	reload  sync.Mutex     // one Reload at a time; guards what follows
	listed  bool           // all tools are, so that an entry that matches none is a mistake
	over    bool           // the parts are closed

	unmatched chan struct{} // holds a value when warnUnmatched is to be called once the catalog has settled

	once   sync.Once
	closed error
}

// New binds the configured address, begins to read the tools directory, and prepares everything for Run. It logs to logger; nil
// discards. Run serves while the directory is being read. A missing directory or an address in use is an error; a refused file
// is not. The caller must call Run or Close.
//
// No line of that logger has a secret of the configuration. Package net/http has lines of its own for the standard logger of package
// log, which may quote what a server sent to a tool: a program that grants secrets should give that one another output.
//
// tools are those of the program itself. They are served beside those of the directory, from the start.
func New(ctx context.Context, c *config.Config, logger *slog.Logger, tools ...*wasmtools.Tool) (*Server, error) {
	k := newCore(logger)
	s := &Server{
		logger: k.logger, core: k, started: c, drain: drainLimit, cut: func(error) {}, unmatched: make(chan struct{}, 1),
		conns: newConnections(account.MachineDescriptors(), account.MachineMemory(), k.logger),
	}
	k.outside = s.conns
	if err := s.open(ctx, c, tools); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the parts, first those that fail most cheaply. After an error, Close closes what was opened.
func (s *Server) open(ctx context.Context, c *config.Config, tools []*wasmtools.Tool) (err error) {
	if err := CheckDirectory(c); err != nil {
		return err
	}
	if s.listener = c.Server.Listener; s.listener == nil {
		if s.listener, err = listen(ctx, c.Server.Address); err != nil {
			return err
		}
	}
	configure := func(c *config.Config) (*configuration, error) { return s.configure(c, nil) }
	if err := s.core.openDirectory(ctx, c, configure, tools); err != nil {
		return err
	}
	s.web = web.NewMux(web.Options{
		Table:     s.core.catalog.Table(), // its configuration says who is let in
		Closed:    s.refuseDraining,
		Logger:    s.logger,
		Ready:     s.ready,
		Condition: s.condition,
	})
	s.rest = openapi.NewDoor(s.web, s.core.catalog.Table(), openapi.DoorOptions{
		Title:       c.Title,
		Version:     c.Version,
		Description: c.Description,
		Servers:     servers(c),
		Invoker:     s.core.invoker,
		Logger:      s.logger,
		Settled:     s.core.catalog.SettledAt,
	})
	s.web.Mount("/", s.rest)
	if c.MCP.Enabled {
		s.tools = s.core.toolset(c)
		s.mcp = mcp.NewDoor(s.tools, mcp.Options{Settled: s.core.catalog.Settled, Streams: mostStreams(s.conns.most), Sessions: mostSessions(s.conns.most)})
		s.web.Mount(mcp.Path, s.mcp)
	}
	s.serveWith(ctx, writeTimeout(c))
	return nil
}

// servers returns the addresses for the OpenAPI document.
func servers(c *config.Config) []string {
	if c.Server.PublicURL == "" {
		return nil
	}
	return []string{c.Server.PublicURL}
}

// serveWith makes the HTTP server, with a limit on everything that a client can prolong.
func (s *Server) serveWith(ctx context.Context, write time.Duration) {
	// The end of Run's context begins the drain. Requests go on until cut.
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cut = cut
	s.writeTimeout.Store(int64(write))
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      write,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// net/http would answer OPTIONS * by itself, without a token and without a line in the log.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return requests },
		ConnContext:                  withConn,
		ErrorLog:                     slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		ConnState:                    s.conns.changed,
	}
}

// serve answers a request, and counts it for the drain. It sets a write time-out that Reload has changed, since that of
// http.Server must not change while it serves.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if d := time.Duration(s.writeTimeout.Load()); d != s.http.WriteTimeout {
		// A connection that takes no deadline is gone; the answer's write reports it.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
	}
	// A request that comes during the drain is answered, too: a call by readiness, and probes as always.
	if slot, counted := s.calls.add(r.URL.Path); counted {
		defer s.calls.remove(slot)
	}
	if isDoubtful(r) || isSpare(r) || s.conns.leaving.Load() {
		w.Header().Set("Connection", "close")
	}
	s.web.ServeHTTP(w, r)
}

// Addr returns the address that the server is bound to, with the real port if ":0" was configured.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Table returns the table of the tools that are served, the same at every call.
func (s *Server) Table() *wasmtools.RouteTable { return s.core.catalog.Table() }

// Run serves until ctx ends. From then on /readyz and new calls are answered with 503, and running calls have 30 seconds to
// finish. Those that are left are cut off, the server is closed, and Run returns nil. It returns an error if the server can't
// go on or can't be closed. It must be called only once.
func (s *Server) Run(ctx context.Context) error {
	s.logDecided(s.started)
	s.logAuth(s.core.inForce())
	s.logger.Info("listening", "address", s.Addr().String())
	told := make(chan struct{})
	telling, stopTelling := context.WithCancel(ctx)
	defer stopTelling()
	go func() {
		defer close(told)
		var compiled sync.WaitGroup
		compiled.Go(func() { s.logCompiled(telling) })
		defer compiled.Wait()
		s.logReady(telling)
		s.warnWhenSettled(telling)
	}()

	served := make(chan error, 1)
	go func() {
		defer close(served)
		s.waitForTools(telling)
		served <- s.http.Serve(watchedListener{s.listener, s.conns})
	}()
	select {
	case err := <-served:
		err = errors.Join(fmt.Errorf("accept connections on %s: %w", s.Addr(), err), s.Close())
		stopTelling()
		<-told
		return err
	case <-ctx.Done():
	}

	<-told
	if s.handing.Load() {
		s.leave(served)
	} else {
		s.drainCalls()
	}
	<-served // ErrServerClosed: no connection is added from here on
	err := s.Close()
	s.logger.Info("stopped")
	return err
}

// logCompiled logs once that all tools are compiled, some time after they are listed.
func (s *Server) logCompiled(ctx context.Context) {
	if s.core.catalog.WaitCompiled(ctx) == nil {
		s.logger.Info("all tools are compiled", "took", time.Since(s.core.began).Round(time.Millisecond).String())
	}
}

// logReady logs once that all tools are listed.
func (s *Server) logReady(ctx context.Context) {
	if !s.core.logReady(ctx) {
		return // it was stopped before
	}
	s.reload.Lock()
	defer s.reload.Unlock()
	s.listed = true
	s.warnUnmatched()
}

// Close cuts off all calls and closes everything, and waits until that is done. It is for a server that is not run: Run closes the
// server itself. A second Close returns the result of the first.
func (s *Server) Close() error {
	s.once.Do(func() { s.closed = s.close() })
	return s.closed
}

// close closes the parts from the outside in, so that nobody calls one that is closed.
func (s *Server) close() error {
	s.reload.Lock()
	s.over = true // a reload would open some of them again
	s.reload.Unlock()
	var errs []error
	s.cut(errCut)
	if s.http != nil {
		errs = append(errs, s.http.Close())
		s.conns.open.Wait()
		s.conns.quiet()
	}
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.rest != nil {
		errs = append(errs, s.rest.Close(), s.web.Close())
	}
	if s.mcp != nil {
		errs = append(errs, s.mcp.Close(), s.tools.Close())
	}
	errs = append(errs, s.core.close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the server: %w", err)
	}
	return nil
}
