package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Limits bound the calls of one tool. A field that is zero, or negative where nothing else is said, has its default.
type Limits struct {
	// Timeout is the longest time that a call may take, with its waiting for its turn; 5 s.
	Timeout time.Duration
	// Fuel bounds the instructions of a call; 0 is off. It is kept for metered code and has no effect on code that
	// is not: Timeout bounds that.
	Fuel int64
	// Memory is the largest linear memory in bytes; 64 MiB.
	Memory int64
	// Stack bounds the call stack in bytes. It is kept for metered code; other code has the compiler's own ceiling
	// of about 100 MB.
	Stack int64
	// Input and Output are the largest sizes of arguments and result in bytes; 1 MiB and 4 MiB.
	Input  int64
	Output int64
	// LogLines is the number of log lines that a call may write; 100, and none where negative.
	LogLines int
	// Concurrency is the number of calls that run at a time; 4 × GOMAXPROCS.
	Concurrency int
	// Queue is the number of calls that wait while Concurrency others run; 64, and none where negative.
	Queue int
}

func (l Limits) withDefaults() Limits {
	positive := func(v *int64, otherwise int64) {
		if *v <= 0 {
			*v = otherwise
		}
	}
	positive((*int64)(&l.Timeout), int64(5*time.Second))
	positive(&l.Memory, 64<<20)
	positive(&l.Input, 1<<20)
	positive(&l.Output, 4<<20)
	l.Memory = min(l.Memory, maxMemory)
	if l.LogLines == 0 {
		l.LogLines = 100
	}
	if l.Concurrency <= 0 {
		l.Concurrency = 4 * runtime.GOMAXPROCS(0)
	}
	if l.Queue == 0 {
		l.Queue = 64
	}
	l.LogLines, l.Queue = max(l.LogLines, 0), max(l.Queue, 0)
	return l
}

// A Tool is one tool of a program with its limits, and with its own turns: calls of one tool do not wait for calls of
// another. It is safe for concurrent use and needs no closing.
type Tool struct {
	module *module
	name   string
	index  int32
	limits Limits
	gate   gate
}

// Tool returns tool number index of the module's manifest. name is what log lines call it.
func (p *Program) Tool(name string, index int32, limits Limits) *Tool {
	l := limits.withDefaults()
	return &Tool{module: p.module, name: name, index: index, limits: l, gate: gate{free: l.Concurrency, queue: l.Queue}}
}

// Limits returns the tool's limits with their defaults filled in.
func (t *Tool) Limits() Limits { return t.limits }

// Call runs the tool with input, JSON, in a sandbox that is new, and returns its output, checked JSON that belongs to
// the caller. input is not kept. The error is an *Error.
func (t *Tool) Call(ctx context.Context, input []byte) (output []byte, err error) {
	if int64(len(input)) > t.limits.Input {
		return nil, &Error{Outcome: InputTooLarge, Message: fmt.Sprintf("The tool's input has %d bytes; its limit is %s.", len(input), size(t.limits.Input))}
	}
	if !t.module.enter() {
		return nil, closing(ErrClosed)
	}
	defer t.module.leave()
	ctx, done := t.module.engine.limit(ctx, t.limits.Timeout)
	defer done()
	if err := t.gate.enter(ctx); err != nil {
		if errors.Is(err, errFull) {
			return nil, &Error{Outcome: Overloaded, Message: "The tool is busy: too many calls wait already."}
		}
		return nil, notBegun(ctx, "its turn", t.limits.Timeout)
	}
	defer t.gate.leave()
	c := t.module.newCall(t.name, t.limits, input)
	if t.module.shape.command {
		output, err = t.module.serve(ctx, c, exportStart)
	} else {
		output, err = t.module.serve(ctx, c, exportCall, uint64(uint32(t.index)))
	}
	return output, asError(err)
}

// describeLimits bound Describe. The output is that of the largest manifest.
func describeLimits() Limits { return Limits{Output: 1 << 20}.withDefaults() }

// Describe runs toolsrv_describe, with the default limits, and returns the manifest that the module tells of itself, at
// most 1 MiB of JSON. The error is an *Error.
func (p *Program) Describe(ctx context.Context) ([]byte, error) {
	if !p.module.shape.describe {
		return nil, &Error{Outcome: Internal, Message: fmt.Sprintf("The module has no export %s.", exportDescribe)}
	}
	if !p.module.enter() {
		return nil, closing(ErrClosed)
	}
	defer p.module.leave()
	limits := describeLimits()
	ctx, done := p.module.engine.limit(ctx, limits.Timeout)
	defer done()
	output, err := p.module.serve(ctx, p.module.newCall("", limits, nil), exportDescribe)
	return output, asError(err)
}

// limit returns ctx with the reasons to end a call: its timeout, and the engine's closing.
func (e *Engine) limit(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, release := context.WithTimeoutCause(ctx, timeout, errTimeout)
	unhook := context.AfterFunc(e.stop, func() { cancel(errClosing) })
	return ctx, func() {
		unhook()
		release()
		cancel(nil)
	}
}

// asError gives every error of a call the type that callers are promised.
func asError(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return internal(err)
}
