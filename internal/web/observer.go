package web

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Observer is told of requests, such as the log. Package invoke tells its own observers of the calls that requests make.
type Observer interface {
	// Answered is told of each request once it has been answered: also of one that was refused for its host, its page or its token, before
	// any door saw it, and of one whose path nothing has. It is called concurrently, and the connection waits for it. The
	// Answer must be neither changed nor kept.
	Answered(a *Answer)
}

// An Answer is a request that has been answered, as observers see it. Its methods allocate nothing, except for an address as text.
type Answer Exchange

// Request returns the request, whose body must not be read. It is nil where that came without HTTP: see [Mux.Tell].
func (a *Answer) Request() *http.Request { return a.request }

// RequestID returns the request's id.
func (a *Answer) RequestID() string { return a.id[0] }

// Door returns the path of the door that the request was for, "stdio" for standard input, or "" if there is none, and for probes.
func (a *Answer) Door() string { return a.call.Door }

// Principal returns who made the request, or nil if it was refused before that was known, and for probes.
func (a *Answer) Principal() *wasmtools.Principal { return a.call.Principal }

// Client returns the address for which the request was sent, or the zero Addr if it has none.
func (a *Answer) Client() netip.Addr { return (*Exchange)(a).Address() }

// Operation returns what the door says that the request did, or "" if method and path say so.
func (a *Answer) Operation() string { return a.operation }

// Tool returns the path of the tool that the request was about, or "". Its route in Generation has its version and digest.
func (a *Answer) Tool() string { return a.tool }

// Generation returns the generation that the request went by, or nil.
func (a *Answer) Generation() *wasmtools.Generation { return a.call.Generation }

// Uses returns the uses of its tool's grants by the request's call.
func (a *Answer) Uses() []wasmtools.Use { return a.call.Uses }

// Times returns what the phases of that call took. They are not known of a call inside it, or without HTTP.
func (a *Answer) Times() wasmtools.Times { return a.times }

// Trace returns what the request says of the trace that it is part of, or nil where nobody records requests.
func (a *Answer) Trace() *trace.Request { return a.trace }

// Began returns when the request came.
func (a *Answer) Began() time.Time { return a.mux.began.Add(a.start) }

// Status returns the status of the response, or 0 without HTTP.
func (a *Answer) Status() int { return int(a.status) }

// Error returns why the request failed, with the cause that the client is not shown; if nil, it didn't. The status of such a response may be
// 200, where a door's protocol has errors of its own.
func (a *Answer) Error() *wasmtools.Error { return a.failed }

// Took returns how long the request took, including sending its response.
func (a *Answer) Took() time.Duration { return time.Since(a.mux.began) - a.start }

// A Message is a request that came without HTTP, such as over standard input, and has been answered.
type Message struct {
	Began time.Time
	// Operation and Tool are what [Exchange.SetOperation] and [Exchange.SetTool] say of a request.
	Operation, Tool string
	// Call has the rest, also for requests without a tool: the door, the request's id, who asks, and the generation.
	Call *wasmtools.Call
	// Trace is what the request says of the trace that it is part of, or nil.
	Trace *trace.Request
	// Error is why the request failed, or nil.
	Error *wasmtools.Error
}
