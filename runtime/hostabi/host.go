package hostabi

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// A Host runs the guest that a Call belongs to: it is the sandbox's side of it.
type Host interface {
	// Look ends the call where its time, its fuel or its caller's patience is over. It lets others run where it is their turn.
	Look()
	// Wait is [Call.Wait].
	Wait(f func(ctx context.Context))
	// Ends is [Call.Deadline].
	Ends() time.Time
	// Output takes a copy of b as the result, or as more of it, and ends the call where that gets too large.
	Output(b []byte, replace bool)
	// Fail takes a copy of b as the failure, and ends the call where it is too large.
	Fail(b []byte)
	// Log is [Call.Log].
	Log(level slog.Level, source string, line []byte) bool
}

// A Memory is a guest's memory.
type Memory interface {
	// Read returns the bytes themselves, or false where some of them are outside.
	Read(offset, length uint32) ([]byte, bool)
	// Size returns the size in bytes.
	Size() uint32
}

// A Guest is what does not change from one run of a guest to the next.
type Guest struct {
	Memory Memory
	// Command tells of a plain WASI program.
	Command bool
	// Sets is how many sets the engine has.
	Sets int
}

// A Run is what a Call tells of one run. That of a start is empty.
type Run struct {
	Serving   bool
	Input     []byte
	Principal fmt.Stringer
	// Grants are what the tool was granted, by the numbers of the sets; the last ones may be missing.
	Grants []any
}

// NewCall returns the Call of a guest. It serves one run after the other.
func NewCall(host Host, guest Guest) Call { return Call{host: host, guest: guest} }

// Begin makes c the call of a run.
func (c *Call) Begin(r Run) { c.run, c.read, c.spent = r, 0, 0 }

// Invoke runs a function of the set with that number.
func (c *Call) Invoke(f *Function, set int, stack []uint64) {
	c.function, c.set = f, set
	c.charge(f.Cost)
	f.Do(c, stack)
}

// Spent returns the work of host functions, in nanoseconds, since it was last asked.
func (c *Call) Spent() int64 {
	spent := c.spent
	c.spent = 0
	return spent
}

// End ends what was kept for the run, and forgets the run. All states end, even where one panics.
func (c *Call) End() {
	for i := range c.states {
		if s := c.states[i]; s != nil {
			c.states[i] = nil
			defer func() {
				c.set = i
				s.End(c)
			}()
		}
	}
}

// A Listener hears what a call says before its result. It is called by one goroutine at a time, while the guest waits for it.
type Listener interface {
	// Log hears a log line, made valid UTF-8, and at most MaxLine bytes of that. source is a word for where it came from: log,
	// stdout or stderr.
	Log(level slog.Level, source, line string)
}
