package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	maxLoggedPath = 256  // bytes
	maxLoggedText = 4096 // bytes of a cause; enough for a panic's stack
	maxDetail     = 300  // bytes of a tool's message in the log; the client gets all of it
)

// levelOf returns the level of a request's log line.
func levelOf(x *Exchange) slog.Level {
	level := slog.LevelInfo
	switch {
	case x.failed != nil:
		level = fault.Level(x.failed)
	case x.status >= http.StatusInternalServerError: // the door did not say why
		level = slog.LevelWarn
	}
	// Orchestrators probe every few seconds, and browsers send a preflight before each call of a page. Neither has a token.
	if anybody := x.call.Principal == nil && x.failed == nil; level < slog.LevelError && (anybody || isProbe(x.path())) {
		return slog.LevelDebug
	}
	if x.looks && level < slog.LevelWarn && x.failed == nil {
		return slog.LevelDebug
	}
	return level
}

// slow is how long a call must take for its log line to say where the time was spent.
const slow = 500 * time.Millisecond

// A Phase is a part of a call.
type Phase struct {
	Name string
	Took time.Duration
}

// PhasesOf returns the phases of a call that took any time, in their order, under the names that the log uses.
func PhasesOf(t *wasmtools.Times) (all []Phase) {
	for _, p := range []Phase{
		{"check", t.Validate}, {"wait", t.Turn}, {"compile", t.Compile}, {"start", max(0, t.Ready-t.Turn-t.Compile)}, {"run", t.Run}, {"reset", t.Reset},
	} {
		if p.Took > 0 {
			all = append(all, p)
		}
	}
	return all
}

// A requestLog is the observer that writes a line for each request.
type requestLog struct {
	logger   *slog.Logger
	refusals refusals
}

var _ Observer = (*requestLog)(nil)

// Answered writes the log line of a request.
func (l *requestLog) Answered(a *Answer) {
	x := (*Exchange)(a)
	var code wasmtools.Code
	var cause error
	if x.failed != nil {
		code, cause = x.failed.Code, x.failed.Err
	}
	level := levelOf(x)
	if isRefusal(code) && !isProbe(x.path()) && !l.refusals.isFirst(x, code) {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if x.request != nil {
		ctx = x.request.Context()
	}
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	if x.request != nil {
		attrs = append(attrs,
			slog.String("method", text.Clip(x.request.Method, maxRequestID)),
			slog.String("path", text.Clip(credential.Mask(x.path()), maxLoggedPath)),
			slog.Int("status", int(x.status)))
	}
	took := a.Took()
	attrs = append(attrs,
		slog.Duration("duration", took),
		slog.String("request_id", x.id[0]))
	if x.trace != nil && x.trace.Trace != "" {
		attrs = append(attrs, slog.String("trace_id", x.trace.Trace), slog.String("span_id", x.trace.Span))
	}
	if client := x.From(); client != "" {
		attrs = append(attrs, slog.String("client", client))
	}
	if p := x.call.Principal; p != nil && p != wasmtools.Everybody() && p != wasmtools.Self() {
		attrs = append(attrs, slog.String("principal", p.String()))
		if id := personal.Apart(p); id != "" {
			attrs = append(attrs, slog.String("caller", string(id)))
		}
	}
	if x.operation != "" {
		attrs = append(attrs, slog.String("operation", x.operation))
	}
	if x.tool != "" && x.tool != x.path() {
		attrs = append(attrs, slog.String("tool", x.tool))
	}
	if route, ok := x.call.Generation.Lookup(x.tool); ok && route.Tool.Digest != "" {
		attrs = append(attrs, slog.String("digest", text.ShortDigest(route.Tool.Digest)))
		if route.Tool.Version != "" {
			attrs = append(attrs, slog.String("version", text.Clip(route.Tool.Version, maxRequestID)))
		}
	}
	if took >= slow && x.tool != "" {
		for _, p := range PhasesOf(&x.times) {
			attrs = append(attrs, slog.Duration(p.Name, p.Took))
		}
	}
	if code != "" {
		attrs = append(attrs, slog.String("code", string(code)))
		if said := x.failed.Message; said != "" && strings.HasPrefix(string(code), "tool_") {
			attrs = append(attrs, slog.String("detail", text.Clip(said, maxDetail)))
		}
	}
	for i := range x.call.Uses {
		u := &x.call.Uses[i]
		attrs = append(attrs, slog.Int(u.Capability, u.Count), slog.Int64(u.Capability+"_bytes", u.Sent+u.Received), slog.Duration(u.Capability+"_time", u.Took))
		if u.Failed > 0 {
			attrs = append(attrs, slog.Int(u.Capability+"_failed", u.Failed))
		}
	}
	if cause != nil { // fmt survives an Error method that panics
		attrs = append(attrs, slog.String("error", text.Clip(fmt.Sprint(cause), maxLoggedText)))
	}
	l.logger.LogAttrs(ctx, level, "request", attrs...)
}
