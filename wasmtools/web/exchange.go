package web

import (
	"context"
	"net/http"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Exchange is a request with its response, and the response's http.ResponseWriter. It must not be used after the door's
// Serve has returned, except for its context.
type Exchange web.Exchange

var (
	_ http.ResponseWriter = (*Exchange)(nil)
	_ http.Flusher        = (*Exchange)(nil)
)

// in is the same Exchange in its internal form, so that no call allocates.
func (x *Exchange) in() *web.Exchange { return (*web.Exchange)(x) }

// Request returns the request. Its context does not have the id: use [Exchange.Context].
func (x *Exchange) Request() *http.Request { return x.in().Request() }

// Context returns the request's context, with the id that [RequestID] returns.
func (x *Exchange) Context() context.Context { return x.in().Context() }

// Generation returns the generation under which the request is handled, or nil if there is no table.
func (x *Exchange) Generation() *wasmtools.Generation { return x.in().Generation() }

// Call returns the call of a tool that the request makes. Its principal is set. It is part of the exchange, which saves an
// allocation.
func (x *Exchange) Call() *wasmtools.Call { return x.in().Call() }

// SetTool names the tool that the request calls. The log counts refused calls for each tool, and names the tool if the request's path is a
// different one.
func (x *Exchange) SetTool(path string) { x.in().SetTool(path) }

// SetOperation tells the log what the request does, if its method and its path do not say so.
func (x *Exchange) SetOperation(name string) { x.in().SetOperation(name) }

// Allow reports whether the request's method is one of these. If not, Allow answers: OPTIONS with 204, any other method
// with CodeMethodNotAllowed.
func (x *Exchange) Allow(methods ...string) bool { return x.in().Allow(methods...) }

// Header returns the header of the response.
func (x *Exchange) Header() http.Header { return x.in().Header() }

// WriteHeader sends the header with a status. As in net/http, only the first one counts, not including informational ones
// (100 to 199, except 101).
func (x *Exchange) WriteHeader(status int) { x.in().WriteHeader(status) }

// Write writes a part of the body. The first Write sends the header with the status 200, if WriteHeader has not sent it.
func (x *Exchange) Write(p []byte) (int, error) { return x.in().Write(p) }

// Flush sends what has been written so far.
func (x *Exchange) Flush() { x.in().Flush() }

// Stream makes the response a stream, which the server's write time-out does not end. Instead, each part that is written
// has a time limit. Write and Flush fail if the client does not read it within that time.
//
// The context ends when the client goes away, when the server ends, and when Serve returns. The door must
// return soon after. Call Stream after reading the request's body: before that, net/http does not notice that the client
// goes away.
func (x *Exchange) Stream() context.Context { return x.in().Stream() }

// Send answers with JSON that must not be cached. It may come in several parts, which saves copying a large one.
func (x *Exchange) Send(status int, body ...[]byte) { x.in().Send(status, body...) }

// SetFailure tells the log why the request failed, if the door answers with its own body.
func (x *Exchange) SetFailure(e *wasmtools.Error) { x.in().SetFailure(e) }

// Fail answers with an error. Clients see an *wasmtools.Error as it is, and any other error as an internal one. Causes go
// to the log only. If the header has been sent already, the connection is cut when Serve returns: nothing else tells
// the client that the body is incomplete.
func (x *Exchange) Fail(err error) { x.in().Fail(err) }
