// Package invoke is the one way to call a tool, through whichever door a call comes: it finds the tool, looks at its switch and
// at what the principal may call, admits the call, validates the arguments and fills in their defaults, calls the tool, and
// accounts for the call.
//
// It knows neither HTTP statuses nor any other protocol's: an error that a call ends with is a [wasmtools.Error], which the
// door translates. A door that has the arguments in memory uses [Invoker.Call]; one that reads them from a client, and
// answers from the memory into which it read them, takes the same steps with [Invoker.Begin].
package invoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Options are the settings of an Invoker. The zero value is usable.
type Options struct {
	// Memory is how many bytes of arguments and results above 64 KiB all calls may hold at the same time; calls that need
	// more are refused with CodeOverloaded. One call alone may hold as much as its tool allows. Zero: 256 MiB.
	Memory int64
	// Account is told of each call when it has ended. It is called concurrently, and the call's client waits for it. Nil:
	// nobody accounts.
	Account func(Record)
}

// A Record is what became of a call.
type Record struct {
	Path      string // of the tool
	Principal *wasmtools.Principal
	// Code is why the call failed. Empty: it has a result.
	Code wasmtools.Code
	// Arguments and Result are their sizes in bytes: of the arguments as they came, without the defaults.
	Arguments, Result int
	// Times are what the phases took, as far as the door had them measured.
	Times wasmtools.Times
}

// An Invoker calls tools. The doors of a service share one, so that they share its memory. It is safe for concurrent use.
type Invoker struct {
	memory  *memory
	account func(Record)
	idle    sync.Pool // of *Invocation
}

// New returns an Invoker.
func New(o Options) *Invoker {
	v := &Invoker{memory: newMemory(o.Memory), account: o.Account}
	v.idle.New = func() any { return &Invocation{invoker: v} }
	return v
}

// Find returns the route of a path such as "/math/add". It fails with CodeNotFound where there is none or the principal may
// not call it, without a difference between the two.
func Find(g *wasmtools.Generation, path string, p *wasmtools.Principal) (wasmtools.Route, error) {
	if route, ok := g.Lookup(path); ok && p.May(path) {
		return route, nil
	}
	return wasmtools.Route{}, errNotFound()
}

func errNotFound() error { return &wasmtools.Error{Code: wasmtools.CodeNotFound} }

// RouteTo returns the route of a tool that no table holds: enabled, as a table without switches would have it.
func RouteTo(t *wasmtools.Tool) wasmtools.Route {
	return wasmtools.Route{Tool: t, Path: t.Path(), Enabled: true}
}

// Call calls the tool of a route. The arguments of the call are those of the client: they are validated, and the call has the
// defaults filled in afterwards. The error is a *wasmtools.Error.
func (v *Invoker) Call(ctx context.Context, route wasmtools.Route, call *wasmtools.Call) (result []byte, err error) {
	i, err := v.Begin(route, call)
	if err != nil {
		return nil, err
	}
	defer func() { i.End(err) }()
	if result, err = i.Run(ctx); err != nil {
		return nil, err
	}
	return result, nil
}

// An Invocation is a call that was admitted. It is used by one goroutine, and not after its End.
type Invocation struct {
	invoker *Invoker
	tool    *wasmtools.Tool
	path    string // of the tool
	call    *wasmtools.Call
	buffer  buffer
	given   int  // bytes of the arguments as they came
	result  int  // bytes
	inside  bool // foreign code runs that may keep the buffer if it panics
}

// Begin admits a call of the tool of a route. It fails with CodeNotFound where the principal may not call it, as if it were
// not there; with CodeToolDisabled; and with CodeOverloaded while large calls use up the memory. A route that its table does
// not hold any more, or has disabled since it was found, is called as it was found.
//
// Where it succeeds, the door has to call End once it needs neither arguments nor result any more.
func (v *Invoker) Begin(route wasmtools.Route, call *wasmtools.Call) (*Invocation, error) {
	if err := v.admit(&route, call.Principal); err != nil {
		if v.account != nil {
			v.account(record(route.Path, call, err))
		}
		return nil, err
	}
	i := v.idle.Get().(*Invocation)
	i.tool, i.path, i.call, i.given, i.result = route.Tool, route.Path, call, 0, 0
	return i, nil
}

