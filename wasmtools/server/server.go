// Package server puts the parts together: it listens, serves the tools of a directory over HTTP, takes up a changed
// configuration, drains running calls and closes everything in order.
package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/directory"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A Server is the whole service. Its address is bound from New on, requests are answered while Run runs.
type Server struct {
	logger   *slog.Logger
	listener net.Listener
	engine   *sandbox.Engine
	source   *directory.Directory
	catalog  *catalog.Catalog
	auth     *auth.BearerTokenAuth
	web      *web.Mux
	rest     *openapi.Door
	http     *http.Server
	cut      context.CancelFunc // ends the context of all requests
	calls    inFlight
	conns    connections
	draining atomic.Bool
	drain    time.Duration // how long running calls may take to finish
	// writeTimeout is that of the configuration in force; http.WriteTimeout is that of the start.
	writeTimeout atomic.Int64

	started *config.Config // what cannot change without a restart is read from here
	began   time.Time      // when New was called
	reload  sync.Mutex     // one Reload at a time; guards what follows
	current *config.Config // that of the last Reload
	listed  bool           // all tools are, so that what matches none is wrong

	unmatched chan struct{} // receives a value when it is to be warned of what is unmatched once the catalog has settled

	once   sync.Once
	closed error
}

// New binds the configured address, begins to read the tools directory and gets everything ready for Run, logging to logger
// (nil discards). Run serves while the directory is being read. A refused file is no error; a missing directory or an address
// in use is. The caller must call Run or Close.
//
// Tools are tools of the program itself, which are served beside those of the directory; see [catalog.Options].
func New(ctx context.Context, c *config.Config, logger *slog.Logger, tools ...*wasmtools.Tool) (*Server, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		logger: logger, started: c, current: c, began: time.Now(), drain: drainLimit, cut: func() {}, unmatched: make(chan struct{}, 1),
	}
	s.conns.most, s.conns.logger = mostConnections(descriptors()), logger
	if err := s.open(ctx, c, tools); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open fills in the parts, cheapest failure first. What was opened before an error is left to Close.
func (s *Server) open(ctx context.Context, c *config.Config, tools []*wasmtools.Tool) (err error) {
	if s.auth, err = newAuth(c); err != nil {
		return err
	}
	if err := CheckDirectory(c); err != nil {
		return err
	}
	if s.listener, err = listen(ctx, c.Server.Address); err != nil {
		return err
	}
	if s.engine, err = sandbox.New(ctx, sandbox.Config{Imports: abi1.Sets(), CacheDir: s.cacheDir(c), Memory: c.Server.Memory, CodeMemory: c.Server.CodeMemory, Logger: slog.New(tracer{s.logger.Handler()})}); err != nil {
		return fmt.Errorf("start the sandbox engine: %w", err)
	}
	s.source, err = directory.Open(c.Tools.Directory, directory.Options{Modules: c.Tools.Modules, Logger: s.logger})
	if err != nil {
		return fmt.Errorf("open the tools directory: %w", err)
	}
	s.catalog, err = catalog.Start(ctx, catalog.Options{
		Source: s.source,
		Engine: s.engine,
		Limits: c.LimitsFor,
		Policy: policy(c),
		Record: RecordFile(c),
		Tools:  tools,
		Logger: s.logger,
	})
	if err != nil {
		return fmt.Errorf("start the catalog: %w", err)
	}
	s.web = web.NewMux(web.Options{
		Dependencies: []web.Dependency{readiness{s}, auth.Dependency(s.auth)},
		Logger:       s.logger,
		Ready:        s.ready,
	})
	s.rest = openapi.NewDoor(s.web, s.catalog.Table(), openapi.DoorOptions{
		Title:       c.Title,
		Version:     c.Version,
		Description: c.Description,
		Servers:     servers(c),
		Logger:      s.logger,
		Settled:     s.catalog.Settled,
	})
	s.web.Mount("/", s.rest)
	s.serveWith(ctx, writeTimeout(c))
	return nil
}

// servers returns the addresses that the document names.
func servers(c *config.Config) []string {
	if c.Server.PublicURL == "" {
		return nil
	}
	return []string{c.Server.PublicURL}
}

// serveWith makes the HTTP server, with a limit on everything that a client can stretch.
func (s *Server) serveWith(ctx context.Context, write time.Duration) {
	// Requests outlive the context of Run, which begins the drain; they end with cut.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
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
		ConnContext:                  withWire,
		ErrorLog:                     slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		ConnState:                    s.conns.changed,
	}
}

