package web

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// refusalsEvery is how often the log says how many requests were refused. Clients that try again at once are refused thousands of times
// a second, and clients without a token can send as much nonsense: a line for each would fill the disk, hide all other lines, and slow down
// everybody else.
const refusalsEvery = time.Second

// maxRefusals is how many reasons are distinguished within a second. Further ones are counted by their code alone.
const maxRefusals = 64

// refusals count the requests that were refused before a tool ran.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	recent map[refused]*refusal // what was refused within the last second: at most maxRefusals, and one more for each code
	closed bool

	telling sync.WaitGroup // pending writes of lines for entries that are no longer in recent
}

// refused is a reason to refuse requests.
type refused struct {
	code wasmtools.Code
	tool string // the path of a tool that is overloaded; empty for other codes, or if the request was refused before a tool was found
	by   string // the principal; empty for a client without a token

	caller personal.ID // distinguishes callers with the same name; empty if there can be none
}

// A refusal counts the requests that were refused for one reason.
type refusal struct {
	tally tally // requests that are not in the log yet
	since time.Time
	all   int // since then
	timer *time.Timer
}

// A tally is what one line says about several requests.
type tally struct {
	requests int
	sources  sources
	id, path string // id and path of the last request
	cause    error  // the last cause of a request: what the log says in addition to the code, such as that a token was mistyped
}

// isRefusal reports whether a code means that a request was refused before a tool ran. Clients can cause any number of these.
func isRefusal(code wasmtools.Code) bool {
	switch code {
	case wasmtools.CodeRateLimited, wasmtools.CodeUnauthorized, wasmtools.CodeForbidden, wasmtools.CodeHostNotAllowed, wasmtools.CodeOriginNotAllowed, wasmtools.CodeNotFound, wasmtools.CodeMethodNotAllowed,
		wasmtools.CodeRequestTimeout, wasmtools.CodeInputTooLarge, wasmtools.CodeUnsupportedMediaType, wasmtools.CodeInvalidArguments,
		wasmtools.CodeToolChanged, wasmtools.CodeToolDisabled, wasmtools.CodeToolNotGranted, wasmtools.CodeOverloaded, wasmtools.CodeNotReady:
		return true
	}
	return false
}

// isFirst reports whether a refused request gets its own line. The first request for each reason does, so that the log shows it at once. Those that
// follow are counted, and one line a second says how many there were, until a second passes without any.
func (r *refusals) isFirst(x *Exchange, code wasmtools.Code) bool {
	what := refused{code: code}
	if code == wasmtools.CodeOverloaded || code == wasmtools.CodeNotReady {
		what.tool = x.tool // the number of tools is decided by the operator, not by clients
	}
	if p := x.call.Principal; p != nil && p != wasmtools.Everybody() && p != wasmtools.Self() {
		what.by, what.caller = p.String(), personal.Apart(p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return true
	}
	t := r.recent[what]
	if t == nil && len(r.recent) >= maxRefusals {
		what = refused{code: code}
		t = r.recent[what]
	}
	if t == nil {
		r.recent[what] = &refusal{since: time.Now(), all: 1, timer: time.AfterFunc(refusalsEvery, func() { r.tell(what) })}
		return true
	}
	t.all++
	t.tally.requests++
	t.tally.id, t.tally.path = x.id[0], x.path()
	if x.failed.Err != nil {
		t.tally.cause = x.failed.Err
	}
	if x.request != nil {
		t.tally.sources.add(x.Address())
	}
	return false
}

// tell logs how many requests were refused since the last line, or that the refusals have ended.
func (r *refusals) tell(what refused) {
	r.mu.Lock()
	t := r.recent[what]
	if t == nil { // close has logged it
		r.mu.Unlock()
		return
	}
	last := t.tally
	t.tally = tally{}
	if last.requests == 0 {
		delete(r.recent, what)
	} else {
		t.timer.Reset(refusalsEvery)
	}
	r.telling.Add(1)
	defer r.telling.Done()
	r.mu.Unlock()
	if last.requests == 0 {
		r.writeEnd(what, t)
	} else {
		r.write(what, &last)
	}
}

// close logs what has not been logged, and waits until everything is written. From then on each refused request gets its own line.
func (r *refusals) close() {
	r.mu.Lock()
	recent := r.recent
	r.recent, r.closed = nil, true
	r.mu.Unlock()
	for what, t := range recent {
		t.timer.Stop()
		if t.tally.requests > 0 {
			r.write(what, &t.tally)
		}
	}
	r.telling.Wait()
}

// write writes one line for the requests that got none of their own.
func (r *refusals) write(what refused, t *tally) {
	from, requests := t.sources.busiest()
	attrs := append(what.attrs(), slog.Int("requests", t.requests))
	if requests > 0 { // they came over HTTP
		attrs = append(attrs, slog.String("busiest", from), slog.Int("busiest_requests", requests), slog.String("last_path", text.Clip(credential.Mask(t.path), maxLoggedPath)))
	}
	attrs = append(attrs, slog.String("last_request_id", t.id))
	if t.cause != nil { // fmt survives an Error method that panics
		attrs = append(attrs, slog.String("last_error", text.Clip(fmt.Sprint(t.cause), maxLoggedText)))
	}
	r.log.LogAttrs(context.Background(), what.level(), "further requests refused", attrs...)
}

// writeEnd logs that the refusals have ended, if their level is WARN or higher.
func (r *refusals) writeEnd(what refused, t *refusal) {
	if what.level() < slog.LevelWarn {
		return
	}
	attrs := append(what.attrs(), slog.Int("requests", t.all), slog.Duration("took", time.Since(t.since)))
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "no requests are refused any more", attrs...)
}

func (what refused) level() slog.Level { return fault.Level(&wasmtools.Error{Code: what.code}) }

func (what refused) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 8), slog.String("code", string(what.code)))
	if what.tool != "" {
		attrs = append(attrs, slog.String("tool", what.tool))
	}
	if what.by != "" {
		attrs = append(attrs, slog.String("principal", what.by))
		if what.caller != "" {
			attrs = append(attrs, slog.String("caller", string(what.caller)))
		}
	}
	return attrs
}