// admit reports why a call is refused before anybody looks at its arguments, or nil.
func (v *Invoker) admit(route *wasmtools.Route, p *wasmtools.Principal) error {
	switch {
	case p == nil:
		return &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New("a call has no principal: take wasmtools.Everybody where nobody has to be known")}
	case !p.May(route.Path):
		return errNotFound()
	case !route.Enabled:
		message := "Tool " + route.Path + " is disabled"
		if route.Reason != "" {
			message += ": " + route.Reason
		}
		return &wasmtools.Error{Code: wasmtools.CodeToolDisabled, Message: message}
	}
	return v.memory.check()
}

// Limit returns the largest size of the arguments in bytes.
func (i *Invocation) Limit() int64 {
	if limit := i.tool.MaxInput; limit > 0 {
		return limit
	}
	return wasmtools.DefaultMaxInput
}

// TooLarge returns the error of arguments that are larger than Limit.
func (i *Invocation) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge,
		Message: fmt.Sprintf("The body is larger than %d bytes, the limit of %s", i.Limit(), i.path)}
}

// Read reads the arguments of the call to the end of r, into memory that is used again after End. length is how many bytes the
// client announced, or -1. An error is one of r, TooLarge as soon as there is a byte more than Limit, or a *wasmtools.Error with
// CodeOverloaded where there is no memory for the arguments.
func (i *Invocation) Read(r io.Reader, length int64) error {
	limit := min(i.Limit(), math.MaxInt64-1)
	i.inside = true
	err := i.buffer.read(i.invoker.memory, r, length, limit+1)
	i.inside = false
	i.call.Arguments = i.buffer.bytes
	i.given = len(i.buffer.bytes)
	if int64(i.given) > limit {
		return i.TooLarge()
	}
	return err
}

// Run validates the arguments of the call, fills in their defaults and calls the tool. The result may share memory with the
// arguments. The error is a *wasmtools.Error.
func (i *Invocation) Run(ctx context.Context) ([]byte, error) {
	if err := i.take(); err != nil {
		return nil, err
	}
	i.inside = true
	err := i.validate(ctx)
	var result []byte
	if err == nil {
		result, err = i.tool.Call(ctx, i.call)
	}
	i.inside = false
	if err != nil {
		return nil, wasmtools.AsError(ctx, err)
	}
	i.result = len(result)
	if n := int64(i.result); n > small { // it is held for as long as the client takes to read it
		i.invoker.memory.hold(n)
		i.buffer.held += n
	}
	return result, nil
}

// take checks the size of the arguments, and counts those that Read has not counted.
func (i *Invocation) take() error {
	n := int64(len(i.call.Arguments))
	if i.given = int(n); n > i.Limit() {
		return i.TooLarge()
	}
	if n > small && i.buffer.held == 0 {
		if !i.invoker.memory.grow(0, n) {
			return errMemory()
		}
		i.buffer.held = n
	}
	return nil
}

// validate checks the arguments of the call with the schema of the tool, and fills in their defaults. Large ones wait for a
// place.
func (i *Invocation) validate(ctx context.Context) (err error) {
	call := i.call
	if call.Times != nil {
		begun := time.Now()
		defer func() { call.Times.Validate = time.Since(begun) }()
	}
	if len(call.Arguments) > small {
		if err := i.invoker.memory.place(ctx); err != nil {
			return err
		}
		defer i.invoker.memory.leave()
	}
	arguments, err := i.tool.Parameters.Validate(call.Arguments)
	if err == nil {
		call.Arguments = arguments
	}
	return err
}

// End accounts for the call, and gives back what it held. err is why it failed, or nil.
func (i *Invocation) End(err error) {
	v := i.invoker
	v.memory.release(i.buffer.held)
	if v.account != nil {
		if err == nil && i.inside {
			err = errors.New("a panic")
		}
		r := record(i.path, i.call, err)
		r.Arguments, r.Result = i.given, i.result
		v.account(r)
	}
	// After a panic nobody knows who still holds the buffer.
	if i.inside || cap(i.buffer.bytes) > small || i.buffer.held > 0 {
		return
	}
	if cap(i.buffer.bytes) > 0 {
		i.call.Arguments = nil // the next call has its own there
	}
	i.call, i.buffer.bytes = nil, i.buffer.bytes[:0]
	v.idle.Put(i)
}

func record(path string, call *wasmtools.Call, err error) Record {
	r := Record{Path: path, Principal: call.Principal}
	if call.Times != nil {
		r.Times = *call.Times
	}
	if err != nil {
		r.Code = wasmtools.AsError(context.Background(), err).Code
	}
	return r
}
