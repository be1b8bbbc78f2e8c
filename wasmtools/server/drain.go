package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

var errDraining = errors.New("the server is shutting down")

// errCut is the end of calls that the drain has not waited for. Their clients are still there, and have not given up.
var errCut = &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: "The server shut down before the call was done; try again."}

// drainCalls lets running calls finish within the limit, and cuts off those that are left. Meanwhile the server still answers:
// probes learn that it is not ready, and new calls that they should go elsewhere. (Shutdown of net/http would drop both
// without an answer.)
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
	// An error means that a client is too slow to read. Close cuts it off.
	_ = s.http.Shutdown(flush)
}

// maxCutLines is how many paths the log names whose calls are cut off.
const maxCutLines = 50

// logCut logs which calls are about to be cut off.
func (s *Server) logCut() {
	running := s.calls.byPath()
	all := 0
	for _, n := range running {
		all += n
	}
	s.logger.Warn("cutting off the calls that still run", "after", s.drain.String(), "calls", all)
	for i, path := range slices.Sorted(maps.Keys(running)) {
		if i == maxCutLines {
			s.logger.Warn("calls at more paths are cut off", "paths", len(running)-maxCutLines)
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

// condition returns what /readyz tells beside the server's being ready.
func (s *Server) condition() (c web.Condition) {
	compiled := s.service.Catalog.Compiled()
	c.Compiled = &compiled
	if s.service.State.Broken() != nil {
		c.State = web.StateUnavailable
	}
	return c
}

// refuseDraining returns why no new request is answered while the server drains: a *wasmtools.Error with CodeNotReady. Otherwise it is nil.
func (s *Server) refuseDraining() error {
	if !s.draining.Load() {
		return nil
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "The server is shutting down; try again."}
}
