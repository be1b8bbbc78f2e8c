// Package server serves the tools of a [service.Service] over HTTP, through the doors of its configuration and those of the program: it listens, puts
// changed configurations in force, and drains running calls. Without HTTP, ServeStdio serves one MCP client.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin/socket"
	inner "github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/console"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/door"
	"github.com/toolsrv/toolsrv/internal/events"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/oidc"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/slow"
	"github.com/toolsrv/toolsrv/internal/tlsfiles"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/service"
	public "github.com/toolsrv/toolsrv/wasmtools/web"
)

// Options are what a Server has in addition to its configuration. The zero value is usable.
type Options struct {
	// Doors are served beside the configuration's, by their paths: a path must be one that no tool can have, such as "/hello.api". They get
	// the tools from the service, and from each request. A door that is an io.Closer is closed with the server, once it has no more
	// requests, but not if New fails.
	Doors map[string]public.Door
	// Verifiers identify callers in addition to the tokens of the configuration: one that knows the caller is enough. They are asked after the
	// tokens, in this order, and stay in use when the configuration changes. No credentials are needed while they and the tokens are all open, so a
	// verifier that is not open closes a server without tokens. New panics if one is nil, or has a scheme that is not valid.
	Verifiers []auth.Verifier
	// Observers are told of each request, in addition to the log.
	Observers []public.Observer
	// Load reads the configuration again, for an operator who asks for a reload. It is called concurrently. If nil, operators can't ask for one.
	Load func() (*config.Config, error)
	// Listeners are used in place of the configured addresses. The Server closes them, even if New fails.
	Listeners []net.Listener
	// Awaited says that clients may already be waiting at the Listeners, for example because another program has opened them. Then
	// connections are accepted only once the tools are listed, or after ten seconds.
	Awaited bool
}

// A Server answers requests while Run runs. Its addresses are bound before Run is called.
type Server struct {
	logger    *slog.Logger
	listeners []net.Listener // at least one after New has returned
	verifiers []auth.Verifier
	service   *core.Service
	web       *web.Mux
	doors     []web.Door // in the order in which they were mounted
	http      *http.Server
	load      func() (*config.Config, error) // nil if operators can't reload
	admin     *socket.Server                 // nil if there is none
	requests  *requests                      // nil if requests are not counted
	reloads   reloads
	metrics   *metricsServer          // nil if metrics have no separate address
	http2     *http.Server            // for the HTTP/2 connections of http
	files     *tlsfiles.Source        // nil: no TLS
	cut       context.CancelCauseFunc // ends the context of all requests
	calls     inFlight
	slow      *slow.Calls
	conns     *connections
	streams   *web.Places // of all doors
	draining  atomic.Bool
	awaited   bool          // clients may already be waiting when Run begins
	handing   atomic.Bool   // HandOver was called
	drain     time.Duration // how long running calls may take to finish
	// writeTimeout is from the current configuration; http.WriteTimeout is from the one at the start.
	writeTimeout atomic.Int64

	started   *inner.Config // the configuration at the start, for settings that need a restart
	reload    sync.Mutex    // held during a Reload; guards the fields below
	issuer    *oidc.Issuer  // the issuer whose keys are being read; nil if there is none
	endIssuer func()        // stops reading its keys
	listed    bool          // all tools are known, so an entry that matches no tool is a mistake
	over      bool          // whether the parts are closed

	forget func() // ends the subscription to the tokens of the state; nil if there is none

	unmatched chan struct{} // holds a value if warnUnmatched must be called when the catalog has read all files

	once   sync.Once
	closed error
}

