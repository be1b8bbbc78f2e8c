package otlp

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// recorded is what is kept of a recorded request. Its spans are made when it has been answered, but their ids are known before.
type recorded struct {
	http    otel.SpanID // the span of the HTTP request; zero if the request came without HTTP
	message otel.SpanID // the span of the MCP message; zero if there is none
	// inHTTP and inMessage are the parents of these two spans: a trace, and the caller's span in it, if there is one.
	inHTTP, inMessage otel.SpanContext
}

// calls returns the trace of the request's calls, and the span that they are inside.
func (r *recorded) calls() otel.SpanContext {
	if r.message.IsValid() {
		return r.inMessage.WithSpanID(r.message).WithRemote(false)
	}
	return r.inHTTP.WithSpanID(r.http).WithRemote(false)
}

var (
	_ invoke.Observer = (*Tracer)(nil)
	_ web.Observer    = (*Tracer)(nil)
)

// of returns what is kept of a request, or nil if the request is not recorded. This is decided when of is first called for the request. p is who
// makes the request.
func (t *Tracer) of(q *trace.Request, p *wasmtools.Principal, overHTTP bool) *recorded {
	if q.Kept == nil {
		q.Kept = t.decide(q, p, overHTTP)
	}
	return q.Kept.(*recorded)
}

// decide returns nil for a request that is not recorded. An identified caller's request is recorded if the caller records it. Anybody else's word for
// that is ignored, since it could make the server record everything. If such a request is recorded by chance, it is still part of its caller's trace.
func (t *Tracer) decide(q *trace.Request, p *wasmtools.Principal, overHTTP bool) *recorded {
	header, fromHeader := trace.Parse(q.Parent, q.State)
	meta, fromMeta := trace.Parse(q.Message.Parent, q.Message.State)
	nearest, asks := header, fromHeader
	if fromMeta {
		nearest, asks = meta, true
	}
	if asks = asks && p != nil && p.Origin() != wasmtools.OriginOpen; asks && !nearest.Sampled || !asks && !t.chance() {
		return nil
	}
	r := &recorded{}
	switch {
	case fromHeader:
		r.inHTTP = contextOf(header)
	case fromMeta:
		r.inHTTP = contextOf(meta)
	default:
		r.inHTTP = otel.NewSpanContext(otel.SpanContextConfig{TraceID: newTraceID(), TraceFlags: otel.FlagsSampled})
	}
	if overHTTP {
		r.http = newSpanID()
	}
	if q.Message.Method != "" {
		r.message = newSpanID()
		if r.inMessage = r.inHTTP.WithRemote(false); overHTTP {
			r.inMessage = r.inMessage.WithSpanID(r.http)
		}
		if fromMeta {
			r.inMessage = contextOf(meta)
		}
	}
	calls := r.calls()
	q.Trace, q.Span = calls.TraceID().String(), calls.SpanID().String()
	return r
}

// contextOf returns the context of a caller's span. Its tracestate is left out if it is not valid.
func contextOf(p trace.Parent) otel.SpanContext {
	c := otel.SpanContextConfig{TraceID: p.Trace, SpanID: p.Span, TraceFlags: otel.FlagsSampled, Remote: true}
	c.TraceState, _ = otel.ParseTraceState(p.State)
	return otel.NewSpanContext(c)
}

// Answered makes the spans of a request: one for HTTP, and one for its MCP message.
func (t *Tracer) Answered(a *web.Answer) {
	q := a.Trace()
	if q == nil {
		return
	}
	if t.meter != nil && q.Message.Method != "" {
		t.meter.message(a, q)
	}
	r := t.of(q, a.Principal(), a.Request() != nil)
	if r == nil {
		return
	}
	now := time.Now()
	if r.http.IsValid() {
		t.put(httpSpan(a, r, now))
	}
	if r.message.IsValid() {
		t.put(messageSpan(a, q, r, now))
	}
}

// methods are the HTTP methods that spans name.
var methods = [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch, http.MethodConnect, http.MethodTrace, "QUERY"}

func httpSpan(a *web.Answer, r *recorded, now time.Time) *span {
	q := a.Request()
	s := &span{in: r.inHTTP, id: r.http, kind: otel.SpanKindServer, begun: a.Began(), ended: now}
	method := q.Method
	if s.name = method; !slices.Contains(methods[:], method) {
		s.name, method = "HTTP", "_OTHER"
	}
	s.of = append(s.of, attribute.String("http.request.method", method), attribute.String("url.scheme", schemeOf(q)),
		attribute.Int("http.response.status_code", a.Status()), attribute.String("toolsrv.request.id", a.RequestID()))
	route := routeOf(a)
	if q.URL.Path == route || a.Status() < http.StatusBadRequest { // any other path may have been sent by mistake, and contain a token
		s.of = append(s.of, attribute.String("url.path", credential.Mask(q.URL.Path)))
	}
	if route != "" {
		s.name += " " + route
		s.of = append(s.of, attribute.String("http.route", route))
	}
	s.of = append(s.of, network(q)...)
	s.of = append(s.of, clientOf(a)...)
	s.of = append(s.of, serverOf(q)...)
	if status := a.Status(); status >= http.StatusInternalServerError {
		s.failed = strconv.Itoa(status)
	}
	s.of = append(s.of, code(a.Error())...)
	return s
}

// routeOf returns the path of the tool or door, of which there are not many, or "".
func routeOf(a *web.Answer) string {
	if a.Door() != "/" {
		return a.Door()
	}
	if _, ok := a.Generation().Lookup(a.Tool()); ok {
		return a.Tool()
	}
	return ""
}

