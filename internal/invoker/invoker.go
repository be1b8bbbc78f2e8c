// Package invoker is the one way to call a tool, whichever door the call comes through. It finds the tool, checks what the
// principal may call and whether the tool is enabled, admits the call, validates the arguments and fills in their defaults,
// calls the tool, and accounts for the call.
//
// It knows neither HTTP statuses nor any other protocol's codes: a call that fails ends with a [wasmtools.Error], which the
// door translates. A door that has the arguments in memory uses [Invoker.Call]. A door that reads them from a client takes
// the same steps one by one, from [Invoker.Begin] to [Invocation.End]. A panic of a Go function reaches the door.
package invoker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Options are the settings of an Invoker. The zero value is usable.
type Options struct {
	// Memory is how many bytes of arguments and results above 64 KiB all calls may hold at the same time. A call that needs more is refused with
	// CodeOverloaded. So is a call whose caller's other calls hold more than three times as much as is free. A single call may hold as much as its
	// tool allows. In addition, arguments of up to 64 KiB may take a quarter as much. Zero means 256 MiB.
	Memory int64
	// Hurry is called if there is no room for arguments. It makes reading some slow arguments fail soon, and reports whether there were any slow
	// arguments. If so, the invoker waits for their memory. It is called concurrently. If nil, there are no slow arguments to end.
	Hurry func() bool
	// Room reserves bytes of memory for validating arguments that need much of it, and waits for it until ctx is done. The function give returns
	// the memory. The error is ErrTooMuch if there will never be that much, and otherwise the cause of ctx. It is called concurrently. If nil,
	// there is always room.
	Room func(ctx context.Context, bytes int64) (give func(), err error)
	// Rates bounds how many calls each caller makes. If nil, there is no bound.
	Rates *rates.Limiter
	// Observers are told of each call, in the order of the list.
	Observers []invoke.Observer
}

// ErrTooMuch is the error of Options.Room if there will never be that much.
var ErrTooMuch = errors.New("more memory than there is")

// An Invoker calls tools. All doors of a service use the same one, so that they share its memory budget. It is safe for concurrent use.
type Invoker struct {
	memory    *memory
	validator *validator
	rates     *rates.Limiter // or nil
	observers []invoke.Observer
	idle      sync.Pool // of *Invocation
}

// New returns an Invoker.
func New(o Options) *Invoker {
	m := newMemory(o.Memory, o.Hurry)
	v := &Invoker{memory: m, validator: newValidator(m.most, o.Room), rates: o.Rates, observers: slices.Clone(o.Observers)}
	v.idle.New = func() any { return &Invocation{invoker: v} }
	return v
}

// Memory returns how many bytes of arguments and results above 64 KiB all calls hold, and how many they may.
func (v *Invoker) Memory() (held, most int64) {
	v.memory.mu.Lock()
	defer v.memory.mu.Unlock()
	return v.memory.used, v.memory.most
}

// Holders returns how much of that each caller holds, by name or address. Callers with the same name are counted together.
func (v *Invoker) Holders() map[string]int64 {
	v.memory.mu.Lock()
	defer v.memory.mu.Unlock()
	by := make(map[string]int64, len(v.memory.held))
	for caller, held := range v.memory.held {
		by[caller.String()] += held
	}
	return by
}

func errNotFound() error { return &wasmtools.Error{Code: wasmtools.CodeNotFound} }

// RouteTo returns a route to a tool that is in no table. The tool is enabled.
func RouteTo(t *wasmtools.Tool) wasmtools.Route {
	lacks := len(t.Missing) > 0
	return wasmtools.Route{Tool: t, Path: t.Path(), Enabled: !lacks, Ungranted: lacks}
}