// New makes a Server for an open service and prepares everything for Run. From then on the server's configuration applies to requests. Tools are
// served while their files are still being read. An address in use is an error. The caller must call Run or Close, and then close the service,
// which takes one Server at a time.
func New(ctx context.Context, handle *service.Service, o Options) (*Server, error) {
	of := (*core.Handle)(handle).Service()
	s := &Server{
		logger: of.Logger, service: of, listeners: o.Listeners, awaited: o.Awaited, verifiers: slices.Clone(o.Verifiers), load: o.Load, started: of.InForce().Config, drain: drainLimit, cut: func(error) {},
		unmatched: make(chan struct{}, 1), slow: slow.New(), conns: newConnections(of.Connections, account.MachineMemory(), of.Logger),
	}
	if err := s.open(ctx, &o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the parts. After an error, Close closes what was opened.
func (s *Server) open(ctx context.Context, o *Options) error {
	c := s.started
	if len(s.listeners) == 0 {
		s.listeners = c.Server.Listeners
	}
	var err error
	if len(s.listeners) == 0 {
		if s.listeners, err = listen.All(ctx, c.Server.Addresses); err != nil {
			return err
		}
	}
	if s.files, err = openTLS(c, s.logger); err != nil {
		return err
	}
	first, err := s.configure(c, nil, false)
	if err != nil {
		return err
	}
	if err := s.service.Publish(first); err != nil {
		return err
	}
	follow(s, first)
	s.web = web.NewMux(web.Options{
		Table:        s.service.Table, // the server's configuration says who is let in
		Dependencies: s.lasting(),
		Closed:       s.refuseDraining,
		Logger:       s.logger,
		Observers:    append(s.observers(c), door.Observers(o.Observers)...),
		Tracer:       s.service.Tracer,
		Ready:        s.ready,
		Condition:    s.condition,
		Socket:       socketOf,
	})
	s.mount("/", openapi.NewDoor(s.web, s.service.Table, openapi.DoorOptions{
		Title:       c.Title,
		Version:     c.Version,
		Description: c.Description,
		Servers:     servers(c),
		Invoker:     s.service.Invoker,
		Logger:      s.logger,
	}))
	s.mount(resourcePath, resourceDoor{s})
	s.streams = web.NewPlaces(mostStreams(s.conns.most))
	s.mount(events.Path, events.NewDoor(s.service.Events, events.Options{
		Places: s.streams,
		Off:    func(g *wasmtools.Generation) bool { return !s.under(g).Events.Enabled },
		Admin:  func() bool { return !administered{s}.isOff(nil) },
	}))
	if c.MCP.Enabled {
		tools := newToolset(s.service)
		s.mount(mcp.Path, mcpDoor{mcp.NewDoor(tools, mcp.Options{
			Streams: s.streams, Sessions: mostSessions(s.conns.most), Keys: s.service.Keys, Peers: s.service.State.Peers(),
		}), tools})
	}
	if err := openMetrics(ctx, s, c); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(o.Doors)) {
		s.mount(path, door.Of(o.Doors[path]))
	}
	pages := console.Doors(console.Options{
		Title:       c.Title,
		Version:     c.Version,
		Description: c.Description,
		Address:     strings.TrimSuffix(c.Server.PublicURL, "/"),
		MCP:         c.MCP.Enabled,
		Hidden:      !c.Console.Enabled,
	})
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		if o.Doors[path] == nil { // an embedding program may have pages of its own there
			s.mount(path, pages[path])
		}
	}
	s.forget = s.service.Tokens.Subscribe(s.recheck)
	s.inForce().named.InForce()
	s.serveWith(ctx, writeTimeout(c))
	return administered{s}.open(c)
}

// observers returns the observers of requests, besides the log.
func (s *Server) observers(c *inner.Config) []web.Observer {
	all := []web.Observer{attempts{s.service.Audit}, s.slow}
	if core.Counts(c) {
		s.requests = newRequests()
		all = append(all, s.requests)
	}
	return all
}

// recheck is called after tokens have changed, and ends the streams and sessions of callers who are no longer let in.
func (s *Server) recheck() {
	s.web.Recheck()
	for _, door := range s.doors {
		if d, ok := door.(interface {
			EndSessions(ended func(*wasmtools.Principal) bool)
		}); ok {
			d.EndSessions(s.inForce().named.Ended)
		}
	}
}

