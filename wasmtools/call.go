package wasmtools

import (
	"context"
	"log/slog"
	"time"
)

// A Call is one call of a tool. Whoever makes the call owns it; a tool must not keep it.
type Call struct {
	// Arguments are JSON that the tool's schema accepts, with its defaults filled in. A tool must not change them, nor keep
	// them after it has returned.
	Arguments []byte
	// Principal is who calls. It is never nil in a call that a tool of the service is given.
	Principal *Principal
	// Listener hears what the tool says before its result. Nil: nobody listens.
	Listener Listener
	// Times is told what the phases of the call took. Nil: nobody measures them.
	Times *Times
}

// Times are what the phases of a call took. One that was not reached, or that the tool does not have, is 0.
type Times struct {
	// Validate is the check of the arguments, with their defaults.
	Validate time.Duration
	// Ready is from there to where the tool begins: waiting for a turn, and, where none is idle, making an instance. The first
	// call of a program compiles and initialises it.
	Ready time.Duration
	// Run is the tool's own time.
	Run time.Duration
	// Reset is making the instance as new. It is 0 where the instance was closed instead.
	Reset time.Duration
}

// A Listener hears what a call says before its result. It is called by one goroutine at a time, while the tool runs and waits
// for it, and not after the call has returned.
type Listener interface {
	// Log hears a line that the tool logs, and from where: "log", or the "stdout" or "stderr" of a program. The service's own
	// log has the lines as well.
	Log(level slog.Level, source, line string)
}

// Log tells the listener a line.
func (c *Call) Log(level slog.Level, line string) {
	if c.Listener != nil {
		c.Listener.Log(level, "log", line)
	}
}

// start returns the time, where somebody measures.
func (c *Call) start() (begun time.Time) {
	if c.Times != nil {
		begun = time.Now()
	}
	return begun
}

// ran tells what the tool itself took.
func (c *Call) ran(begun time.Time) {
	if c.Times != nil {
		c.Times.Run = time.Since(begun)
	}
}

// A Caller runs a tool. Clients reach it through [Tool.Call].
type Caller interface {
	// Call runs the tool and returns its result, JSON; what is not JSON reaches no client and counts as CodeToolBadOutput.
	// The caller owns the result. Call is safe for concurrent use.
	//
	// An error is the tool's word, as in the SDKs: clients see its text, with CodeToolError and status 400. One that is
	// an *Error, or wraps it, has its code; where that is CodeToolError and there is no cause, clients see the text of
	// the whole. What clients must not see is the Err of an *Error with CodeInternal. An error of ctx that is handed on
	// counts as the end of the call.
	Call(ctx context.Context, call *Call) (result []byte, err error)
}

// CallerFunc makes a Caller of a plain function.
type CallerFunc func(ctx context.Context, call *Call) ([]byte, error)

// Call calls f.
func (f CallerFunc) Call(ctx context.Context, call *Call) ([]byte, error) { return f(ctx, call) }

// A Runner is a Caller that is part of the service and not a tool's own code, such as the sandbox's: what it returns is JSON,
// and an error of it that is not an *Error is a failure of the service.
type Runner interface {
	Caller
	// IsRunner does nothing: it tells a Runner from other Callers.
	IsRunner()
}

// Call runs the tool with arguments that its schema accepts, and makes of what its Caller returns what clients are told: see
// [Caller]. The caller owns the result.
//
// Call looks neither at the arguments nor at whether the principal may call the tool: package invoke does.
func (t *Tool) Call(ctx context.Context, call *Call) (result []byte, err error) {
	if _, ok := t.Caller.(Runner); ok {
		result, err = t.Caller.Call(ctx, call)
	} else {
		begun := call.start()
		result, err = t.Caller.Call(ctx, call)
		call.ran(begun)
		result, err = nativeOutcome(ctx, result, err)
	}
	if err != nil {
		return nil, err
	}
	if len(result) == 0 {
		return nil, &Error{Code: CodeToolBadOutput, Message: "The tool returned no result"}
	}
	return result, nil
}
