package hostabi

import (
	"context"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// A Call is one run of a guest, as host functions see it: the guest's memory, its budget and its grants. A function uses it on the
// goroutine that it is called on, and not after it has returned.
//
// A run either serves a call or is a start. A start brings a guest to the point where calls can begin. All calls share the same start, and it has
// no grants.
type Call hostcall.Call

// run is the same memory as the Call, so that calling a function allocates nothing.
func (c *Call) run() *hostcall.Call { return (*hostcall.Call)(c) }

// Serving reports whether the run serves a call; it is a start otherwise.
func (c *Call) Serving() bool { return c.run().Serving() }

// Context returns the context of the call, for its values, such as a trace. It may outlive the run, and nothing may wait for it. A function
// that may wait uses f of [Call.Wait], whose context has the same values.
func (c *Call) Context() context.Context { return c.run().Context() }

// Grant returns what the tool was granted of the function's set: a value of the set's own type, which many calls share. It is
// nil, and nothing is allowed, if the tool was granted nothing, and while the guest starts or describes itself.
func (c *Call) Grant() any { return c.run().Grant() }

// Deadline returns the time by which the call ends, from the tool's limit and the caller's own.
func (c *Call) Deadline() time.Time { return c.run().Deadline() }

// Wait calls f, which may wait until ctx is done. ctx is done when the call must end; Wait then ends the call and does not return. A
// function that waits for a timer, a file or a network must do so in f. All waits of a run get the same ctx, which is done by the end of
// the run.
func (c *Call) Wait(f func(ctx context.Context)) { c.run().Wait(f) }

// Charge counts work of the host like instructions of the guest, in nanoseconds of a fixed estimate. Without it, a guest could make the host work
// for a long time with a few instructions. It ends the call if its time or its fuel is used up.
func (c *Call) Charge(nanos int) { c.run().Charge(nanos) }

// Hold makes the account of the process count n bytes of the host's memory for the call, until it ends: bodies, answers, and whatever else
// a guest can make the host keep. A negative n gives bytes back earlier. It must be called before the memory is allocated, and, unlike f of
// [Call.Wait], only by the goroutine of the call. If there is no room, it waits for some, and then ends the call.
func (c *Call) Hold(n int64) { c.run().Hold(n) }

// Tally counts n uses of the tool's grant for the function's set, and returns the uses so far in the client's call, including all calls
// inside it. So a tool that calls itself, or is called again and again, gets no more than a single call. Grants of sets that use it must be
// comparable, such as pointers.
func (c *Call) Tally(n int) int { return c.run().Tally(n) }

// Log writes one line for the guest to the host's log; what is beyond 4 KiB is dropped. source is a word for where the line came from. Log
// reports false, and writes nothing, if the call has written as many lines as it may.
func (c *Call) Log(level slog.Level, source string, line []byte) bool {
	return c.run().Log(level, source, line)
}

// Progress reports how much of its work the guest has done, to those who listen to the call. total is how much there is to do, 0 if the guest
// does not know. A report without further progress is dropped. A report that comes too soon after the last one is kept until it is due, unless
// another one replaces it before that. Progress reports true if somebody was notified now.
func (c *Call) Progress(done, total float64, message []byte) (told bool) {
	return c.run().Progress(done, total, message)
}

// Trap ends the call, because of what the guest did, such as "it gave fd_read a place outside its memory". It does not return.
func (c *Call) Trap(format string, args ...any) { c.run().Trap(format, args...) }

// View returns the guest's bytes at ptr. They are the guest's memory itself: copy what is kept.
func (c *Call) View(ptr, length uint64) []byte { return c.run().View(ptr, length) }

// Read returns a copy of the guest's bytes at ptr.
func (c *Call) Read(ptr, length uint64) []byte { return c.run().Read(ptr, length) }

// Write copies b to ptr.
func (c *Call) Write(ptr uint64, b []byte) { c.run().Write(ptr, b) }

// A Use is one use of a capability: what it asked of the outside world, and how that ended.
type Use struct {
	// Capability is the name of the set in one word, such as "http". It is the same for all uses that a function counts.
	Capability string
	// Target says what was used, in a form for people: an origin, a key, a tool. It never holds a secret, and is cut if it is long.
	Target string
	// Sent and Received are in bytes.
	Sent, Received int64
	Took           time.Duration
	// Outcome is empty if it worked, or else the code of the failure that the guest was told.
	Outcome string
	// Status is the status of an answer over HTTP, or 0.
	Status int
	// Redacted says that a secret was removed from the answer.
	Redacted bool
}

// Used counts a use, for the call's line in the log and its caller's accounts. At the level debug, each use has its own line. At other levels,
// only uses that a tool's grant does not allow have one (their Outcome is "not_granted"), and of these only the first in a client's call.
func (c *Call) Used(u Use) { c.run().Used(hostcall.Use(u)) }