// serve answers a request, and counts those that a drain waits for. A write time-out that Reload changed is set here:
// that of http.Server must not change while it serves.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if d := time.Duration(s.writeTimeout.Load()); d != s.http.WriteTimeout {
		// A connection that takes no deadline is gone; the answer's write reports it.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
	}
	// A request that comes after the drain began is answered, too: readiness refuses a call, and probes go on.
	if slot, counted := s.calls.add(r.URL.Path); counted {
		defer s.calls.remove(slot)
	}
	if isDoubtful(r) {
		w.Header().Set("Connection", "close")
	}
	s.web.ServeHTTP(w, r)
}

// Addr returns the address that the server is bound to; the port is the real one where ":0" was configured.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Table returns the table of the tools that are served, the same one at every call.
func (s *Server) Table() *wasmtools.RouteTable { return s.catalog.Table() }

// Run serves until ctx ends. Then /readyz answers 503 and so do new calls, while running ones may finish for at most
// 30 seconds; those that are left are cut off, the server is closed, and Run returns nil. It returns an error
// where the server could not go on or could not be closed. It must be called only once.
func (s *Server) Run(ctx context.Context) error {
	s.logAuth(s.started)
	s.logger.Info("listening", "address", s.Addr().String())
	told := make(chan struct{})
	telling, stopTelling := context.WithCancel(ctx)
	defer stopTelling()
	go func() {
		defer close(told)
		s.logReady(telling)
		s.warnAfterReloads(telling)
	}()

	served := make(chan error, 1)
	go func() { served <- s.http.Serve(wires{s.listener}) }()
	select {
	case err := <-served:
		err = errors.Join(fmt.Errorf("accept connections on %s: %w", s.Addr(), err), s.Close())
		stopTelling()
		<-told
		return err
	case <-ctx.Done():
	}

	<-told
	s.drainCalls()
	<-served // ErrServerClosed; from here on no connection is added
	err := s.Close()
	s.logger.Info("stopped")
	return err
}

// logReady says once that all tools are listed.
func (s *Server) logReady(ctx context.Context) {
	if err := s.catalog.Wait(ctx); err != nil {
		return // stopped before
	}
	generation := s.catalog.Table().Current()
	s.logger.Info("ready", "tools", len(generation.Routes()), "refused", len(generation.Refused()),
		"took", time.Since(s.began).Round(time.Millisecond).String())
	s.reload.Lock()
	defer s.reload.Unlock()
	s.listed = true
	s.warnUnmatched(s.current)
}

// Close cuts off all calls and releases everything; it waits until that is done. It is for a server that is not run:
// Run closes the server itself. Calling it again returns the first call's result.
func (s *Server) Close() error {
	s.once.Do(func() { s.closed = s.close() })
	return s.closed
}

// close goes from the outside in: nobody may call what is closed.
func (s *Server) close() error {
	var errs []error
	s.cut()
	if s.http != nil {
		errs = append(errs, s.http.Close())
		s.conns.open.Wait()
	}
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.rest != nil {
		errs = append(errs, s.rest.Close(), s.web.Close())
	}
	if s.catalog != nil {
		errs = append(errs, s.catalog.Close())
	}
	if s.source != nil {
		errs = append(errs, s.source.Close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close(context.Background()))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the server: %w", err)
	}
	return nil
}

// CacheDir returns where compiled code is kept.
func CacheDir(c *config.Config) (string, error) {
	if c.Tools.CacheDir != "" {
		return c.Tools.CacheDir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "toolsrv"), nil
}

// RecordFile returns where it is noted who keeps a path of the tools directory, as [catalog.Options] have it, or "".
func RecordFile(c *config.Config) string {
	cache, err := CacheDir(c)
	if err != nil {
		return ""
	}
	directory, err := filepath.Abs(c.Tools.Directory)
	if err != nil {
		return ""
	}
	id := sha256.Sum256([]byte(directory))
	return filepath.Join(cache, fmt.Sprintf("paths-%x.json", id[:8]))
}

// cacheDir returns where compiled code is kept, or "" where no place is known.
func (s *Server) cacheDir(c *config.Config) string {
	directory, err := CacheDir(c)
	if err != nil {
		s.logger.Warn("compiled tools are not kept on disk, so every start compiles them again: set tools.cache_directory", "error", err)
	}
	return directory
}