// mount adds a door, which close closes.
func (s *Server) mount(path string, door web.Door) {
	s.doors = append(s.doors, door)
	s.web.Mount(path, door)
}

// An mcpDoor is the door of MCP with its set of tools.
type mcpDoor struct {
	*mcp.Door
	tools *toolset.Set
}

// Close closes both.
func (d mcpDoor) Close() error { return errors.Join(d.Door.Close(), d.tools.Close()) }

// lasting returns the verifiers that outlive a configuration: the tokens of the state and the program's own. The documents follow the
// changes of these verifiers as well.
func (s *Server) lasting() []web.Dependency {
	return []web.Dependency{auth.Dependency(append([]auth.Verifier{s.inForce().named}, s.verifiers...)...)}
}

// newToolset returns the tools as MCP shows them. The caller must close it before the service.
func newToolset(of *core.Service) *toolset.Set {
	c := of.InForce()
	return toolset.New(of.Table, toolset.Options{
		Invoker: of.Invoker,
		Info:    toolset.Info{Title: c.Title, Version: c.Version, Instructions: c.Description},
		Search:  toolset.Search(c.MCP.Search),
		Logger:  of.Logger,
	})
}

// servers returns the addresses for the OpenAPI document.
func servers(c *inner.Config) []string {
	if c.Server.PublicURL == "" {
		return nil
	}
	return []string{c.Server.PublicURL}
}

// serveWith makes the HTTP server, with a limit on everything that a client can prolong.
func (s *Server) serveWith(ctx context.Context, write time.Duration) {
	// When Run's context ends, the drain begins. Requests may continue until s.cut is called.
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
		// By default, net/http answers OPTIONS * itself, without asking for a token and without a line in the log.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return requests },
		ConnContext:                  withConn,
		ErrorLog:                     slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		ConnState:                    s.conns.changed,
		HTTP2:                        http2Settings(),
	}
	s.http2 = newHTTP2(s.http)
}

// serve answers a request, and counts it for the drain. It sets the write timeout if Reload has changed it, since that of http.Server must not change
// while it serves.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if conn := connOf(r); conn != nil && conn.tls != nil {
		r.TLS = conn.tls.now()
	}
	if r.ProtoMajor == 2 {
		stream, ok := s.conns.begin(w, r)
		if !ok {
			return
		}
		if stream != nil {
			defer stream.end()
			w, r = stream.of(w, r)
		}
	}
	if d := time.Duration(s.writeTimeout.Load()); d != s.http.WriteTimeout {
		// If the deadline can't be set, the connection is gone; writing the answer will report that.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
	}
	// Requests during the drain are answered, too: calls with an error that says that the server is not ready, and probes as always.
	if slot, counted := s.calls.add(r.URL.Path); counted {
		defer s.calls.remove(slot)
	}
	if isDoubtful(r) || isSpare(r) || s.conns.leaving.Load() {
		w.Header().Set("Connection", "close")
	}
	s.web.ServeHTTP(w, r)
}

// Addr returns the address that the server is bound to, the first of several, with the real port if ":0" was configured.
func (s *Server) Addr() net.Addr { return s.listeners[0].Addr() }

// Table returns the table of the tools that are served, the same at every call.
func (s *Server) Table() *wasmtools.RouteTable { return s.service.Table }

