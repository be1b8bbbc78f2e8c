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

// An Exchange is one request with its response, of which it is the http.ResponseWriter. It must not be used once the
// door's Serve has returned, except for its context.
type Exchange struct {
	// Local is the door's own: what it found when the request began, for its handlers. A pointer takes no allocation.
	Local any

	w       http.ResponseWriter
	mux     *Mux
	request *http.Request
	start   time.Time
	ctx     requestContext
	id      [1]string // the value of X-Request-Id
	length  [1]string // the value of Content-Length
	stream  *stream   // nil before Stream

	tool   string         // path of the tool that is called, or empty
	call   wasmtools.Call // of that tool
	status int            // 0 until the header is written
	broken bool           // the response failed half-way
	code   wasmtools.Code // why the request failed, or empty
	cause  error          // for the log, or nil
}

// Request returns the request. Its context lacks the id: see [Exchange.Context].
func (x *Exchange) Request() *http.Request { return x.request }

// Context returns the request's context, with the id that [RequestID] returns.
func (x *Exchange) Context() context.Context { return &x.ctx }

// SetTool names the tool that the request calls. The log counts refused calls by it.
func (x *Exchange) SetTool(path string) { x.tool = path }

// Call returns the call that the request makes of a tool, with its principal. It is part of the exchange, to save an allocation.
func (x *Exchange) Call() *wasmtools.Call { return &x.call }

// Send answers with a JSON body that no cache keeps.
func (x *Exchange) Send(status int, body []byte) {
	h := x.Header()
	h["Content-Type"] = x.mux.fixed.json
	h["Cache-Control"] = x.mux.fixed.noStore
	x.length[0] = strconv.Itoa(len(body))
	h["Content-Length"] = x.length[:1:1]
	x.WriteHeader(status)
	// A failed write means that the client is gone: there is nobody left to tell.
	_, _ = x.Write(body)
}

// finish recovers a panic of a door, a tool or a dependency, and writes the log line.
func (x *Exchange) finish() {
	v := recover()
	if v != nil && v != http.ErrAbortHandler {
		x.Fail(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
	}
	if x.stream != nil {
		x.stream.end(x.mux)
	}
	if v == nil && x.status == 0 {
		x.status = http.StatusOK // net/http sends it for a door that wrote nothing
	}
	x.logRequest()
	if v == http.ErrAbortHandler || x.broken {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}
