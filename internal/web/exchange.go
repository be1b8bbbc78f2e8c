package web

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Exchange is a request with its response, and the response's http.ResponseWriter. It must not be used after the door's
// Serve has returned, except for its context.
type Exchange struct {
	failer Failer // nil: errors are as docs/http.md says

	w       http.ResponseWriter
	mux     *Mux
	at      *mount // nil for a probe
	request *http.Request
	start   time.Duration // since mux.began
	id      [1]string     // the value of X-Request-Id
	length  [1]string     // the value of Content-Length
	stream  *stream       // nil before Stream
	in      admitted      // how the request was let in; zero for a probe

	operation string   // what the door did, or empty
	finally   []func() // what is called when the request has been answered

	tool   string           // path of the called tool, or empty
	call   wasmtools.Call   // of that tool
	status int32            // 0 until the header is written
	broken bool             // the response failed after its header was sent
	failed *wasmtools.Error // why the request failed, or nil; its cause is for the log
}

// Request returns the request. Its context does not have the id: use [Exchange.Context].
func (x *Exchange) Request() *http.Request { return x.request }

// Context returns the request's context, with the id that [RequestID] returns.
func (x *Exchange) Context() context.Context { return (*requestContext)(x) }

// SetFailer has f word the errors of a door whose protocol has a form of its own for them. Nil: they are as docs/http.md says.
func (x *Exchange) SetFailer(f Failer) { x.failer = f }

// SetTool names the tool that the request calls. The log counts refused calls by it, and names it where the request's path is
// another one.
func (x *Exchange) SetTool(path string) { x.tool = path }

// SetOperation names for the log what the request does, where its method and its path do not tell.
func (x *Exchange) SetOperation(name string) { x.operation = name }

// Call returns the call of a tool that the request makes. Its principal is set. It is part of the exchange, which saves an
// allocation.
func (x *Exchange) Call() *wasmtools.Call { return &x.call }

// Finally has f called when the request has been answered, also where the door panics.
func (x *Exchange) Finally(f func()) { x.finally = append(x.finally, f) }

// Identify returns who makes the request, as the dependencies see it now: for streams that outlive what they began with. It
// fails if the request would not be let in any more.
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
			return // the client is gone, and there is nobody left to tell
		}
	}
}

// finish recovers from a panic of a door, a tool or a dependency, and tells the observers of the request.
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
