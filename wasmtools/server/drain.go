package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
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
		s.logCut()
		s.cut()
	}
	flush, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	// An error means that somebody is too slow to read; Close cuts him off.
	_ = s.http.Shutdown(flush)
}

// maxCutLines is how many paths the log names of which calls are cut off.
const maxCutLines = 50

// logCut says which calls are about to be cut off.
func (s *Server) logCut() {
	running := s.calls.running()
	all := 0
	for _, n := range running {
		all += n
	}
	s.logger.Warn("cutting off the calls that still run", "after", s.drain.String(), "calls", all)
	for i, path := range slices.Sorted(maps.Keys(running)) {
		if i == maxCutLines {
			s.logger.Warn("calls of further tools are cut off", "tools", len(running)-maxCutLines)
			break
		}
		s.logger.Warn("calls cut off", "tool", text.Clip(path, 256), "calls", running[path])
	}
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

// A turnstile knows the requests that are inside.
type turnstile struct {
	mu     sync.Mutex
	inside int
	places []place // of those inside, and free ones
	free   []int   // numbers of these
	closed bool
	empty  chan struct{} // made by close; closed when nobody is inside any more
}

// A place is where a request is inside, so that none has to be allocated for it.
type place struct {
	path  string
	taken bool
}

// enter reports whether a request is let in, which must then leave its place.
func (t *turnstile) enter(path string) (number int, in bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, false
	}
	t.inside++
	if last := len(t.free) - 1; last >= 0 {
		number, t.free = t.free[last], t.free[:last]
	} else {
		number, t.places = len(t.places), append(t.places, place{})
	}
	t.places[number] = place{path, true}
	return number, true
}

func (t *turnstile) leave(number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
	t.places[number] = place{}
	t.free = append(t.free, number)
	if t.closed && t.inside == 0 {
		close(t.empty)
	}
}

// running returns how many requests are inside, by path.
func (t *turnstile) running() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := map[string]int{}
	for _, p := range t.places {
		if p.taken {
			calls[p.path]++
		}
	}
	return calls
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