func schemeOf(q *http.Request) string {
	if q.TLS != nil {
		return "https"
	}
	return "http"
}

// clientOf returns attributes of who sent a request, as far as that is known. The port is left out if it is a proxy's.
func clientOf(a *web.Answer) []attribute.KeyValue {
	client := (*web.Exchange)(a).From()
	if client == "" {
		return nil
	}
	of := append(make([]attribute.KeyValue, 0, 2), attribute.String("client.address", client))
	if peer, err := netip.ParseAddrPort(a.Request().RemoteAddr); err == nil && peer.Addr().Unmap().String() == client {
		of = append(of, attribute.Int("client.port", int(peer.Port())))
	}
	return of
}

// serverOf returns attributes of the host that a client has asked for.
func serverOf(q *http.Request) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(q.Host)
	if err != nil {
		host, port = strings.Trim(q.Host, "[]"), portOf(schemeOf(q))
	}
	if host == "" {
		return nil
	}
	of := append(make([]attribute.KeyValue, 0, 2), attribute.String("server.address", host))
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		of = append(of, attribute.Int("server.port", int(n)))
	}
	return of
}

// network returns attributes of how a request came. A nil r came over standard input.
func network(q *http.Request) []attribute.KeyValue {
	if q == nil {
		return []attribute.KeyValue{attribute.String("network.transport", "pipe")}
	}
	of := []attribute.KeyValue{attribute.String("network.transport", "tcp"), attribute.String("network.protocol.name", "http")}
	switch version := [2]int{q.ProtoMajor, q.ProtoMinor}; version { // clients can send other values
	case [2]int{1, 0}:
		of = append(of, attribute.String("network.protocol.version", "1.0"))
	case [2]int{1, 1}:
		of = append(of, attribute.String("network.protocol.version", "1.1"))
	case [2]int{2, 0}:
		of = append(of, attribute.String("network.protocol.version", "2"))
	}
	return of
}

// code returns an attribute with the service's own code for a failure.
func code(e *wasmtools.Error) []attribute.KeyValue {
	if e == nil {
		return nil
	}
	return []attribute.KeyValue{attribute.String("toolsrv.code", string(e.Code))}
}

// toolError is the error.type of an MCP call whose result says that it failed.
const toolError = "tool_error"

func messageSpan(a *web.Answer, q *trace.Request, r *recorded, now time.Time) *span {
	m := &q.Message
	s := &span{in: r.inMessage, id: r.message, name: m.Method, kind: otel.SpanKindServer, begun: a.Began(), ended: now}
	if s.in.IsRemote() && r.http.IsValid() {
		s.link = r.inHTTP.WithSpanID(r.http)
	}
	if a.Tool() != "" {
		s.name += " " + nameOf(a.Tool())
	}
	s.of, s.failed = ofMessage(a, q)
	s.of = append(s.of, network(a.Request())...)
	s.of = append(s.of, clientOf(a)...)
	for key, value := range map[string]string{"mcp.session.id": m.Session, "jsonrpc.request.id": m.ID} {
		if value != "" {
			s.of = append(s.of, attribute.String(key, value))
		}
	}
	if a.Request() == nil {
		s.of = append(s.of, attribute.String("toolsrv.request.id", a.RequestID()))
	}
	s.of = append(s.of, code(a.Error())...)
	return s
}

// ofMessage returns the attributes of an MCP message that many messages share, and its error.type. Metrics have these attributes, so no value is up
// to clients.
func ofMessage(a *web.Answer, q *trace.Request) (of []attribute.KeyValue, failed string) {
	m := &q.Message
	of = append(make([]attribute.KeyValue, 0, 16), attribute.String("mcp.method.name", m.Method))
	if a.Tool() != "" {
		of = append(of, ofTool(a.Tool())...)
	}
	if m.Version != "" {
		of = append(of, attribute.String("mcp.protocol.version", m.Version))
	}
	switch {
	case m.Fault != 0:
		failed = strconv.FormatInt(m.Fault, 10)
		of = append(of, attribute.String("rpc.response.status_code", failed))
	case a.Error() != nil:
		failed = toolError
	}
	return of, failed
}

// nameOf returns the name that the tool at a path has in MCP and OpenAPI.
func nameOf(path string) string { return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-") }

// ofTool returns attributes of a call of a tool.
func ofTool(path string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", nameOf(path)), attribute.String("toolsrv.tool", path)}
}

// Refused does nothing: the spans of the request, or of the call that made this one, show the refusal.
func (t *Tracer) Refused(*invoke.Record) {}

// Began decides whether a call is recorded, and if so puts it into the context.
func (t *Tracer) Began(ctx context.Context, r *invoke.Record) context.Context {
	var in otel.SpanContext
	isMessage := false
	if outer, ok := trace.SpanOf(ctx).(*call); ok {
		outer.inner = true
		in = outer.own.WithSpanID(outer.run)
	} else if q := trace.RequestOf(ctx); q != nil && r.Depth == 0 {
		of := t.of(q, r.Principal, r.Door != doorOfStdio)
		if of == nil {
			return ctx
		}
		in, isMessage = of.calls(), of.message.IsValid()
	} else if r.Depth == 0 && t.chance() {
		in = otel.NewSpanContext(otel.SpanContextConfig{TraceID: newTraceID(), TraceFlags: otel.FlagsSampled})
	} else {
		return ctx
	}
	c := &call{Context: ctx, tracer: t, in: in, own: in, isMessage: isMessage, run: newSpanID(), begun: time.Now()}
	if !isMessage {
		c.own = in.WithSpanID(newSpanID())
	}
	return c
}

// doorOfStdio is the door of requests that come over standard input.
const doorOfStdio = "stdio"
