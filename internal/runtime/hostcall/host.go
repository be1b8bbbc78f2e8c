package hostcall

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// A Host runs guests. It is the sandbox's side of a Call.
type Host interface {
	// Context is [Call.Context].
	Context() context.Context
	// Look ends the call if its time or its fuel is used up, or its caller has given up. It lets other goroutines run.
	Look()
	// Wait is [Call.Wait].
	Wait(f func(ctx context.Context))
	// Nest is [Call.Nest].
	Nest(f func(ctx context.Context))
	// Enter is [Call.Enter].
	Enter(export, params, results string, stack []uint64) bool
	// Ends is [Call.Deadline].
	Ends() time.Time
	// Output takes a copy of b as the result, or as more of it. It ends the call if the result gets too large.
	Output(b []byte, replace bool)
	// Fail takes a copy of b as the failure, and ends the call if b is too large.
	Fail(b []byte)
	// Descriptor is [Call.TakeDescriptor]; with -1 it is [Call.GiveDescriptor].
	Descriptor(n int64) bool
	// Log is [Call.Log].
	Log(level slog.Level, source string, line []byte) bool
	// Progress is [Call.Progress].
	Progress(done, total float64, message []byte) bool
	// Used is [Call.Used].
	Used(u Use)
	// Hold is [Call.Hold].
	Hold(n int64)
	// The host is also the outer call of calls that its guest makes.
	Outer
}

// An Outer is a call inside which another one runs, because its guest calls another tool. The inner call takes its bounds from the Outer, and reports
// to it what it has used. An Outer is used on the goroutine of the function that makes the inner call, and not after that function has returned.
type Outer interface {
	// Depth returns how many calls surround the outer call: 0 for one that a client made.
	Depth() int
	// Ends is [Call.Deadline].
	Ends() time.Time
	// Fuel returns how much fuel the outer call has left, or math.MaxInt64 if it has no limit. It may be negative.
	Fuel() int64
	// Burn counts the inner call's fuel as used by the outer call.
	Burn(fuel int64)
	// Count counts the inner call's use of a capability as the outer call's.
	Count(u Use)
	// Line takes one of the log lines that the outer call may still write. It returns false if none is left.
	Line() bool
	// Tally adds n to the sum that the client's call, with all calls inside it, keeps under a key, and returns the sum. The key must be comparable.
	Tally(key any, n int) int
}

// A Memory is a guest's memory.
type Memory interface {
	// Read returns the bytes themselves, or false if some of them are outside the memory.
	Read(offset, length uint32) ([]byte, bool)
	// Size returns the size in bytes.
	Size() uint32
}

// A Guest is what a Call needs to know about its guest.
type Guest struct {
	Memory Memory
	// Command is set for a plain WASI program.
	Command bool
	// Sets is the number of sets that the engine has.
	Sets int
}

// A Run is what a Call needs to know about one run. The zero Run is a start.
type Run struct {
	Serving   bool
	Input     []byte
	Principal fmt.Stringer
	// Grants are the tool's grants, indexed by the numbers of the sets. The slice may be shorter than the number of sets.
	Grants []any
	// Settings are the program's settings. They are also set while a program starts.
	Settings []byte
}

// NewCall returns the Call of a guest. It is used for one run after another.
func NewCall(host Host, guest Guest) Call { return Call{host: host, guest: guest} }

// Begin prepares c for a run.
func (c *Call) Begin(r Run) { c.run, c.read, c.spent = r, 0, 0 }

// Invoke calls f, a function of the set with that number.
func (c *Call) Invoke(f *Function, set int, stack []uint64) {
	c.function, c.set = f, set
	c.Charge(f.Cost)
	f.Do(c, stack)
}

// Spent returns how many nanoseconds were charged since the last call of Spent.
func (c *Call) Spent() int64 {
	spent := c.spent
	c.spent = 0
	return spent
}

// End ends all states that were kept for the run, even if one of them panics.
func (c *Call) End() {
	if c.states != nil { // most calls keep none, and a function that defers takes 20 ns
		c.endStates()
	}
}

func (c *Call) endStates() {
	for i, s := range c.states {
		if s == nil {
			continue
		}
		c.states[i] = nil
		defer func() {
			c.set = i
			s.End(c)
		}()
	}
}

// A Listener hears what a call says before its result. It is called by one goroutine at a time, and the guest waits until it returns.
type Listener interface {
	// Log receives a log line: valid UTF-8, at most MaxLine bytes. source says where the line came from: "log", "stdout" or "stderr".
	Log(level slog.Level, source, line string)
	// Progress receives a report of how much of its work the guest has done. done is finite, not negative, and greater each time. total is how much
	// there is to do, in the same unit and no less than done, or 0 if that is not known. message is valid UTF-8 of at most 1 KiB, and may be empty.
	// There are at most ten reports in a second.
	Progress(done, total float64, message string)
}