// Call calls the tool of a route. call.Arguments has the arguments as the client sent them. Call fills in the defaults. If the call has a client,
// the client's current generation and principal apply, since they may have changed while the arguments were read. A large result counts as used
// memory until the client has been answered. The error is a *wasmtools.Error.
func (v *Invoker) Call(ctx context.Context, route wasmtools.Route, call *wasmtools.Call) (result []byte, err error) {
	if call.Client != nil {
		now, err := renew(route, call)
		if err != nil {
			v.tellRefused(route.Path, route.Tool, call, err)
			return nil, err
		}
		route = now
	}
	i, err := v.Begin(route, call)
	if err != nil {
		return nil, err
	}
	defer func() { i.End(err) }()
	if result, err = i.Run(ctx); err != nil {
		return nil, err
	}
	if call.Client != nil && i.buffer.held > 0 {
		kept := buffer{by: i.buffer.by, held: i.buffer.held}
		i.buffer.held = 0
		call.Client.Finally(func() { v.memory.give(&kept) })
	}
	return result, nil
}

// renew updates a call to the present generation and principal of its client, and returns the route of its tool in that generation.
func renew(route wasmtools.Route, call *wasmtools.Call) (wasmtools.Route, error) {
	g, p, err := call.Client.Now()
	if err != nil {
		return route, fault.Of(context.Background(), err)
	}
	before := call.Generation
	changed := g != before || p != call.Principal
	call.Generation, call.Principal = g, p
	if !changed || before == nil || g == nil {
		return route, nil
	}
	if _, listed := before.Lookup(route.Path); !listed { // one of the door's own tools
		return route, nil
	}
	return invoke.Find(g, route.Path, p)
}

// An Invocation is a call that was admitted. It must be used by one goroutine only, and not after End.
type Invocation struct {
	invoker *Invoker
	tool    *wasmtools.Tool
	path    string // path of the tool
	call    *wasmtools.Call
	buffer  buffer
	read    bool // the arguments are in buffer
	inside  bool // foreign code is running, which may keep the buffer if it panics
	ticket  rates.Ticket
	told    told // to observers
}

// Begin admits a call of the tool of a route. It fails with CodeNotFound if the principal may not call the tool, with CodeToolChanged if the
// principal is bound to another fingerprint of the tool, with CodeToolDisabled if the tool is disabled, with CodeToolNotGranted if the tool lacks a
// grant, with CodeOverloaded while there is no room for the large result that it will probably have, and with CodeRateLimited if the caller makes too
// many calls. A tool that was removed or disabled after its route was found is still called.
//
// If Begin succeeds, the door must call End once it needs neither the arguments nor the result.
func (v *Invoker) Begin(route wasmtools.Route, call *wasmtools.Call) (*Invocation, error) {
	return v.begin(route, call, v.admit(&route, call), true)
}

// BeginInside is Begin for a nested call, made with [Inside]. It does not count towards the caller's rate again.
func (v *Invoker) BeginInside(route wasmtools.Route, call *wasmtools.Call) (*Invocation, error) {
	return v.begin(route, call, v.admit(&route, call), false)
}

// BeginOwn is Begin for one of the service's own tools, which is in no table, such as a tool that searches among the others. Every principal may call
// it.
func (v *Invoker) BeginOwn(t *wasmtools.Tool, call *wasmtools.Call) (*Invocation, error) {
	route := RouteTo(t)
	return v.begin(route, call, v.admitOwn(route.Path, call), true)
}

// begin begins a call, unless it is refused. counts says whether the call counts towards the caller's rate. A tool's call never does.
func (v *Invoker) begin(route wasmtools.Route, call *wasmtools.Call, refused error, counts bool) (*Invocation, error) {
	var ticket rates.Ticket
	if refused == nil && counts && v.rates != nil && call.Outer == nil {
		ticket, refused = v.rates.Begin(call)
	}
	if refused != nil {
		v.tellRefused(route.Path, route.Tool, call, refused)
		return nil, refused
	}
	i := v.idle.Get().(*Invocation)
	i.tool, i.path, i.call, i.buffer.call, i.ticket = route.Tool, route.Path, call, call, ticket
	return i, nil
}

