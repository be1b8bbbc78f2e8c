package hostabi

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"
)

// A Call is one run of a guest, as host functions see it: its memory, its input and output, its budget, and on whose behalf
// it runs. It is used by one goroutine, and is valid until the function returns that was given it.
//
// A run is either a start, which brings a guest to where calls can begin and is the same for all of them, or serves a call.
// A start has no input, no principal and no grants, and what it writes is dropped.
type Call struct {
	host     Host
	guest    Guest
	run      Run
	read     int   // bytes of the input that ReadInput has given
	spent    int64 // nanoseconds of the host's work since Spent was asked
	function *Function
	set      int
	states   []State // one for each set; nil: none has kept anything
}

// Serving reports whether the run serves a call, and is no start.
func (c *Call) Serving() bool { return c.run.Serving }

// Command reports whether the guest is a plain WASI program, whose standard input and output are those of the call.
func (c *Call) Command() bool { return c.guest.Command }

// Principal tells on whose behalf the guest runs; nil where it starts or describes itself.
func (c *Call) Principal() fmt.Stringer { return c.run.Principal }

// Grant returns what the called tool was granted of the function's set: a value of the set's own type, that many calls
// share. It is nil where the tool was granted nothing, and where the guest starts or describes itself. Nothing is allowed then.
func (c *Call) Grant() any {
	if c.set >= len(c.run.Grants) {
		return nil
	}
	return c.run.Grants[c.set]
}

// A State is what a set keeps for one call.
type State interface {
	// End is called once, when the guest has ended in whatever way, and before the call has. It may log, but not charge.
	End(c *Call)
}

// State returns what the function's set has kept for this call, or nil.
func (c *Call) State() State {
	if c.states == nil {
		return nil
	}
	return c.states[c.set]
}

// Keep has the call keep a state for the function's set. It ends with the call; one that was kept before is ended now.
func (c *Call) Keep(s State) {
	if c.states == nil {
		c.states = make([]State, c.guest.Sets)
	}
	before := c.states[c.set]
	if c.states[c.set] = s; before != nil {
		before.End(c)
	}
}

// Input returns the arguments of the call, which must not be changed; none while the guest starts.
func (c *Call) Input() []byte { return c.run.Input }

// ReadInput copies what comes next of the input to ptr, length bytes at most, and returns how many that were; 0 at the end.
func (c *Call) ReadInput(ptr, length uint64) int {
	rest := c.run.Input[c.read:]
	if len(rest) == 0 {
		return 0
	}
	n := copy(c.View(ptr, length), rest)
	c.read += n
	c.charge(n / bytesPerNano)
	return n
}

// SetOutput takes a copy of b as the result of the call, in place of what there was.
func (c *Call) SetOutput(b []byte) { c.output(b, true) }

// AppendOutput adds a copy of b to the result of the call.
func (c *Call) AppendOutput(b []byte) { c.output(b, false) }

func (c *Call) output(b []byte, replace bool) {
	if !c.run.Serving {
		return
	}
	c.host.Output(b, replace)
	c.charge(len(b) / bytesPerNano)
}

// Fail takes a copy of b, JSON, as the failure that a guest returns.
func (c *Call) Fail(b []byte) {
	if !c.run.Serving {
		return
	}
	c.host.Fail(b)
	c.charge(len(b) / bytesPerNano)
}

// MaxLine is the size in bytes up to which a log line is written; what is beyond is dropped.
const MaxLine = 4 << 10

// Log writes one line on the guest's behalf. It reports false where the call has written all the lines that it may. source
// is a word for where it came from.
func (c *Call) Log(level slog.Level, source string, line []byte) bool {
	return c.host.Log(level, source, line)
}

// Deadline returns when the call ends at the latest, by the tool's limit and the caller's own.
func (c *Call) Deadline() time.Time { return c.host.Ends() }

// Wait runs f, which may wait for as long as ctx is not done. ctx is done when the call has to end, and Wait does not return
// then. Whatever waits for anything but this process's memory must do so in here.
func (c *Call) Wait(f func(ctx context.Context)) { c.host.Wait(f) }

// Charge counts work of the host, in nanoseconds by a fixed estimate, like instructions of the guest. Without it a guest
// could have the host work for it for long in few instructions of its own. It ends the call where its time or its fuel is over.
func (c *Call) Charge(nanos int) { c.charge(nanos) }

// maxSpent is how much host functions may do between two looks at the call's deadline, in nanoseconds.
const maxSpent = 200_000

func (c *Call) charge(nanos int) {
	if c.spent += int64(nanos); c.spent >= maxSpent {
		c.host.Look()
	}
}

// A Trap is what a host function ends a call with whose guest has misused it.
type Trap struct {
	// Message says what the guest did, as the rest of a sentence: "it gave …".
	Message string
}

// Error returns the message.
func (t *Trap) Error() string { return t.Message }

// Trap ends the call as the guest's fault. It does not return.
func (c *Call) Trap(format string, args ...any) { panic(&Trap{fmt.Sprintf(format, args...)}) }

// An Exit is how a guest ends itself.
type Exit struct {
	Code uint32
	// Message is what the guest said last of why, and may be empty.
	Message string
}

// Error returns the code.
func (e *Exit) Error() string { return fmt.Sprintf("proc_exit(%d)", e.Code) }

// Exit ends the guest, as it asked for. It does not return.
func (c *Call) Exit(code uint32, message string) { panic(&Exit{code, message}) }

// View returns the guest's bytes at ptr. They are the memory itself: what is kept must be copied, and what is written there
// the guest sees.
func (c *Call) View(ptr, length uint64) []byte {
	b, ok := c.guest.Memory.Read(uint32(ptr), uint32(length))
	if !ok {
		c.outside(ptr, length)
	}
	return b
}

// Read returns a copy of the guest's bytes at ptr.
func (c *Call) Read(ptr, length uint64) []byte {
	b := c.View(ptr, length)
	c.charge(len(b) / bytesPerNano)
	return append(make([]byte, 0, len(b)), b...)
}

// Write copies b to ptr.
func (c *Call) Write(ptr uint64, b []byte) {
	c.charge(len(b) / bytesPerNano)
	copy(c.View(ptr, uint64(len(b))), b)
}

// WriteUint32 writes v to ptr.
func (c *Call) WriteUint32(ptr uint64, v uint32) {
	binary.LittleEndian.PutUint32(c.View(ptr, 4), v)
}

// WriteUint64 writes v to ptr.
func (c *Call) WriteUint64(ptr uint64, v uint64) {
	binary.LittleEndian.PutUint64(c.View(ptr, 8), v)
}

func (c *Call) outside(ptr, length uint64) {
	c.Trap("it gave %s a place outside its memory (%d bytes at %d of %d)", c.function.Name, uint32(length), uint32(ptr), c.guest.Memory.Size())
}
