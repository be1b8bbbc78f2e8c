package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// maxStack is the largest limit of a call stack in bytes. It fits into 32 bits.
const maxStack = 1 << 30

// inForce returns what l means, no more than an engine can give.
func inForce(l limits.Limits) limits.Limits {
	l = l.WithDefaults()
	l.Memory, l.Stack = min(l.Memory, maxMemory), min(l.Stack, maxStack)
	return l
}

// A Tool is one tool of a program with its limits, and with its own turns: calls of one tool do not wait for calls of
// another. It is safe for concurrent use and needs no closing.
type Tool struct {
	module *module
	name   string
	index  int32
	limits limits.Limits
	grants []any // by the numbers of the sets of functions
	gate   gate
	peak   atomic.Int64 // bytes of memory that calls lately needed
}

// Tool returns tool number index of the module's manifest. name is what log lines call it. The tool has the grants, which
// concern no other tool of the module, and none of those for sets that the program does not import.
func (p *Program) Tool(name string, index int32, l limits.Limits, grants ...Grant) *Tool {
	l = inForce(l)
	p.module.allow(l.Memory)
	return &Tool{
		module: p.module, name: name, index: index, limits: l, grants: p.module.engine.offered.granted(grants),
		gate: gate{free: l.Concurrency, queue: l.Queue},
	}
}

// Limits returns the tool's limits with their defaults filled in.
func (t *Tool) Limits() limits.Limits { return t.limits }

// A CallSpec is what a tool is called with.
type CallSpec struct {
	// Input is the arguments, JSON. It is not kept.
	Input []byte
	// Principal tells on whose behalf the tool runs, to the functions that it imports; nil: on nobody's.
	Principal fmt.Stringer
	// Listener hears what the tool says before its result, beside the log; nil: nobody listens.
	Listener hostabi.Listener
	// Times is set to what the phases of the call took; nil: nobody times it.
	Times *Times
}

// Call runs the tool in a sandbox that is as new, and returns its output, checked JSON that belongs to the caller. The error
// is an *Error.
func (t *Tool) Call(ctx context.Context, spec CallSpec) (output []byte, err error) {
	r := run{
		ctx: ctx, begun: time.Now(), limits: &t.limits, tool: t.name, index: t.index, peak: &t.peak, listener: spec.Listener,
		guest: hostabi.Run{Serving: true, Input: spec.Input, Principal: spec.Principal, Grants: t.grants},
	}
	if spec.Times != nil {
		r.clock = &clock{}
		defer func() { *spec.Times = r.clock.times(r.begun) }()
	}
	if int64(len(spec.Input)) > t.limits.Input {
		return nil, &Error{Outcome: InputTooLarge, Message: fmt.Sprintf("The tool's input has %d bytes; its limit is %s.", len(spec.Input), text.Size(t.limits.Input))}
	}
	r.deadline = r.begun.Add(t.limits.Timeout)
	if err := t.turn(&r); err != nil {
		return nil, err
	}
	defer t.gate.leave()
	output, err = t.module.serve(&r)
	return output, asError(err)
}

// turn waits for the tool's turn; leaving the gate ends it.
func (t *Tool) turn(r *run) error {
	if t.gate.try() {
		return nil
	}
	ctx, done := t.module.engine.limit(r.ctx, r.deadline)
	defer done()
	err := t.gate.enter(ctx)
	if errors.Is(err, errFull) {
		return &Error{Outcome: Overloaded, Message: "The tool is busy: too many calls wait already."}
	}
	if err != nil {
		return notBegun(ctx, "its turn", t.limits.Timeout)
	}
	return nil
}

// describeLimits bound Describe. The output is that of the largest manifest.
func describeLimits() limits.Limits { return inForce(limits.Limits{Output: 1 << 20}) }

// Describe runs toolsrv_describe, with the default limits, and returns the manifest that the module tells of itself, at
// most 1 MiB of JSON. The limits do not count what compiling takes, where that is still to be done. The error is an
// *Error.
func (p *Program) Describe(ctx context.Context) ([]byte, error) {
	if !p.module.shape.describe {
		return nil, &Error{Outcome: Internal, Message: fmt.Sprintf("The module has no export %s.", exportDescribe)}
	}
	if err := p.Compile(ctx); err != nil {
		return nil, err
	}
	l := describeLimits()
	p.module.allow(l.Memory)
	r := run{ctx: ctx, begun: time.Now(), limits: &l, describe: true, guest: hostabi.Run{Serving: true}}
	r.deadline = r.begun.Add(l.Timeout)
	output, err := p.module.serve(&r)
	return output, asError(err)
}

// limit returns ctx with the reasons to stop waiting: the deadline, and the engine's closing. A call that does not wait
// does without.
func (e *Engine) limit(ctx context.Context, deadline time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, release := context.WithDeadlineCause(ctx, deadline, errTimeout)
	unhook := context.AfterFunc(e.stop, func() { cancel(errClosing) })
	return ctx, func() {
		unhook()
		release()
		cancel(nil)
	}
}

// asError gives every error of a call the type that callers are promised.
func asError(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	return internal(err)
}
