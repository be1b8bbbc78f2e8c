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
	// Look ends the call where its time or its fuel is used up, or its caller gave up. It lets other goroutines run.
	Look()
	// Wait is [Call.Wait].
	Wait(f func(ctx context.Context))
	// Nest is [Call.Nest].
	Nest(f func(ctx context.Context))
	// Enter is [Call.Enter].
	Enter(export, params, results string, stack []uint64) bool
	// Ends is [Call.Deadline].
	Ends() time.Time
	// Output takes a copy of b as the result, or as more of it, and ends the call where that gets too large.
	Output(b []byte, replace bool)
	// Fail takes a copy of b as the failure, and ends the call where it is too large.
	Fail(b []byte)
	// Descriptor is [Call.TakeDescriptor], and with -1 [Call.GiveDescriptor].
	Descriptor(n int64) bool
	// Log is [Call.Log].
	Log(level slog.Level, source string, line []byte) bool
	// Progress is [Call.Progress].
	Progress(done, total float64, message []byte) bool
	// Used is [Call.Used].
	Used(u Use)
	// Hold is [Call.Hold].
	Hold(n int64)
	// The host is the outer call of those that its guest makes.
	Outer
}

// An Outer is a call inside which another one runs, because its guest calls another tool. The inner call takes from it what it is
// bounded by, and tells it what it has used. An Outer is used on the goroutine of the function that makes the inner call, and not
// after that function has returned.
type Outer interface {
	// Depth returns how many calls the outer call itself runs inside: 0 for one that a client made.
	Depth() int
	// Ends is [Call.Deadline].
	Ends() time.Time
	// Fuel returns how much fuel the outer call has left, which is math.MaxInt64 if it has no limit. It may be less than 0.
	Fuel() int64
	// Burn counts fuel that the inner call has used as used by the outer one.
	Burn(fuel int64)
	// Count counts what the inner call has used of a capability as used by the outer one.
	Count(u Use)
	// Line takes one of the log lines that the outer call may still write, and reports false if there is none left.
	Line() bool
	// Tally adds n to what is counted under a key in the client's call, with all calls inside it, and returns the sum. The key must be
	// comparable.
	Tally(key any, n int) int
}

// A Memory is a guest's memory.
type Memory interface {
	// Read returns the bytes themselves, or false where some of them are outside.
	Read(offset, length uint32) ([]byte, bool)
	// Size returns the size in bytes.
	Size() uint32
}

// A Guest is what a Call knows of its guest.
type Guest struct {
	Memory Memory
	// Command is set for a plain WASI program.
	Command bool
	// Sets is how many sets the engine has.
	Sets int
}

// A Run is what a Call knows of one run. The zero Run is a start.
type Run struct {
	Serving   bool
	Input     []byte
	Principal fmt.Stringer
	// Grants are what the tool was granted, by the numbers of the sets. It may be shorter than there are sets.
	Grants []any
	// Settings are the program's. A start has them, too.
	Settings []byte
}

// NewCall returns the Call of a guest, which is used for one run after the other.
func NewCall(host Host, guest Guest) Call { return Call{host: host, guest: guest} }

// Begin makes c the call of a run.
func (c *Call) Begin(r Run) { c.run, c.read, c.spent = r, 0, 0 }

// Invoke calls a function of the set with that number.
func (c *Call) Invoke(f *Function, set int, stack []uint64) {
	c.function, c.set = f, set
	c.Charge(f.Cost)
	f.Do(c, stack)
}

// Spent returns what was charged since the last call of Spent, in nanoseconds.
func (c *Call) Spent() int64 {
	spent := c.spent
	c.spent = 0
	return spent
}

// End ends the states that were kept for the run: all of them, even where one panics.
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

// A Listener hears what a call says before its result. It is called by one goroutine at a time, while the guest waits for it.
type Listener interface {
	// Log hears a log line, of valid UTF-8 and of at most MaxLine bytes. source says where the line came from: "log", "stdout" or
	// "stderr".
	Log(level slog.Level, source, line string)
	// Progress hears how much of its work the guest has done. done is finite, not negative, and more each time. total is how much
	// there is to do, in the same unit and no less than done, or 0 if that is not known. message is valid UTF-8 of at most
	// 1 KiB, and may be empty. There are no more than ten reports in a second.
	Progress(done, total float64, message string)
}
