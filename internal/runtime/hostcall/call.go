package hostcall

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"
)

// A Call is one run of a guest, as host functions see it: the guest's memory, input and output, its budget, and on whose behalf it runs. A
// function uses it on the goroutine that it is called on, and not after it has returned.
//
// A run serves a call, or it is a start, which brings a guest to the point where calls can begin, and is the same for all of them. A start
// has no input, no principal and no grants, and what it writes is dropped. It has the program's settings.
type Call struct {
	host     Host
	guest    Guest
	run      Run
	read     int   // bytes of the input that ReadInput has returned
	spent    int64 // nanoseconds of the host's work since the last call of Spent
	function *Function
	set      int
	states   []Local // one for each set; nil if no set has kept anything
}

// Serving reports whether the run serves a call; it is a start otherwise.
func (c *Call) Serving() bool { return c.run.Serving }

// Command reports whether the guest is a plain WASI program, whose standard input and output belong to the call.
func (c *Call) Command() bool { return c.guest.Command }

// Principal returns on whose behalf the guest runs. It is nil while the guest starts or describes itself.
func (c *Call) Principal() fmt.Stringer { return c.run.Principal }

// Context returns the context of the call, for its values, such as the caller's trace. It may outlive the run, and
// nothing may wait for it. A function that may wait uses f of [Call.Wait], whose context has the same values.
func (c *Call) Context() context.Context { return c.host.Context() }

// Grant returns what the tool was granted of the function's set: a value of the set's own type, which many calls share. It is
// nil, and nothing is allowed, if the tool was granted nothing, and while the guest starts or describes itself.
func (c *Call) Grant() any {
	if c.set >= len(c.run.Grants) {
		return nil
	}
	return c.run.Grants[c.set]
}

// Screened returns b, which another guest wrote, without what this guest must not see; if there is nothing to remove, it is b itself. It charges
// for the search.
func (c *Call) Screened(b []byte) []byte {
	for _, value := range c.run.Grants {
		if s, ok := value.(Screen); ok {
			c.Charge(len(b) * SearchCost)
			b = s.Screen(b, c.run.Principal)
		}
	}
	return b
}

// Settings returns the JSON that the operator has set for the program, or nil if there is none. It must not be changed. It is the same in a start
// as in the calls.
func (c *Call) Settings() []byte { return c.run.Settings }

// Outer returns this call for use as the outer call of those that the function makes inside it, in f of [Call.Wait]. Without an outer call, only
// the limits of their own tools would bound the inner calls.
func (c *Call) Outer() Outer { return c.host }

// A Local is what a set keeps for one call.
type Local interface {
	// End is called once, after the guest has ended in whatever way, and before the call returns. It may log, but must not charge.
	End(c *Call)
}

// Local returns what the function's set keeps for this call, or nil.
func (c *Call) Local() Local {
	if c.states == nil {
		return nil
	}
	return c.states[c.set]
}

// Keep keeps a state for the function's set until the call ends. A state that was kept before is ended now.
func (c *Call) Keep(s Local) {
	if c.states == nil {
		c.states = make([]Local, c.guest.Sets)
	}
	before := c.states[c.set]
	if c.states[c.set] = s; before != nil {
		before.End(c)
	}
}

// Input returns the arguments of the call, which must not be changed. It returns none while the guest starts.
func (c *Call) Input() []byte { return c.run.Input }

// ReadInput copies the next bytes of the input to ptr, at most length of them. It returns how many it has copied, or 0 at the end.
func (c *Call) ReadInput(ptr, length uint64) int {
	rest := c.run.Input[c.read:]
	if len(rest) == 0 {
		return 0
	}
	n := copy(c.View(ptr, length), rest)
	c.read += n
	c.Charge(n / bytesPerNano)
	return n
}

// SetOutput takes a copy of b as the result of the call, replacing the previous one.
func (c *Call) SetOutput(b []byte) { c.output(b, true) }

// AppendOutput adds a copy of b to the result of the call.
func (c *Call) AppendOutput(b []byte) { c.output(b, false) }

func (c *Call) output(b []byte, replace bool) {
	if !c.run.Serving {
		return
	}
	c.host.Output(b, replace)
	c.Charge(len(b) / bytesPerNano)
}

// Fail takes a copy of b, which is JSON, as the reason why the call fails. The call fails if the guest says so when it returns.
func (c *Call) Fail(b []byte) {
	if !c.run.Serving {
		return
	}
	c.host.Fail(b)
	c.Charge(len(b) / bytesPerNano)
}

// MaxLine is the greatest length of a log line in bytes; the rest is dropped.
const MaxLine = 4 << 10

