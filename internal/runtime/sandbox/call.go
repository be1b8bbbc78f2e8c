package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/toolsrv/toolsrv/internal/progress"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A call is all the state that the host keeps about one run of a guest. It belongs to an instance, which wipes it before the next run. It is also the
// context that wazero passes to host functions, so that they find it without a look-up. A guest runs on one goroutine, so a call needs no lock.
type call struct {
	abi    hostcall.Call // what host functions see of it
	engine *Engine
	owner  *instance
	memory *linmem.Memory // the guest's
	module *module
	runState
}

// A runState is the input of one run, and its results so far.
type runState struct {
	ctx       context.Context // the caller's
	deadline  time.Time
	outer     hostcall.Outer // nil: none
	limits    *limits.Limits
	lines     lines
	reports   *progress.Reports // reports of the call's progress; nil: none yet
	meter     meter
	waiting   context.Context // the context of its waits; nil: it has not waited yet
	waited    func()          // ends it
	first     bool            // the key to the reserve is held, by this run or the one that started it
	granted   int64           // bytes of call stack that the guest has received
	beside    int64           // bytes that the account holds for the call, beyond the instance's: for more call stack, for output, and for the host
	short     int64           // bytes that the account should hold, if it had no room for them; otherwise 0
	starting  bool            // this is a start, which serves no caller
	inside    int             // how many of the host's calls of the guest's functions have not returned yet
	counter   hostcall.Counter
	tallies   map[any]int  // sums for the call and those inside it; only in an outermost call; nil: nothing counted yet
	filter    filter       // filters what the guest says
	principal fmt.Stringer // on whose behalf the guest runs; nil: on nobody's
	output    []byte       // nil: none yet
	failure   []byte       // the JSON passed to fail; nil: none
}

var (
	_ context.Context = (*call)(nil)
	_ hostcall.Host   = (*call)(nil)
)

// begin prepares c for a run.
func (c *call) begin(r *run) {
	c.ctx, c.deadline, c.outer, c.limits = r.ctx, r.deadline, r.Outer, r.limits
	c.counter, c.filter, c.principal = r.Counter, r.filter, r.Principal
	c.lines = lines{tool: r.tool, left: r.limits.LogLines, listener: r.Listener}
	c.first = r.first
	c.meter = meter{most: r.fuel()}
	c.meter.pace, c.meter.give = c.module.paces.Begin()
	if r.start {
		c.abi.Begin(hostcall.Run{}) // configure sets the settings once the part that modules share has started
	} else {
		c.abi.Begin(hostcall.Run{Serving: true, Input: r.Input, Principal: r.Principal, Grants: r.grants, Settings: c.module.settings})
	}
}

// wipe forgets the run.
func (c *call) wipe() {
	c.rest()
	c.runState = runState{}
	c.abi.Begin(hostcall.Run{})
}

// Deadline returns the deadline, which wazero does not use.
func (c *call) Deadline() (time.Time, bool) { return c.deadline, true }

// Done is closed when the caller gives up, but not at the deadline: a call has no timer.
func (c *call) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns why the run has to end, or nil.
func (c *call) Err() error { return c.over(time.Now()) }

// Value returns nil. wazero asks for its experimental options in every call.
func (c *call) Value(any) any { return nil }

// Look is look, for host functions to call.
func (c *call) Look() { c.look(time.Now()) }

// Wait calls f, which may wait for something.
func (c *call) Wait(f func(context.Context)) {
	c.memory.Unwatch()
	c.report()
	c.pause()
	f(c.patience())
	c.meter.since = time.Time{} // the guest's pace can't be measured across a wait
	c.Look()
}

// patience returns a context that is done when the run must end.
func (c *call) patience() context.Context {
	if c.waiting == nil {
		c.waiting, c.waited = c.engine.limit(c.ctx, c.deadline) // made once for all waits: it takes three contexts and a timer
	}
	return c.waiting
}

// report passes on a progress report that is being kept back, before a pause.
func (c *call) report() {
	if c.reports != nil && c.reports.Due(time.Now(), true) {
		c.tell(time.Now())
	}
}

// Nest calls f, which runs another guest inside this call. The other guest checks the time itself.
func (c *call) Nest(f func(context.Context)) {
	watched := c.memory.Pause()
	c.report()
	c.pause()
	f(c.ctx)
	if c.Look(); watched {
		c.memory.Resume()
	}
}

// end ends everything that the run has begun outside the guest.
func (c *call) end() {
	c.rest()
	c.abi.End()
}

// rest gives back what the guest needed only while it ran.
func (c *call) rest() {
	c.stand()
	if c.waiting != nil {
		c.waited()
		c.waiting, c.waited = nil, nil
	}
}

// Context returns the caller's context.
func (c *call) Context() context.Context { return c.ctx }

// Ends returns the latest time at which the run ends, by the tool's limit and by the caller's own deadline.
func (c *call) Ends() time.Time {
	if callers, ok := c.ctx.Deadline(); ok {
		return earlier(c.deadline, callers)
	}
	return c.deadline
}

// Depth returns how many calls surround this one.
func (c *call) Depth() int {
	if c.outer == nil {
		return 0
	}
	return c.outer.Depth() + 1
}

// Descriptor takes n of the descriptors that guests may have open; if n is negative, it gives them back. It never waits: the call that holds the
// others may be waiting for this one.
func (c *call) Descriptor(n int64) bool {
	if n < 0 {
		c.engine.account.Give(account.Descriptors, -n)
		return true
	}
	return c.engine.account.Take(account.Descriptors, n, c.first)
}

// freeOutput is the size in bytes up to which output is not counted: it fits into an instance's overhead.
const freeOutput = 16 << 10

// Output adds b to the output, or replaces the output by b.
func (c *call) Output(b []byte, replace bool) {
	if replace {
		c.output = c.output[:0]
	}
	if int64(len(c.output))+int64(len(b)) > c.limits.Output {
		panic(&fault{ToolBadOutput, fmt.Sprintf("The tool's output is larger than its limit of %s.", text.Size(c.limits.Output))})
	}
	if total := len(c.output) + len(b); total > max(cap(c.output), freeOutput) {
		c.extend(int64(total)) // the old buffer still takes room until it is collected
	}
	c.output = append(c.output, b...)
	if c.output == nil {
		c.output = []byte{}
	}
}

// maxFailure is the largest JSON of a failure in bytes.
const maxFailure = 64 << 10

// Fail takes b as the failure.
func (c *call) Fail(b []byte) {
	if len(b) > maxFailure {
		panic(&fault{ToolBadOutput, fmt.Sprintf("What the tool passed to fail has %d bytes; the limit is %s.", len(b), text.Size(maxFailure))})
	}
	c.failure = append(make([]byte, 0, len(b)), b...)
}
