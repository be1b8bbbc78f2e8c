package web

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Observer, such as the log, is told of requests. Package invoke tells its own observers of the calls that requests
// make.
type Observer interface {
	// Answered is told of each request once it has been answered: also of a request that was refused for its host, its page or its token
	// before any door saw it, and of one with an unknown path. It is called concurrently, and the connection waits for it. The
	// Answer must be neither changed nor kept.
	Answered(a *Answer)
}

// An Answer is a request that has been answered, as observers see it. Its methods allocate nothing, except for an address as text.
type Answer web.Answer

func (a *Answer) in() *web.Answer { return (*web.Answer)(a) }

// Request returns the request, whose body must not be read. It is nil if the request came over standard
// input.
func (a *Answer) Request() *http.Request { return a.in().Request() }

// RequestID returns the request's id.
func (a *Answer) RequestID() string { return a.in().RequestID() }

// Door returns the path of the door that the request was for, "stdio" for standard input, or "" for probes and if there is no
// such door.
func (a *Answer) Door() string { return a.in().Door() }

// Principal returns who made the request, or nil for probes and for a request that was refused before that
// was known.
func (a *Answer) Principal() *wasmtools.Principal { return a.in().Principal() }

// Client returns the address for which the request was sent, or the zero Addr if it has none.
func (a *Answer) Client() netip.Addr { return a.in().Client() }

// Operation returns what the door says that the request did, or "" if method and path say so.
func (a *Answer) Operation() string { return a.in().Operation() }

// Tool returns the path of the tool that the request was about, or "". Its route in Generation has its version and digest.
func (a *Answer) Tool() string { return a.in().Tool() }

// Generation returns the generation under which the request was handled, or nil.
func (a *Answer) Generation() *wasmtools.Generation { return a.in().Generation() }

// Uses returns the uses that the request's call has made of its tool's grants.
func (a *Answer) Uses() []wasmtools.Use { return a.in().Uses() }

// Status returns the status of the response, or 0 without HTTP.
func (a *Answer) Status() int { return a.in().Status() }

// Error returns why the request failed, with the cause that the client is not shown, or nil if it did not fail. The status of such a response may be
// 200, where a door's protocol has errors of its own.
func (a *Answer) Error() *wasmtools.Error { return a.in().Error() }

// Took returns how long the request took, including sending its response.
func (a *Answer) Took() time.Duration { return a.in().Took() }
