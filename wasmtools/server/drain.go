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
	s.web.EndStreams()
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
	running := s.calls.byPath()
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

// inFlight counts the requests that are being answered, by path.
type inFlight struct {
	mu     sync.Mutex
	count  int
	slots  []slot
	free   []int // indexes of the slots that hold no request
	closed bool
	empty  chan struct{} // made by close; closed when no request is left
}

// A slot holds a request, so that none has to be allocated for it.
type slot struct {
	path  string
	taken bool
}

// add counts a request until remove is called with its slot. It reports false after close: such a request is not counted.
func (f *inFlight) add(path string) (slotIndex int, counted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, false
	}
	f.count++
	if last := len(f.free) - 1; last >= 0 {
		slotIndex, f.free = f.free[last], f.free[:last]
	} else {
		slotIndex, f.slots = len(f.slots), append(f.slots, slot{})
	}
	f.slots[slotIndex] = slot{path, true}
	return slotIndex, true
}

// remove ends the counting of the request in a slot.
func (f *inFlight) remove(slotIndex int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count--
	f.slots[slotIndex] = slot{}
	f.free = append(f.free, slotIndex)
	if f.closed && f.count == 0 {
		close(f.empty)
	}
}

// byPath returns how many requests are in flight, by path.
func (f *inFlight) byPath() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := map[string]int{}
	for _, s := range f.slots {
		if s.taken {
			calls[s.path]++
		}
	}
	return calls
}

// close counts no further requests. The channel that it returns is closed when those that were counted are answered.
func (f *inFlight) close() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed, f.empty = true, make(chan struct{})
		if f.count == 0 {
			close(f.empty)
		}
	}
	return f.empty
}
