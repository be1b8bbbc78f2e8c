package hostcall

import "time"

// A Use is one use of a capability: what it asked of the outside world, and how that ended.
type Use struct {
	// Capability is the name of the set in one word, such as "http". It is the same for all uses that a function counts.
	Capability string
	// Target says what was used, in a form for people: an origin, a key, a tool. It never holds a secret, and is cut if it is long.
	Target string
	// Sent and Received are in bytes.
	Sent, Received int64
	Took           time.Duration
	// Outcome is empty if the use succeeded, NotGranted, or the code of another failure that the guest was told.
	Outcome string
	// Status is the status of an answer over HTTP, or 0.
	Status int
	// Redacted says that a secret was removed from the answer.
	Redacted bool
}

// NotGranted is the Outcome of a use that the tool's grant does not allow.
const NotGranted = "not_granted"

// A Counter counts what a call uses. The call's goroutine calls it before the call returns.
type Counter interface {
	Used(u Use)
}

// A Watcher is told of each use, except uses by calls inside the call. A Counter may also be a Watcher.
type Watcher interface {
	Watched(u Use)
}

// Used counts a use, for the call's line in the log and its caller's accounts. At the level debug, each use has a line of its own. At other
// levels, only uses that a tool's grant does not allow have one, and of these only the tool's first in a client's call.
func (c *Call) Used(u Use) { c.host.Used(u) }

// Tally counts n uses of the tool's grant for the function's set, and returns the uses so far in the client's call, including all calls
// inside it. So a tool that calls itself, or is called again and again, gets no more than a single call would. Grants of sets that use it must be
// comparable, such as pointers.
func (c *Call) Tally(n int) int { return c.host.Tally(c.Grant(), n) }

// Hold makes the account of the process count n bytes of the host's memory for the call, until it ends: bodies, answers, and whatever else
// a guest can make the host keep. A negative n gives bytes back earlier. It must be called before the memory is allocated, and, unlike f of
// [Call.Wait], only by the goroutine of the call. If there is no room, it waits for some, and then ends the call.
func (c *Call) Hold(n int64) { c.host.Hold(n) }