// Log writes one line for the guest to the host's log. source is a word for where the line came from. Log reports false, and
// writes nothing, if the call has written as many lines as it may.
func (c *Call) Log(level slog.Level, source string, line []byte) bool {
	return c.host.Log(level, source, line)
}

// Progress reports how much of its work the guest has done, to those who listen to the call. total is how much there is to do, 0 if the
// guest does not know. A report without further progress is dropped. One that comes too soon after the last is kept until it is due, or
// replaced by the next one. Progress reports true if somebody was notified now.
func (c *Call) Progress(done, total float64, message []byte) (told bool) {
	if !c.run.Serving {
		return false
	}
	message = message[:min(len(message), 2*MaxLine)] // the rest would be dropped anyway
	c.Charge(len(message) * SearchCost)
	return c.host.Progress(done, total, message)
}

// Deadline returns the time by which the call ends, from the tool's limit and the caller's own.
func (c *Call) Deadline() time.Time { return c.host.Ends() }

// Wait calls f, which may wait until ctx is done. ctx is done when the call must end; Wait then ends the call and does not return. A function that
// waits for a timer, a file or a network must do so in f. All waits of a run get the same ctx, which is done by the end of the run. A start has the
// ctx of the call that caused it, so use Principal, not a value of ctx, to learn who calls.
func (c *Call) Wait(f func(ctx context.Context)) { c.host.Wait(f) }

// TakeDescriptor makes the account of the process count a file that is about to be opened for the call, and reports whether there is room for it.
// Each must be given back with GiveDescriptor. If it lasts until the call ends, the Local's End does that.
func (c *Call) TakeDescriptor() bool { return c.host.Descriptor(1) }

// GiveDescriptor gives back what TakeDescriptor has taken, once the file is closed.
func (c *Call) GiveDescriptor() { c.host.Descriptor(-1) }

// Nest is [Call.Wait] for an f that makes a call of another guest inside this one. ctx is the caller's, without the deadline: the inner call gets
// that from [Call.Outer]. Nest takes 2 µs less than Wait, since it need not prepare for waiting. f must not use this guest's memory.
func (c *Call) Nest(f func(ctx context.Context)) { c.host.Nest(f) }

// enterCost is the cost of calling the guest from a host function, in nanoseconds.
const enterCost = 3_000

// Enter runs a function that the guest exports, such as its allocator. params and results are letters as in [Function]. stack has the parameters and
// receives the results, so it is as long as the longer of the two. If the guest exports no such function, Enter returns false and runs nothing.
//
// The function uses the call's fuel, time, call stack and memory. If the guest is ended while it runs the function, the call ends, and Enter does
// not return. The function may call host functions, which may enter the guest again, at most eight levels deep. The guest's memory may have grown
// meanwhile, so an older View must not be used. Enter must not be called in f of Wait or Nest, nor by [Local.End].
func (c *Call) Enter(export, params, results string, stack []uint64) bool {
	c.Charge(enterCost)
	f, set := c.function, c.set
	entered := c.host.Enter(export, params, results, stack)
	c.function, c.set = f, set
	return entered
}

// maxSpent is how much work host functions may do between two checks of the deadline, in nanoseconds.
const maxSpent = 200_000

// Charge counts work of the host like instructions of the guest, in nanoseconds of a fixed estimate. Without it a guest could keep the host busy
// for a long time with a few instructions. All host functions are charged here. It ends the call if its time or its fuel is used up.
func (c *Call) Charge(nanos int) {
	if c.spent += int64(nanos); c.spent >= maxSpent {
		c.host.Look()
	}
}

// A Trap is the panic by which a host function ends a guest that has misused it.
type Trap struct {
	// Message says what the guest did, such as "it gave fd_read a place outside its memory".
	Message string
}

// Error returns the message.
func (t *Trap) Error() string { return t.Message }

// Trap ends the call, because of what the guest did. It does not return.
func (c *Call) Trap(format string, args ...any) { panic(&Trap{fmt.Sprintf(format, args...)}) }

// An Exit is the panic by which a host function ends a guest that has asked for it.
type Exit struct {
	Code uint32
	// Message is the guest's reason. It may be empty.
	Message string
}

// Error returns the code.
func (e *Exit) Error() string { return fmt.Sprintf("proc_exit(%d)", e.Code) }

// Exit ends the guest at its own request. It does not return.
func (c *Call) Exit(code uint32, message string) { panic(&Exit{code, message}) }

// View returns the guest's bytes at ptr. They are the guest's memory itself: copy what is kept.
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
	c.Charge(len(b) / bytesPerNano)
	return append(make([]byte, 0, len(b)), b...)
}

// Write copies b to ptr.
func (c *Call) Write(ptr uint64, b []byte) {
	c.Charge(len(b) / bytesPerNano)
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
