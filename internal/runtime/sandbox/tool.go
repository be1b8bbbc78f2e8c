package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// maxStack is the largest limit of a call stack in bytes. It fits into 32 bits.
const maxStack = 1 << 30

// inForce returns the limits that l means, within the bounds of what an engine can do.
func inForce(l limits.Limits) limits.Limits {
	l = limittable.Meant(l)
	l.Memory, l.Stack = min(l.Memory, maxMemory), min(l.Stack, maxStack)
	return l
}

// A Tool is one tool of a program with its limits and its own queue, so calls of one tool do not wait for calls of another. It is safe for concurrent
// use, and needs no closing.
type Tool struct {
	module *module
	name   string
	index  int32
	limits limits.Limits
	grants []any // indexed by the numbers of the sets of functions
	filter filter
	nests  bool // it may call other tools
	gate   *gate
	peak   peak // of its calls
}

// Tool returns the tool with number index in the module's manifest. name is its name in log lines. The grants are for this tool alone; a grant for a
// set that the program may not import has no effect.
func (p *Program) Tool(name string, index int32, l limits.Limits, grants ...hostcall.Grant) *Tool {
	l = inForce(l)
	p.module.allow(l.Memory)
	t := &Tool{module: p.module, name: name, index: index, limits: l, gate: newGate(l.Concurrency, l.Queue)}
	t.grants, t.nests = p.module.engine.offered.granted(grants)
	t.filter = filterOf(t.grants)
	return t
}

// Limits returns the tool's limits, including defaults.
func (t *Tool) Limits() limits.Limits { return t.limits }

// A CallSpec describes a call of a tool.
type CallSpec struct {
	// Input is the arguments, JSON. It is not kept.
	Input []byte
	// Principal is whoever the tool runs on behalf of. Functions that the tool imports can read it. It may be nil, and may be a Party.
	Principal fmt.Stringer
	// Outer is the call inside which this one is made; nil for a client's call. This call ends no later than the outer one, uses no more fuel than the
	// outer one has left, and counts as a part of it.
	//
	// Others may be waiting for what the outer call holds. So a call inside another is refused as Overloaded if it would have to wait for memory, or for
	// a place of a tool that may itself call tools. For a place of any other tool it waits at most a quarter of its time.
	Outer hostcall.Outer
	// Listener receives what the tool says before its result; the log does so too. If nil, nobody listens.
	Listener hostcall.Listener
	// Counter counts the tool's uses of what it was granted. If nil, nobody counts.
	Counter hostcall.Counter
	// If Fuel is not nil, Call sets it to the fuel that the call used, including the calls inside it.
	Fuel *int64
	// If Times is not nil, Call sets it to the durations of the call's phases.
	Times *Times
}

// Call runs the tool in a clean sandbox. It returns the tool's output: valid JSON, which belongs to the caller. The error is
// an *Error.
func (t *Tool) Call(ctx context.Context, spec CallSpec) (output []byte, err error) {
	if spec.Times == nil {
		return t.call(ctx, spec, nil)
	}
	var c clock
	begun := time.Now()
	output, err = t.call(ctx, spec, &c)
	*spec.Times = c.times(begun)
	return output, err
}

func (t *Tool) call(ctx context.Context, spec CallSpec, c *clock) (output []byte, err error) {
	if spec.Fuel != nil {
		*spec.Fuel = 0
	}
	if int64(len(spec.Input)) > t.limits.Input {
		return nil, &Error{Outcome: InputTooLarge, Message: fmt.Sprintf("The tool's input has %d bytes; its limit is %s.", len(spec.Input), text.Size(t.limits.Input))}
	}
	r := run{
		CallSpec: spec, ctx: ctx, begun: time.Now(), limits: &t.limits, tool: t.name, index: t.index, clock: c, peak: &t.peak,
		grants: t.grants, filter: t.filter,
	}
	r.deadline = r.begun.Add(t.limits.Timeout)
	if r.Outer != nil {
		r.deadline = earlier(r.deadline, r.Outer.Ends())
	}
	if err := t.turn(&r); err != nil {
		return nil, err
	}
	defer t.gate.leave()
	output, err = t.module.serve(&r)
	return output, asError(err)
}

// turn waits for one of the tool's places. Leaving the gate gives it back.
func (t *Tool) turn(r *run) error {
	if t.gate.try() {
		return nil
	}
	if r.Outer != nil && t.nests {
		return &Error{Outcome: Overloaded, Message: "The tool is busy. It may call tools itself, so a call inside another one does not wait for it."}
	}
	defer r.clock.turned(r.clock.now())
	ctx, done := t.module.engine.limit(r.ctx, r.patience())
	defer done()
	err := t.gate.enter(ctx, partyOf(r.Principal))
	if errors.Is(err, errFull) {
		return &Error{Outcome: Overloaded, Message: "The tool is busy: too many calls are waiting already. Try again later."}
	}
	if r.Outer != nil && errors.Is(err, errTimeout) {
		return &Error{Outcome: Overloaded, Message: "The tool is busy, and a call inside another can't wait any longer."}
	}
	if err != nil {
		return notBegun(ctx, "its turn", t.limits.Timeout)
	}
	return nil
}

// A Party is a Principal that takes turns with others when calls wait for a place: calls with the same Party wait behind each other.
type Party interface{ Party() string }

func partyOf(p fmt.Stringer) string {
	if of, ok := p.(Party); ok {
		return of.Party()
	}
	return ""
}

// A ToolState is how many calls of a tool hold one of its places (limits.Limits.Concurrency), and how many wait for one
// (limits.Limits.Queue).
type ToolState struct{ Running, Waiting int }

// State returns how many calls of the tool there are.
func (t *Tool) State() ToolState {
	free, waiting := t.gate.state()
	return ToolState{Running: t.limits.Concurrency - free, Waiting: waiting}
}
