package web

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Observer, such as the log, is told of requests. Package invoke tells its own observers of the calls that requests make.
type Observer interface {
	// Answered is called for each request once it has been answered, even if it was refused for its host, page or token before any door saw it, or if
	// nothing is at its path. It is called concurrently, and the connection waits for it. The Answer must not be changed or kept.
	Answered(a *Answer)
}

// An Answer is a request that has been answered, as observers see it. Its methods allocate nothing, except for an address as text.
type Answer Exchange

// Request returns the request, whose body must not be read. It is nil if the request came without HTTP: see [Mux.Tell].
func (a *Answer) Request() *http.Request { return a.request }

// RequestID returns the request's id.
func (a *Answer) RequestID() string { return a.id[0] }

// Door returns the path of the door that the request was for, "stdio" for standard input, or "" if there is none, and for probes.
func (a *Answer) Door() string { return a.call.Door }

// Principal returns who made the request, or nil if it was refused before that was known, and for probes.
func (a *Answer) Principal() *wasmtools.Principal { return a.call.Principal }

// Client returns the address of the request's client, or the zero Addr if it has none.
func (a *Answer) Client() netip.Addr { return (*Exchange)(a).Address() }

// Operation returns what the request did, in the door's words, or "" if method and path say so.
func (a *Answer) Operation() string { return a.operation }

// Tool returns the path of the tool that the request was about, or "". Its route in Generation has its version and digest.
func (a *Answer) Tool() string { return a.tool }

// Generation returns the request's generation, or nil.
func (a *Answer) Generation() *wasmtools.Generation { return a.call.Generation }

// Uses returns how the request's call used the grants of its tool.
func (a *Answer) Uses() []wasmtools.Use { return a.call.Uses }

// Times returns how long the phases of that call took. They are not known for nested calls, or without HTTP.
func (a *Answer) Times() wasmtools.Times { return a.times }

// Trace returns the request's part of a trace, or nil if nobody records requests.
func (a *Answer) Trace() *trace.Request { return a.trace }

// Began returns when the request arrived.
func (a *Answer) Began() time.Time { return a.mux.began.Add(a.start) }

// Status returns the status of the response, or 0 without HTTP.
func (a *Answer) Status() int { return int(a.status) }

// Error returns why the request failed, with the cause that is hidden from the client, or nil. The status of a failed request may be 200 if the
// door's protocol has its own errors.
func (a *Answer) Error() *wasmtools.Error { return a.failed }

// Took returns how long the request took, including sending the response.
func (a *Answer) Took() time.Duration { return time.Since(a.mux.began) - a.start }

// A Message is a request that came without HTTP, for example over standard input, and has been answered.
type Message struct {
	Began time.Time
	// Operation and Tool are as for [Exchange.SetOperation] and [Exchange.SetTool].
	Operation, Tool string
	// Call has the rest, even for requests without a tool: the door, the request id, the principal, and the generation.
	Call *wasmtools.Call
	// Trace is the request's part of a trace, or nil.
	Trace *trace.Request
	// Error is why the request failed, or nil.
	Error *wasmtools.Error
}
