package otlp

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// mostUses is how many uses of capabilities in one call get a span. Further uses are only counted.
const mostUses = 100

// A call is a recorded call, and also its context. Only the call's goroutine uses it.
type call struct {
	context.Context
	tracer    *Tracer
	in        otel.SpanContext // the span that the call is inside
	own       otel.SpanContext // the call's own span; the same as the field in, if that is the span of an MCP message
	isMessage bool
	run       otel.SpanID // the part in which the tool runs
	begun     time.Time
	uses      int
	next      otel.SpanID // the id of the use that is reported next; zero if it has none yet
	inner     bool        // a call inside it has begun since the last use
}

var (
	_ trace.Span       = (*call)(nil)
	_ hostcall.Watcher = (*call)(nil)
)

// Value returns the call itself for its own key, and for other keys the value of the parent context.
func (c *call) Value(key any) any {
	if key == (trace.SpanKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// IDs returns the ids of the call's trace and span.
func (c *call) IDs() (trace, span string) {
	return c.own.TraceID().String(), c.own.SpanID().String()
}

// Next returns the trace context for the next service that the call asks.
func (c *call) Next() (parent, state string) {
	c.next = newSpanID()
	return trace.Format(c.own.TraceID(), c.next), c.own.TraceState().String()
}

// Watched makes a span of a use of a capability. A call of another tool already has its own span.
func (c *call) Watched(u hostcall.Use) {
	s := &span{in: c.own.WithSpanID(c.run), id: c.next, name: u.Capability, kind: otel.SpanKindInternal, ended: time.Now(), failed: u.Outcome}
	if c.next = (otel.SpanID{}); !s.id.IsValid() {
		s.id = newSpanID()
	}
	called := c.inner
	c.inner = false
	if called && u.Capability == "tools" {
		return
	}
	if c.uses++; c.uses > mostUses {
		return
	}
	s.begun = s.ended.Add(-u.Took)
	s.of = append(s.of, attribute.String("toolsrv.capability", u.Capability), attribute.Int64("toolsrv.sent.bytes", u.Sent), attribute.Int64("toolsrv.received.bytes", u.Received))
	if u.Capability == "http" && u.Target != "" { // empty if the request could not be read
		s.asks(u.Target)
		s.answered(u.Status)
	}
	c.tracer.put(s)
}

// asks returns attributes that say which server was asked, but not for what, since paths contain arguments. target is the method and the URL.
func (s *span) asks(target string) {
	method, address, _ := strings.Cut(target, " ")
	s.kind, s.name = otel.SpanKindClient, method
	s.of = append(s.of, attribute.String("http.request.method", method))
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	s.of = append(s.of, attribute.String("url.scheme", u.Scheme), attribute.String("server.address", u.Hostname()))
	if n, err := strconv.Atoi(cmp.Or(u.Port(), portOf(u.Scheme))); err == nil {
		s.of = append(s.of, attribute.Int("server.port", n))
	}
}

// portOf returns the port of a URL that names none, or "".
func portOf(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// answered adds the status of an answer, if it is a real one: services can make up numbers.
func (s *span) answered(status int) {
	if status < 100 || status > 599 {
		return
	}
	s.of = append(s.of, attribute.Int("http.response.status_code", status))
	if s.failed == "" && status >= http.StatusBadRequest { // the conventions for clients call this a failure, although the tool may have expected it
		s.failed = strconv.Itoa(status)
	}
}

// Ended makes the spans of a recorded call and of its parts.
func (t *Tracer) Ended(ctx context.Context, r *invoke.Record) {
	if t.meter != nil {
		t.meter.call(r)
	}
	c, ok := ctx.(*call)
	if !ok {
		return
	}
	now := time.Now()
	c.parts(&r.Times)
	if c.isMessage { // the message's span is made when the message has been answered
		return
	}
	s := &span{in: c.in, id: c.own.SpanID(), name: "execute_tool " + nameOf(r.Path), kind: otel.SpanKindInternal, begun: c.begun, ended: now, failed: string(r.Code())}
	s.of = append(ofTool(r.Path), attribute.String("gen_ai.tool.type", "function"))
	if c.uses > mostUses {
		s.of = append(s.of, attribute.Int("toolsrv.uses.untold", c.uses-mostUses))
	}
	t.put(s)
}

// parts makes spans of the parts of the call that took any time.
func (c *call) parts(t *wasmtools.Times) {
	at := c.begun
	for _, part := range []struct {
		name string
		took time.Duration
		id   otel.SpanID
	}{
		{"validate", t.Validate, otel.SpanID{}},
		{"wait", t.Turn, otel.SpanID{}},
		{"compile", t.Compile, otel.SpanID{}},
		{"prepare", max(0, t.Ready-t.Turn-t.Compile), otel.SpanID{}},
		{"run", t.Run, c.run},
		{"reset", t.Reset, otel.SpanID{}},
	} {
		if part.took <= 0 {
			continue
		}
		if !part.id.IsValid() {
			part.id = newSpanID()
		}
		end := at.Add(part.took)
		c.tracer.put(&span{in: c.own, id: part.id, name: part.name, kind: otel.SpanKindInternal, begun: at, ended: end})
		at = end
	}
}