// Run serves until ctx ends. From then on /readyz and new calls are answered with 503, and running calls have 30 seconds to
// finish. Calls that still run then are cut off, the server is closed, and Run returns nil. It returns an error if the server can't
// go on or can't be closed. It must be called only once. The service stays open. Run waits for each Serve of a door, whose
// context has ended by then.
func (s *Server) Run(ctx context.Context) error {
	logDecided(s.logger, s.started, s.conns.most)
	s.logAuth(s.inForce())
	for _, l := range s.listeners {
		s.logger.Info("listening", "address", l.Addr().String(), "tls", s.files != nil && l.Addr().Network() == "tcp")
	}
	told := make(chan struct{})
	telling, stopTelling := context.WithCancel(ctx)
	defer stopTelling()
	go func() {
		defer close(told)
		var beside sync.WaitGroup
		beside.Go(func() { s.logCompiled(telling) })
		if s.files != nil {
			beside.Go(func() { s.files.Watch(telling) })
		}
		defer beside.Wait()
		s.logReady(telling)
		s.warnOnceSynced(telling)
	}()

	served := make(chan error, len(s.listeners)) // closed when connections are no longer accepted
	go func() {
		defer close(served)
		s.waitForTools(telling)
		var all sync.WaitGroup
		for _, l := range s.listeners {
			all.Go(func() {
				if err := s.http.Serve(watchedListener{l, s.conns, s.files}); err != nil {
					served <- fmt.Errorf("accept connections on %s: %w", l.Addr(), err)
				}
			})
		}
		all.Wait()
	}()
	select {
	case err := <-served:
		err = errors.Join(err, s.Close())
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
	waitFor(served)
	err := s.Close()
	s.logger.Info("stopped")
	return err
}

// waitFor waits until connections are no longer accepted. Closed listeners are not an error then.
func waitFor(served <-chan error) {
	for range served {
	}
}

// logCompiled logs once when all tools are compiled, some time after they are listed.
func (s *Server) logCompiled(ctx context.Context) {
	if s.service.Catalog.WaitCompiled(ctx) == nil {
		s.logger.Info("all tools are compiled", "took", time.Since(s.service.Began).Round(time.Millisecond).String())
	}
}

// logReady logs once when all tools are listed.
func (s *Server) logReady(ctx context.Context) {
	if !s.service.LogReady(ctx) {
		return // the server was stopped before
	}
	s.reload.Lock()
	defer s.reload.Unlock()
	s.listed = true
	s.warnUnmatched()
}

// Close cuts off all requests and closes the server, and waits until that is done. It is for a server that is not run: Run closes the
// server itself. The service stays open. A second Close returns the result of the first.
func (s *Server) Close() error {
	s.once.Do(func() { s.closed = s.close() })
	return s.closed
}

// close closes the parts from the outside in, so that no part calls one that is closed.
func (s *Server) close() error {
	s.reload.Lock()
	s.over = true // a reload would open some parts again
	follow(s, nil)
	s.reload.Unlock()
	var errs []error
	s.cut(errCut)
	if s.http != nil {
		errs = append(errs, s.http.Close(), s.http2.Close())
		s.conns.open.Wait()
		s.conns.quiet()
	}
	if s.admin != nil {
		errs = append(errs, s.admin.Close())
	}
	if s.metrics != nil {
		errs = append(errs, s.metrics.close())
	}
	if s.service.Tracer != nil {
		if s.handing.Load() { // the next process can use the metrics address once this one has released it
			s.service.Tracer.Hurry()
		}
		s.service.Tracer.Gather(nil)
	}
	for _, l := range s.listeners {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.forget != nil {
		s.forget()
	}
	for _, door := range slices.Backward(s.doors) {
		if c, ok := door.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	if s.web != nil {
		errs = append(errs, s.web.Close())
	}
	s.conns.both.AddClients(-s.conns.spare)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the server: %w", err)
	}
	return nil
}

// Answers is for a watchdog. It requests /healthz through the server's first listener, as a client does, and returns an error if no answer comes
// before ctx ends. A server that is stopping is not asked, since its time is limited in another way.
func (s *Server) Answers(ctx context.Context) error {
	err := answers(ctx, s.Addr(), s.files != nil && s.Addr().Network() == "tcp")
	if err == nil || s.draining.Load() || s.conns.leaving.Load() {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil // the system does not allow this process to send the request, which says nothing about the server
	}
	return fmt.Errorf("ask %s for /healthz: %w", s.Addr(), err)
}
