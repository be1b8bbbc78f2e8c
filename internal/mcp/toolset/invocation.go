package toolset

import (
	"context"
	"errors"
	"strconv"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Codes of JSON-RPC.
const (
	CodeInvalidParams = -32602
	CodeInternal      = -32603
)

// An Error is why a request has no result, for JSON-RPC.
type Error struct {
	Code    int
	Message string
	// Err is the cause for the log, or nil. It is never shown to a client.
	Err error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// An Invocation is a call of a tool that has begun. It must be used by one goroutine only, and not after End.
type Invocation struct {
	// Invocation reads arguments and counts their memory. It is nil if Refused returns true.
	*invoker.Invocation
	entry  *entry
	path   string // of the tool
	relay  *relay // of call_tool
	failed error  // why the call was refused or, later, why Run failed
	done   bool
}

// Begin begins a call of a tool of the view. The error is an *Error, and means that the principal sees no tool of that name. If the call is refused
// for another reason, for example because the tool is disabled, its result says so: see [Invocation.Refused].
//
// If Begin succeeds, the caller must call End once it needs neither the arguments nor the result.
func (v *View) Begin(name string, call *wasmtools.Call) (Invocation, error) {
	var i Invocation
	route, isOwn, ok := v.aim(&i, name, call.Principal)
	if !ok {
		return Invocation{}, errUnknown(name)
	}
	if call.Generation == nil {
		call.Generation = v.derived.generation
	}
	if isOwn {
		i.Invocation, i.failed = v.derived.set.invoker.BeginOwn(route.Tool, call)
	} else {
		i.Invocation, i.failed = v.derived.set.invoker.Begin(route, call)
	}
	return i, nil
}

// Resume moves the call to a view of a later generation, after a change while its arguments were read. name and call are those given to Begin. Resume
// fails as Begin does. The caller must call End in any case.
func (i *Invocation) Resume(v *View, name string, call *wasmtools.Call) error {
	if i.Refused() {
		next, err := v.Begin(name, call)
		if err == nil {
			*i = next
		}
		return err
	}
	next := Invocation{Invocation: i.Invocation}
	route, isOwn, ok := v.aim(&next, name, call.Principal)
	if !ok {
		i.failed = errUnknown(name)
		return i.failed
	}
	if isOwn {
		next.failed = i.Invocation.ResumeOwn(route.Tool)
	} else {
		next.failed = i.Invocation.Resume(route)
	}
	*i = next
	return nil
}

// aim returns the route of the tool with a name that a principal may use, and makes i refer to it. isOwn means that the tool is one of the view's
// own.
func (v *View) aim(i *Invocation, name string, p *wasmtools.Principal) (route wasmtools.Route, isOwn, ok bool) {
	if i.entry = v.own(name); i.entry != nil {
		tool := i.entry.tool
		if i.entry == v.directory.call {
			i.relay = &relay{view: v}
			own := *tool
			own.Caller = i.relay
			tool = &own
		}
		i.path = tool.Path()
		return invoker.RouteTo(tool), true, true
	}
	n, ok := v.find(name, p)
	if !ok {
		return route, false, false
	}
	route = v.derived.generation.Routes()[n]
	i.entry, i.path = v.derived.entries[n], route.Path
	return route, false, true
}

// Tool returns the path of the tool that is called, such as "/math/add". After Run of call_tool it is the path of the tool that it
// has called.
func (i *Invocation) Tool() string { return i.path }

// Headers returns the properties of the arguments that clients repeat in HTTP headers. Nearly all tools have none. The slice is shared and must not
// be changed.
func (i *Invocation) Headers() []Header { return i.entry.headers }

// Refused reports whether the call was refused. Then its arguments are not needed, and Run says why.
func (i *Invocation) Refused() bool { return i.Invocation == nil }

// Run calls the tool, as [invoker.Invocation.Run] does. A failure that a model can act on is a result. Any other one is an error, an *Error. The
// result is valid until End.
func (i *Invocation) Run(ctx context.Context) (Result, error) {
	var result []byte
	if i.failed == nil {
		result, i.failed = i.Invocation.Run(ctx)
	}
	if i.relay != nil && i.relay.called != nil {
		i.entry = i.relay.called
		i.path = i.entry.tool.Path()
	}
	if i.failed != nil {
		return failure(ctx, i.failed)
	}
	i.done = true
	return newResult(i.entry, result), nil
}

// Fail ends the call with an error that happened before Run, for example while the arguments were read. It returns what Run would return.
func (i *Invocation) Fail(ctx context.Context, err error) (Result, error) {
	i.failed = err
	return failure(ctx, err)
}

// End accounts for the call and gives back the memory that it held.
func (i *Invocation) End() {
	if !i.Refused() {
		err := i.failed
		if err == nil && !i.done {
			err = errAbandoned
		}
		i.Invocation.End(err)
	}
}

// Call calls a tool of the view with arguments that are in memory. The result may be kept. The error is an *Error.
func (v *View) Call(ctx context.Context, name string, call *wasmtools.Call) (Result, error) {
	i, err := v.Begin(name, call)
	if err != nil {
		return Result{}, err
	}
	defer i.End()
	return i.Run(ctx)
}

// errAbandoned is the error of a call that ended before it ran, or with a panic.
var errAbandoned = errors.New("the call did not finish")

// errUnknown is the error for a name under which the principal sees no tool. It is the same whether one exists or not.
func errUnknown(name string) error {
	return &Error{Code: CodeInvalidParams, Message: "Unknown tool: " + strconv.Quote(text.Short(name)), Err: &wasmtools.Error{Code: wasmtools.CodeNotFound}}
}
