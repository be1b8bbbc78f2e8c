package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	maxLoggedPath = 256  // bytes
	maxLoggedText = 4096 // bytes of a cause; a panic's stack fits
)

// logRequest writes the line of a request that was answered.
func (x *Exchange) logRequest() {
	level := slog.LevelInfo
	switch {
	case x.code == wasmtools.CodeInternal:
		level = slog.LevelError
	case isProbe(x.request.URL.Path):
		level = slog.LevelDebug // an orchestrator asks every few seconds
	case x.cause != nil || x.status >= http.StatusInternalServerError:
		level = slog.LevelWarn
	}
	if x.code == wasmtools.CodeOverloaded || x.code == wasmtools.CodeNotReady && !isProbe(x.request.URL.Path) {
		if !x.mux.refusals.first(refused{x.tool, x.code}, x.id[0]) {
			level = slog.LevelDebug
		}
	}
	ctx := x.request.Context()
	if !x.mux.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs,
		slog.String("method", text.Clip(x.request.Method, maxRequestID)),
		slog.String("path", text.Clip(x.request.URL.Path, maxLoggedPath)),
		slog.Int("status", x.status),
		slog.Duration("duration", time.Since(x.start)),
		slog.String("request_id", x.id[0]))
	if p := x.call.Principal; p != nil && p != wasmtools.Everybody() {
		attrs = append(attrs, slog.String("principal", p.String()))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)))
	}
	if x.cause != nil { // fmt survives an Error method that panics
		attrs = append(attrs, slog.String("error", text.Clip(fmt.Sprint(x.cause), maxLoggedText)))
	}
	x.mux.log.LogAttrs(ctx, level, "request", attrs...)
}

// refusalsEvery is how often the log says how many calls were refused: 200 clients that come back at once are
// refused thousands of times a second, and a line for each would slow down everybody else.
const refusalsEvery = time.Second

// refusals count the calls that were refused because too many ran already, or because the service is not ready for them.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	recent map[refused]*refusal // those of which a call was refused just now
	closed bool

	telling sync.WaitGroup // those who write a line that is not counted any more
}

// refused is of what calls are refused, and why.
type refused struct {
	tool string // its path; empty where no tool was found yet
	code wasmtools.Code
}

// A refusal counts calls.
type refusal struct {
	calls int    // that the log was not told of
	id    string // of the request that was refused last
	timer *time.Timer
}

// first reports whether a refused call is to have a line of its own: the first one does, so that nobody has to wait for the
// news. Those that follow are counted, and each second a line says how many they were, until there is a second without.
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
	if t == nil { // told by close
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

// close tells what was not told yet, and waits until all is told. From then on each refused call has a line of its own.
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
	r.log.LogAttrs(context.Background(), slog.LevelWarn, "further calls refused", attrs...)
}
