package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

var errDraining = errors.New("the server is shutting down")

// drainCalls lets running calls finish within the limit, and cuts off those that are left. Meanwhile the server goes
// on to answer: probes learn that it is not ready, and new calls that they should try elsewhere. (Shutdown of
// net/http would drop both without an answer.)
func (s *Server) drainCalls() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
	s.logger.Info("draining", "limit", s.drain.String())
	limit := time.NewTimer(s.drain)
	defer limit.Stop()
	select {
	case <-s.calls.close():
	case <-limit.C:
		s.logger.Warn("cutting off the calls that still run", "after", s.drain.String())
		s.cut()
	}
	flush, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	// An error means that somebody is too slow to read; Close cuts him off.
	_ = s.http.Shutdown(flush)
}

// ready is what /readyz asks.
func (s *Server) ready() error {
	if s.draining.Load() {
		return errDraining
	}
	return s.catalog.Ready()
}

// readiness is the dependency that refuses calls while the server drains.
type readiness struct{ s *Server }

// Check returns nil or a *wasmtools.Error with CodeNotReady.
func (r readiness) Check(*http.Request) error {
	if r.s.draining.Load() {
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "The server is shutting down; try again."}
	}
	return nil
}

// A turnstile counts the requests that are inside.
type turnstile struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // made by close; closed when nobody is inside any more
}

// enter reports whether a request is let in, which must then leave.
func (t *turnstile) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.inside++
	return true
}

func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	if t.closed && t.inside == 0 {
		close(t.empty)
	}
}

// close lets nobody in from now on; the channel is closed when everybody has left.
func (t *turnstile) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed, t.empty = true, make(chan struct{})
		if t.inside == 0 {
			close(t.empty)
		}
	}
	return t.empty
}
