package wasmtools

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/progress"
)

// A Call is one call of a tool. It belongs to the caller of [Tool.Call]: a tool must not keep it.
type Call struct {
	// Arguments are JSON that the tool's schema accepts, with its defaults filled in. A tool must not change them, and must
	// not keep them.
	Arguments []byte
	// Principal is who calls. It is never nil if the call comes through package invoker, as all calls of the service do.
	Principal *Principal
	// Generation is the generation of the table that decides about the call, and about calls inside it unless files have changed since. If it is nil,
	// the current one decides.
	Generation *Generation
	// Client returns who makes the call now. If it is nil, the principal never changes.
	Client Client
	// Door is where the call came in: the path of a door, such as "/mcp", or "stdio". If empty, the process itself makes it.
	Door string
	// RequestID is the id of the request that the call is made for, as its answer and the log have it. It may be empty.
	RequestID string
	// Outer is the call inside which this one is made, because a tool calls another one; if nil, a client makes it. This call is part of
	// the outer one, and has only the time and fuel that the outer one has left. Outer is a field of the call, and not in a context, where
	// it could be forgotten.
	Outer Outer
	// Listener gets what the tool says before its result. If it is nil, what the tool says is dropped.
	Listener Listener
	// Uses is filled in with what the tool used of each capability that it was granted. It is empty for a tool that used nothing.
	Uses []Use
	// Fuel is filled in with how many instructions the tool has run, including calls inside it. A Go function runs none.
	Fuel int64
	// Times is filled in with how long the phases of the call took. If it is nil, they are not measured.
	Times *Times

	reports *progress.Reports // the progress reports of a Go function; nil if there are none yet
}

// A Client is the request of a door that waits for the result of a call.
type Client interface {
	// Now returns the current generation, and the client's principal under its configuration. It fails if the client would no longer be
	// let in. It may be called from any goroutine while the call runs.
	Now() (*Generation, *Principal, error)
	// Finally calls f when the client has been answered. It must be called on the goroutine of the request.
	Finally(f func())
	// Address returns the address for which the request was sent, or the zero Addr if it has none. It may be called from any goroutine.
	Address() netip.Addr
}

// An Outer is a call inside which another one is made. The sandbox makes it, and gets it back from the inner call. Only one goroutine may
// use it, and only until the inner call has returned.
type Outer interface {
	// Depth returns how many calls the outer call itself is inside: 0 if a client made it.
	Depth() int
}

// Times are the durations of the phases of a call. A phase that was not reached, or that the tool does not have, took 0.
type Times struct {
	// Validate is checking the arguments and filling in the defaults.
	Validate time.Duration
	// Ready is the time until the tool begins, or the call ends because it can't: waiting for a turn and, if no instance is idle, making one. The first call of a
	// program compiles and initialises it.
	Ready time.Duration
	// Turn is the wait for a turn, and Compile the wait for code that is compiled or read from disk. They are parts of Ready.
	Turn, Compile time.Duration
	// Run is the tool's own time.
	Run time.Duration
	// Reset is the time that resetting the instance took. It is 0 if the instance was closed instead.
	Reset time.Duration
}

// A Use is the sum of a call's uses of one capability.
type Use struct {
	// Capability is the capability's name, such as "http" or "kv".
	Capability string
	// Count is the number of uses, Failed the number of uses that failed, and Refused the number of failures because the grant does not allow the use.
	Count, Failed, Refused int
	// Sent and Received are in bytes.
	Sent, Received int64
	// Took is the sum of the times, waiting included.
	Took time.Duration
}

// Used adds to what the call has used. The Capability of the use must be one of a few words.
func (c *Call) Used(u Use) {
	i := slices.IndexFunc(c.Uses, func(known Use) bool { return known.Capability == u.Capability })
	if i < 0 {
		c.Uses = append(c.Uses, u)
		return
	}
	total := &c.Uses[i]
	total.Count += u.Count
	total.Failed += u.Failed
	total.Refused += u.Refused
	total.Sent += u.Sent
	total.Received += u.Received
	total.Took += u.Took
}