func errNoPrincipal() error {
	return &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New("the call has no principal: a door gets it from Exchange.Call; a program uses wasmtools.Everybody() only if it doesn't need to know its callers")}
}

// admitOwn is admit for one of the service's own tools.
func (v *Invoker) admitOwn(path string, call *wasmtools.Call) error {
	if call.Principal == nil {
		return errNoPrincipal()
	}
	return v.memory.check(path, call)
}

// admit returns an error if a call is refused, whatever its arguments are.
func (v *Invoker) admit(route *wasmtools.Route, call *wasmtools.Call) error {
	if err := Admits(*route, call.Principal); err != nil {
		return err
	}
	return v.memory.check(route.Path, call)
}

// Admits returns an error if a principal can't call the tool of a route at all. [Invoker.Begin] lists the errors.
func Admits(route wasmtools.Route, p *wasmtools.Principal) error {
	switch {
	case p == nil:
		return errNoPrincipal()
	case !p.May(route.Path):
		return errNotFound()
	case !p.MayCall(&route):
		return &wasmtools.Error{Code: wasmtools.CodeToolChanged, Message: "Tool " + route.Path + " has changed since this caller was bound to it: its fingerprint is " +
			route.Fingerprint() + " now. Don't call it again: tell your operator, who should look at what has changed and then bind the token to the new fingerprint"}
	case route.Ungranted:
		return &wasmtools.Error{Code: wasmtools.CodeToolNotGranted,
			Message: "Tool " + route.Path + " was not granted what it needs: " + lacking.Of(route.Tool)}
	case !route.Enabled:
		message := "Tool " + route.Path + " is disabled"
		if route.Reason != "" {
			message += ": " + route.Reason
		}
		return &wasmtools.Error{Code: wasmtools.CodeToolDisabled, Message: message}
	}
	return nil
}

// Resume moves the call to a route of a later generation, after a change while its arguments were read. It fails as [Invoker.Begin] does. The door
// must call End in any case.
func (i *Invocation) Resume(route wasmtools.Route) error {
	if err := i.invoker.admit(&route, i.call); err != nil {
		return err
	}
	i.tool, i.path = route.Tool, route.Path
	return nil
}

// ResumeOwn is Resume after [Invoker.BeginOwn].
func (i *Invocation) ResumeOwn(t *wasmtools.Tool) error {
	i.tool, i.path = t, t.Path()
	return i.invoker.admitOwn(i.path, i.call)
}

// Limit returns the largest size of the arguments in bytes.
func (i *Invocation) Limit() int64 {
	if limit := i.tool.MaxInput; limit > 0 {
		return limit
	}
	return wasmtools.DefaultMaxInput
}

// TooLarge returns the error for arguments that are larger than Limit.
func (i *Invocation) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge,
		Message: fmt.Sprintf("The body is larger than %d bytes, the limit of %s", i.Limit(), i.path)}
}

// Read reads the arguments of the call from r, up to its end, into memory that is reused after End. length is the number of bytes that the client
// has announced, or -1. The error is r's own, TooLarge if there are more bytes than Limit, or a *wasmtools.Error with CodeOverloaded if there is
// not enough memory.
func (i *Invocation) Read(r io.Reader, length int64) error { return i.ReadFramed(r, length, 0) }

// ReadFramed is Read for arguments inside a message, which may have frame bytes more than Limit. The call's arguments are then the whole message,
// until the door sets them to the right part of it.
func (i *Invocation) ReadFramed(r io.Reader, length, frame int64) error {
	limit := min(i.Limit(), math.MaxInt64-1-frame) + frame
	i.inside = true
	err := i.buffer.read(i.invoker.memory, r, length, limit+1)
	i.inside = false
	i.call.Arguments, i.read = i.buffer.bytes, true
	if int64(len(i.buffer.bytes)) > limit {
		return i.TooLarge()
	}
	return err
}

