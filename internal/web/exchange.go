package web

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Exchange is a request with its response, and is the response's http.ResponseWriter. It must not be used after the door's Serve has returned,
// except for its context.
type Exchange struct {
	failer Failer // nil: errors are as in docs/http.md

	w       http.ResponseWriter
	mux     *Mux
	at      *mount // nil for a probe
	request *http.Request
	start   time.Duration // since mux.began
	id      [1]string     // the value of X-Request-Id
	length  [1]string     // the value of Content-Length
	stream  *stream       // nil before Stream
	in      admitted      // how the request was admitted; zero for a probe

	operation string   // what the door did, or empty
	looks     bool     // the request changes nothing, and pages send it every few seconds
	finally   []func() // called when the request has been answered

	trace  *trace.Request   // nil: nobody records requests
	tool   string           // the path of the called tool, or empty
	call   wasmtools.Call   // of that tool
	times  wasmtools.Times  // of that call
	status int32            // 0 until the header is written
	broken bool             // the response failed after its header was sent
	failed *wasmtools.Error // why the request failed, or nil; its cause is for the log
}

// Request returns the request. Its context does not have the id: use [Exchange.Context].
func (x *Exchange) Request() *http.Request { return x.request }

// Context returns the request's context, with the id that [RequestID] returns.
func (x *Exchange) Context() context.Context { return (*requestContext)(x) }

// SetFailer makes f write the errors of a door whose protocol has its own form for them. If nil, they are as in docs/http.md.
func (x *Exchange) SetFailer(f Failer) { x.failer = f }

// SetTool names the tool that the request calls. The log counts refused calls by it, and names it if the request's path is a different one.
func (x *Exchange) SetTool(path string) { x.tool = path }

// SetOperation tells the log what the request does, if its method and its path do not say so.
func (x *Exchange) SetOperation(name string) { x.operation = name }

// SetLooks says that the request only looks at the server, as pages do every few seconds. Its log line has the level debug, unless it fails.
func (x *Exchange) SetLooks() { x.looks = true }

// Call returns the call of a tool that the request makes. Its principal is set. The call is part of the exchange, which saves an allocation.
func (x *Exchange) Call() *wasmtools.Call { return &x.call }

// Trace returns the request's part of a trace, or nil if nobody records requests.
func (x *Exchange) Trace() *trace.Request { return x.trace }

// newTrace returns the part of a trace that the headers describe.
func newTrace(r *http.Request) *trace.Request {
	q := &trace.Request{}
	if parents := r.Header["Traceparent"]; len(parents) == 1 {
		q.Parent, q.State = parents[0], strings.Join(r.Header["Tracestate"], ",")
	}
	return q
}

// Finally calls f when the request has been answered, even if the door panics.
func (x *Exchange) Finally(f func()) { x.finally = append(x.finally, f) }

// Identify asks the dependencies again who makes the request. It is for streams, which may last longer than a token. It fails if the request would no
// longer be admitted.
func (x *Exchange) Identify() (*wasmtools.Principal, error) {
	in, err := x.mux.admit(x.request, &x.at.policy, false)
	if x.stream != nil {
		x.stream.in = in
	}
	return in.principal, err
}

// Send answers with JSON that must not be cached. It may come in several parts, which saves copying a large one.
func (x *Exchange) Send(status int, body ...[]byte) {
	h := x.Header()
	h["Content-Type"] = x.mux.fixed.json
	h["Cache-Control"] = x.mux.fixed.noStore
	length := 0
	for _, part := range body {
		length += len(part)
	}
	x.length[0] = strconv.Itoa(length)
	h["Content-Length"] = x.length[:1:1]
	x.WriteHeader(status)
	for _, part := range body {
		if _, err := x.Write(part); err != nil {
			return // the client is gone, so there is nobody left to tell
		}
	}
}

// SendDocument answers GET and HEAD with d, or with 304 if the client has it already.
func (x *Exchange) SendDocument(d *Document) { d.send(x) }

// finish recovers from a panic of a door, a tool or a dependency, and reports the request to the observers.
func (x *Exchange) finish() {
	v := recover()
	if v != nil && v != http.ErrAbortHandler {
		x.Fail(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
	}
	if x.stream != nil {
		x.stream.end(x.mux)
	}
	if v == nil && x.status == 0 {
		x.status = http.StatusOK // net/http sends that for a door that wrote nothing
	}
	for _, f := range x.finally {
		f()
	}
	for _, o := range x.mux.observers {
		o.Answered((*Answer)(x))
	}
	if v == http.ErrAbortHandler || x.broken {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}

var (
	_ http.ResponseWriter = (*Exchange)(nil)
	_ http.Flusher        = (*Exchange)(nil)
	_ http.Hijacker       = (*Exchange)(nil)
)

// Header returns the header of the response.
func (x *Exchange) Header() http.Header { return x.w.Header() }

// WriteHeader sends the header with a status. As in net/http, only the first one counts, not including informational ones
// (100 to 199, except 101).
func (x *Exchange) WriteHeader(status int) {
	x.w.WriteHeader(status)
	if x.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		x.status = int32(status)
	}
}

// Write writes a part of the body. The first Write sends the header with the status 200, if WriteHeader did not.
func (x *Exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.stream != nil {
		return x.stream.write(x.mux, x.w, p)
	}
	return x.w.Write(p)
}

// FlushError sends everything written so far.
func (x *Exchange) FlushError() error {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.stream != nil {
		return x.stream.flush(x.mux)
	}
	return http.NewResponseController(x.w).Flush()
}

// Flush is FlushError for handlers that look for an http.Flusher.
func (x *Exchange) Flush() { _ = x.FlushError() }

// Hijack fails. A connection that a door takes over would escape the log, the limits and the end of the service.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("take over the connection: %w", http.ErrNotSupported)
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.w }