// A Listener gets what a tool says before its result. It is called by one goroutine at a time, and never after the call has returned. The
// tool waits for it.
type Listener interface {
	// Log gets a line that the tool logs. source is "log", or "stdout" or "stderr" for what a program writes. The lines are
	// in the service's own log as well.
	Log(level slog.Level, source, line string)
	// Progress is told how much of its work the tool has done. done is finite, not negative, and larger each time. total is how much
	// there is to do, in the same unit and no less than done, or 0 if that is not known. message is valid UTF-8 of at most
	// 1 KiB, and may be empty. There are at most ten reports a second.
	Progress(done, total float64, message string)
}

// Log tells the listener a line, if there is a listener.
func (c *Call) Log(level slog.Level, line string) {
	if c.Listener != nil {
		c.Listener.Log(level, "log", line)
	}
}

// Progress tells the listener, if there is one, how much of its work the tool has done. total is how much there is to do, in the same unit,
// or 0 if that is not known; message may be empty. The listener gets at most ten reports a second, and only reports of further
// progress, so a tool can report as often as it likes. Only one goroutine at a time may call Progress.
func (c *Call) Progress(done, total float64, message string) {
	if c.Listener == nil {
		return
	}
	if c.reports == nil {
		c.reports = new(progress.Reports)
	}
	if now := time.Now(); c.reports.Add(done, total, []byte(message)) && c.reports.Due(now, false) {
		c.tell(now)
	}
}

// tell sends the listener the waiting report, if there is one.
func (c *Call) tell(now time.Time) {
	if done, total, message, ok := c.reports.Take(now); ok {
		c.Listener.Progress(done, total, message)
	}
}

// start returns the current time if the call is measured.
func (c *Call) start() (begun time.Time) {
	if c.Times != nil {
		begun = time.Now()
	}
	return begun
}

// ran records how long the tool itself has run.
func (c *Call) ran(begun time.Time) {
	if c.Times != nil {
		c.Times.Run = time.Since(begun)
	}
}

// A Caller runs a tool. Clients reach it through package invoke, which asks first whether they may.
type Caller interface {
	// Call runs the tool and returns its result, which is JSON. Anything else reaches no client and counts as CodeToolBadOutput. The result
	// belongs to the code that made the call. Call is safe for concurrent use.
	//
	// An error is meant for clients, as in the SDKs: they see its text, with CodeToolError. An *Error, even a wrapped one, keeps its own
	// code. If that is CodeToolError and the *Error has no Err, clients see the text of the whole chain. What clients must not see belongs in the
	// Err of an *Error with CodeInternal. If ctx has ended, its error counts as the end of the call.
	Call(ctx context.Context, call *Call) (result []byte, err error)
}

// CallerFunc makes a Caller of a plain function.
type CallerFunc func(ctx context.Context, call *Call) ([]byte, error)

// Call calls f.
func (f CallerFunc) Call(ctx context.Context, call *Call) ([]byte, error) { return f(ctx, call) }

// A runner is a Caller that belongs to the service, such as the sandbox's, and is not a tool's own code. Its results are JSON
// and need no check. If its error is not an *Error, the service has failed.
type runner interface {
	// IsRunner does nothing. It tells a runner from other Callers.
	IsRunner()
}

// Call runs the tool. It returns what clients may see of what the tool's Caller returns: see [Caller].
//
// Call checks neither the arguments nor what the principal may call. Package invoke does.
func (t *Tool) Call(ctx context.Context, call *Call) (result []byte, err error) {
	if _, ok := t.Caller.(runner); ok {
		result, err = t.Caller.Call(ctx, call)
	} else {
		begun := call.start()
		result, err = t.Caller.Call(ctx, call)
		call.ran(begun)
		result, err = ownOutcome(ctx, result, err)
	}
	if call.reports != nil {
		call.tell(time.Now())
		call.reports = nil // the caller may use the Call again
	}
	if err != nil {
		return nil, err
	}
	if len(result) == 0 {
		return nil, &Error{Code: CodeToolBadOutput, Message: "The tool returned no result"}
	}
	return result, nil
}
