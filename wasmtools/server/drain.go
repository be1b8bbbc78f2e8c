package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin/socket"
	inner "github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

var errDraining = errors.New("the server is shutting down")

// errCut ends calls that the drain no longer waits for. Their clients are still connected.
var errCut = &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: "The server shut down before the call was done; try again."}

// drainCalls lets running calls finish within the limit, and then cuts off the rest. Meanwhile the server still answers: probes learn that it is not
// ready, and new calls are refused so that clients go elsewhere. (Shutdown of net/http would drop both without an answer.)
func (s *Server) drainCalls() {
	s.draining.Store(true)
	s.web.EndStreams()
	s.http.SetKeepAlivesEnabled(false)
	s.endHTTP2()
	s.logger.Info("draining", "limit", s.drain.String())
	limit := time.NewTimer(s.drain)
	defer limit.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for answered, waits := s.calls.close(), true; waits; {
		s.conns.endUnread(time.Now())
		select {
		case <-answered:
			waits = false
		case <-look.C:
		case <-limit.C:
			s.logCut()
			s.cut(errCut)
			waits = false
		}
	}
	flush, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	// An error means that a client is too slow to read. Close cuts that client off.
	_ = s.http.Shutdown(flush)
}

// maxCutLines is the largest number of paths for which the log lists calls that are cut off.
const maxCutLines = 50

// logCut logs which calls are about to be cut off.
func (s *Server) logCut() {
	running := s.calls.byPath()
	all := 0
	for _, n := range running {
		all += n
	}
	s.logger.Warn("cutting off the calls that are still running", "after", s.drain.String(), "calls", all)
	for i, path := range slices.Sorted(maps.Keys(running)) {
		if i == maxCutLines {
			s.logger.Warn("calls at more paths are being cut off", "paths", len(running)-maxCutLines)
			break
		}
		s.logger.Warn("calls cut off", "path", text.Clip(path, 256), "calls", running[path])
	}
}

// ready returns nil if /readyz should answer 200.
func (s *Server) ready() error {
	if s.draining.Load() {
		return errDraining
	}
	return s.service.Catalog.Ready()
}

// condition returns what /readyz says in addition to whether the server is ready.
func (s *Server) condition() (c web.Condition) {
	compiled := s.service.Catalog.Compiled()
	c.Compiled = &compiled
	switch {
	case s.service.State.Broken() != nil:
		c.State = web.StateUnavailable
	case s.service.State.CutOff() != nil:
		c.State = web.StateCutOff
	}
	return c
}

// refuseDraining returns a *wasmtools.Error with CodeNotReady while the server drains, and otherwise nil.
func (s *Server) refuseDraining() error {
	if !s.draining.Load() {
		return nil
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "The server is shutting down; try again."}
}

// leaveTime is a part of handing over. For this long, the server closes each connection after an answer. Then it closes the connections
// that were not used meanwhile.
const leaveTime = time.Second

// lookEvery is how often a stopping server looks for requests that it need not wait for.
const lookEvery = leaveTime / 10

// CheckRestart returns an error if the next process could not start with this configuration, because of its TLS files, its registries, or an admin
// socket or state directory that this process doesn't use.
func (s *Server) CheckRestart(handle *config.Config) error {
	c := (*inner.Handle)(handle).Config()
	if _, err := openTLS(c, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := core.CheckRegistries(c); err != nil {
		return err
	}
	if path := c.Admin.Socket; path != "" && path != inner.NoSocket && (s.admin == nil || s.admin.Path() != path) {
		if err := socket.Try(path); err != nil {
			return err
		}
	}
	if err := s.service.State.Check(c); err != nil {
		key := "state.directory"
		if c.State.URL != "" {
			key = "state.url"
		}
		return fmt.Errorf("try %s: %w", key, err)
	}
	return nil
}

// HandOver returns copies of the server's listeners for the process that takes this one's place, as its [Options.Listeners]. The caller
// closes the copies. After that, when Run's context ends, no client is turned away: for one more second, all requests are answered, and each answer
// ends its connection, so that clients open another one. Then connections wait in the listeners until the other process accepts them, while
// the calls that run have 30 seconds to finish. A request that has not arrived in full has one more second, or four if its client is known
// by a token.
func (s *Server) HandOver() ([]*os.File, error) {
	files := make([]*os.File, 0, len(s.listeners))
	for _, listener := range s.listeners {
		err := errors.New("it listens neither on TCP nor on a Unix socket")
		if l, ok := listener.(interface{ File() (*os.File, error) }); ok {
			var file *os.File
			if file, err = l.File(); err == nil {
				files = append(files, file)
			}
		}
		if err != nil {
			for _, file := range files {
				_ = file.Close()
			}
			return nil, fmt.Errorf("hand over the listener at %s: %w", listener.Addr(), err)
		}
	}
	for _, listener := range s.listeners {
		listen.Keep(listener)
	}
	s.handing.Store(true)
	return files, nil
}

// toolsTime is how long a client waits for the tools if it connected to a listener before the process began. Otherwise the client would be
// told at once that the tools are not ready. The time is short because probes wait as well.
const toolsTime = 10 * time.Second

// waitForTools waits until the tools are listed, if clients that connected before this process began may be waiting.
func (s *Server) waitForTools(ctx context.Context) {
	if len(s.started.Server.Listeners) == 0 && !s.awaited {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, toolsTime)
	defer cancel()
	_ = s.service.Catalog.Wait(ctx) // an error means that reading took too long, or that the server is stopping
}

// endHTTP2 makes HTTP/2 connections accept no further requests, and end once their present ones are answered.
func (s *Server) endHTTP2() { _ = s.http2.Shutdown(context.Background()) } // returns at once: it does not wait for these connections

// leave is the drain of a server that hands over. (Shutdown of net/http would drop requests that it has just read.) Before it waits for the
// connections, it waits until served is closed, which means that no new connection can come.
func (s *Server) leave(served <-chan error) {
	s.logger.Info("handing over", "limit", s.drain.String())
	limit := time.NewTimer(s.drain)
	defer limit.Stop()
	s.conns.leaving.Store(true)
	s.endHTTP2()
	time.Sleep(leaveTime)
	for _, l := range s.listeners {
		_ = l.Close() // new connections wait in its copy
	}
	waitFor(served)
	s.web.EndStreams()
	s.endHTTP2() // closes the connections that were made since then
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.conns.open.Wait()
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		now := time.Now()
		s.conns.closeUnasked(now.Add(-leaveTime))
		s.conns.endUnread(now)
		select {
		case <-gone:
			return
		case <-look.C:
		case <-limit.C:
			s.logCut()
			s.cut(errCut)
			flush, cancel := context.WithTimeout(context.Background(), flushTimeout)
			defer cancel()
			// An error means that a client is too slow to read. Close cuts that client off.
			_ = s.http.Shutdown(flush)
			return
		}
	}
}