// Stream makes the response a stream, which the server's write time-out does not end. Instead, each part that is written
// has a time limit, Options.StreamWrite. Write and Flush fail if the client does not read it within that time.
//
// The context ends when the client goes away, when [Mux.EndStreams] is called, and when Serve returns. The door must
// return soon after. Call Stream after reading the request's body: before that, net/http does not notice that the client
// goes away.
func (x *Exchange) Stream() context.Context {
	if x.stream == nil {
		s := &stream{control: http.NewResponseController(x.w), in: x.in}
		if x.request != nil && x.request.ProtoMajor == 1 {
			s.socket = x.socket()
		}
		s.ctx, s.cancel = context.WithCancelCause(x.Context())
		x.stream = s
		x.mux.streams.add(s)
		s.limit(0)
	}
	return x.stream.ctx
}

// bound makes the system buffer little for a client that reads nothing, and close the connection after a time. Whatever fits into the system's
// buffers counts as written, so no write deadline would pass.
func (x *Exchange) bound() {
	socket := x.socket()
	if socket == nil {
		return
	}
	buffer := lastingBuffer
	if x.request.ProtoMajor > 1 {
		buffer = sharedBuffer
	}
	// A connection that accepts no settings is gone.
	_ = socket.SetWriteBuffer(buffer)
	_ = setUnreadTimeout(socket, x.mux.streamWrite)
}

// socket returns the connection of the request, or nil.
func (x *Exchange) socket() *net.TCPConn {
	if x.mux.socket == nil || x.request == nil {
		return nil
	}
	return x.mux.socket(x.request)
}

// StreamEvents is [Exchange.Stream] for server-sent events. It sends the header.
func (x *Exchange) StreamEvents() context.Context {
	ctx := x.Stream()
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	x.WriteHeader(http.StatusOK)
	return ctx
}

// Recheck returns a channel that is closed when the result of [Exchange.Identify] may have changed since the stream's client was last admitted.
func (x *Exchange) Recheck() <-chan struct{} {
	m := &x.mux.streams
	m.mu.Lock()
	if m.recheck == nil {
		m.recheck = make(chan struct{})
	}
	next := m.recheck
	m.mu.Unlock()
	if g, a := x.mux.now(); x.stream.in.isCurrent(g, a) { // checked last, so that no change is missed
		return next
	}
	now := make(chan struct{})
	close(now)
	return now
}

// Address returns the address of the request's client, or the zero Addr if it has none.
func (x *Exchange) Address() netip.Addr {
	if x.request == nil {
		return netip.Addr{}
	}
	return x.access().Client(x.request)
}

// From returns the address of the request's client as text, or "" if it has none. Without a proxy in between this costs no allocation.
func (x *Exchange) From() string {
	if x.request == nil {
		return ""
	}
	if x.access().proxies.cut == nil {
		if host, _, ok := strings.Cut(x.request.RemoteAddr, ":"); ok && host != "" && host[0] != '[' {
			return host
		}
	}
	if a := x.Address(); a.IsValid() {
		return a.String()
	}
	return ""
}

// IsOwnPage reports whether no page of another origin makes the request, not even one that the [Access] lists.
func (x *Exchange) IsOwnPage() bool { return x.access().checkPage(x.request, PagesOwn) == nil }

// access returns the request's Access.
func (x *Exchange) access() *Access {
	a := x.in.admission
	if a == nil {
		_, a = x.mux.now() // for probes
	}
	return a.access
}

// path returns the path of the request, or "" without HTTP.
func (x *Exchange) path() string {
	if x.request == nil {
		return ""
	}
	return x.request.URL.Path
}

// setID gives the exchange its id. A well-formed id from the client is used, so that a gateway's logs and ours have the same one. Otherwise the id is
// new.
func (x *Exchange) setID() {
	id := ""
	if own := x.request.Header["X-Request-Id"]; len(own) == 1 && isRequestID(own[0]) {
		id = own[0]
	} else {
		var raw [16]byte
		binary.NativeEndian.PutUint64(raw[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(raw[8:], rand.Uint64())
		id = hex.EncodeToString(raw[:])
	}
	x.id[0] = id
	h := x.Header()
	h["X-Request-Id"] = x.id[:1:1]
	h["X-Content-Type-Options"] = x.mux.fixed.nosniff
}