// Hold counts n more bytes until End, if n is large: a result, or the answer that the door makes of it, is held until the client has read it. If
// there is no room, the error for the client says so.
func (i *Invocation) Hold(n int64) error {
	if n <= small {
		return nil
	}
	if err := i.grow(n); err != nil {
		return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Err: err,
			Message: fmt.Sprintf("The tool has run, but there is no room for its result of %d bytes, because other results are still unread", n)}
	}
	return nil
}

// grow counts n more bytes until End, if there is room for them.
func (i *Invocation) grow(n int64) error { return i.invoker.memory.grow(&i.buffer, n) }

// Run validates the arguments of the call, fills in their defaults and calls the tool. It must be called only once. The result may share memory with
// the arguments. The error is a *wasmtools.Error.
func (i *Invocation) Run(ctx context.Context) ([]byte, error) {
	if err := i.take(); err != nil {
		return nil, err
	}
	if len(i.invoker.observers) > 0 {
		ctx = i.tellBegan(ctx)
	}
	i.inside = true
	err := i.validate(ctx)
	var result []byte
	if err == nil {
		result, err = i.tool.Call(ctx, i.call)
	}
	i.inside = false
	if err != nil {
		return nil, fault.Of(ctx, err)
	}
	if len(i.invoker.observers) > 0 {
		i.told.record.Result = result
	}
	n := int64(len(result))
	i.invoker.memory.note(i.path, n)
	if err := i.Hold(n); err != nil {
		return nil, err
	}
	return result, nil
}

// take checks the size of the arguments, and counts their memory if Read has not done so.
func (i *Invocation) take() error {
	n := int64(len(i.call.Arguments))
	if n > i.Limit() {
		return i.TooLarge()
	}
	if n > small && i.buffer.held == 0 {
		return i.grow(n)
	}
	return nil
}

// validate checks the arguments of the call against the tool's schema, and fills in their defaults, whose memory is counted, too. It may wait.
func (i *Invocation) validate(ctx context.Context) (err error) {
	call := i.call
	if call.Times != nil {
		begun := time.Now()
		defer func() { call.Times.Validate = time.Since(begun) }()
	}
	arguments, err := i.invoker.validator.validate(ctx, i.tool, i.path, call)
	if err != nil {
		return err
	}
	if n := int64(len(arguments) - len(call.Arguments)); n > small {
		if err := i.grow(n); err != nil {
			return err
		}
	}
	call.Arguments = arguments
	return nil
}

// End tells observers that the call has ended, and gives back the memory that it held. err is why the call failed, or nil.
func (i *Invocation) End(err error) {
	v := i.invoker
	if len(v.observers) > 0 {
		i.tellEnd(err)
		i.told = told{}
	}
	i.ticket.End()
	large := i.buffer.held > 0
	v.memory.give(&i.buffer)
	// After a panic, something may still hold the buffer.
	if i.inside || cap(i.buffer.bytes) > small+1 || large {
		return
	}
	if i.read {
		i.call.Arguments = nil // the buffer will hold the next call's arguments
	}
	i.call, i.read, i.buffer = nil, false, buffer{bytes: i.buffer.bytes[:0]}
	v.idle.Put(i)
}

// Inside returns a nested call of c, for the same request. outer is c as the sandbox runs it. If the sandbox does not run c, outer is nil, and the
// sandbox does not treat the new call as part of c.
func Inside(c *wasmtools.Call, outer wasmtools.Outer) *wasmtools.Call {
	return &wasmtools.Call{Principal: c.Principal, Generation: c.Generation, Client: c.Client, Door: c.Door, RequestID: c.RequestID, Outer: outer}
}

// depth returns how many calls a call is nested in: 0 for a client's call.
func depth(c *wasmtools.Call) int {
	if c.Outer == nil {
		return 0
	}
	return c.Outer.Depth() + 1
}
