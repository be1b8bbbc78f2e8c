package web

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// refusalsEvery is how often the log says how many calls were refused. Clients that try again at once are refused
// thousands of times a second, and a line for each would slow down everybody else.
const refusalsEvery = time.Second

// refusals count the calls that were refused because too many are running or because the service is not ready.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	recent map[refused]*refusal // what was refused within the last second
	closed bool

	telling sync.WaitGroup // writes of lines whose calls are no longer in recent
}

// refused is a reason to refuse calls.
type refused struct {
	tool string // its path; empty if the call was refused before its tool was found
	code wasmtools.Code
}

// A refusal counts the calls that were refused for one reason.
type refusal struct {
	calls int    // not yet in the log
	id    string // of the last request that was refused
	timer *time.Timer
}

// first reports whether a refused call gets a line of its own. The first one does, so that the log shows it at once. Those
// that follow are counted. A line a second says how many they were, until a second passes without any.
func (r *refusals) first(what refused, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return true
	}
	t := r.recent[what]
	if t == nil {
		r.recent[what] = &refusal{timer: time.AfterFunc(refusalsEvery, func() { r.tell(what) })}
		return true
	}
	t.calls++
	t.id = id
	return false
}

// tell logs how many calls were refused since the last line.
func (r *refusals) tell(what refused) {
	r.mu.Lock()
	t := r.recent[what]
	if t == nil { // close has told it
		r.mu.Unlock()
		return
	}
	calls, id := t.calls, t.id
	t.calls = 0
	if calls == 0 {
		delete(r.recent, what)
	} else {
		t.timer.Reset(refusalsEvery)
	}
	r.telling.Add(1)
	defer r.telling.Done()
	r.mu.Unlock()
	r.write(what, calls, id)
}

// close tells what has not been told, and waits until everything is written. From then on each refused call has its own line.
func (r *refusals) close() {
	r.mu.Lock()
	recent := r.recent
	r.recent, r.closed = nil, true
	r.mu.Unlock()
	for what, t := range recent {
		t.timer.Stop()
		r.write(what, t.calls, t.id)
	}
	r.telling.Wait()
}

func (r *refusals) write(what refused, calls int, id string) {
	if calls == 0 {
		return
	}
	attrs := []slog.Attr{slog.Int("calls", calls), slog.String("code", string(what.code)), slog.String("last_request_id", id)}
	if what.tool != "" {
		attrs = append(attrs, slog.String("path", what.tool))
	}
	r.log.LogAttrs(context.Background(), wasmtools.LevelOf(&wasmtools.Error{Code: what.code}), "further calls refused", attrs...)
}
