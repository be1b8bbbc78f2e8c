package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/runtime/instrument"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/linmem"
)

// A call is everything that the host keeps about one run of a guest. It belongs to an instance, which wipes it before
// the next run. It is also the context that wazero and, through it, host functions are given: so they find it without
// a look-up. A guest runs on one goroutine; a call needs no lock.
type call struct {
	engine   *Engine
	owner    *instance
	memory   *linmem.Memory  // the guest's
	ctx      context.Context // the caller's
	deadline time.Time
	limits   *limits.Limits
	command  bool // a plain WASI program: JSON on stdin and stdout
	lines    lines
	meter    meter
	deep     bool  // the guest asked for the rest of its call stack
	beside   int64 // bytes that the account holds for that, and for output

	// serving is false while the guest is being started. What it reads then is empty and what it writes is dropped,
	// so that a start is the same for all calls.
	serving bool
	input   []byte
	read    int    // bytes of input that stdin has given
	output  []byte // nil: none yet
	failure []byte // the JSON of fail; nil: none
}

// begin makes c the state of a run on behalf of a caller.
func (c *call) begin(r *run) {
	c.ctx, c.deadline, c.limits = r.ctx, r.deadline, r.limits
	c.lines.tool, c.lines.left = r.tool, r.limits.LogLines
	c.meter = meter{pace: instrument.FirstSlice}
}

// serve makes the input visible, and what the guest says from now on count.
func (c *call) serve(input []byte) {
	c.serving, c.input = true, input
}

// wipe forgets the run.
func (c *call) wipe() {
	*c = call{engine: c.engine, owner: c.owner, memory: c.memory, command: c.command, lines: lines{log: c.lines.log}}
}

// Deadline is of no use to wazero.
func (c *call) Deadline() (time.Time, bool) { return c.deadline, true }

// Done tells that the caller has given up, but not that the deadline is over: no timer runs for a call.
func (c *call) Done() <-chan struct{} { return c.ctx.Done() }

// Err tells why the run has to end, or nil.
func (c *call) Err() error { return c.over(time.Now()) }

// Value holds nothing: wazero looks for options of experiments here at every call.
func (c *call) Value(any) any { return nil }

// What the work of a host function is taken for, in nanoseconds.
const (
	workCall   = 100  // of any
	workLine   = 2000 // of a log line that is written
	bytesCopy  = 8    // bytes that are copied in one
	workRandom = 1    // of a random byte
	workStream = 16   // of a byte that is searched for lines
	workVector = 12   // of a buffer in a list of them, empty or not
	workEvent  = 50   // of a subscription of poll_oneoff
)

// A hostFunc is a function that the host offers to guests.
type hostFunc struct {
	module, name string
	// params and results hold one letter for each: i for i32, I for i64.
	params, results string
	// call reads the parameters from the stack and writes the result over the first.
	call func(c *call, mem guestMemory, stack []uint64)
}

// Call adapts the function to wazero.
func (f *hostFunc) Call(ctx context.Context, mod api.Module, stack []uint64) {
	c := ctx.(*call)
	c.work(workCall)
	f.call(c, guestMemory{mod.Memory(), f}, stack)
}

// A guestMemory is the calling guest's memory, as a host function sees it. A place outside ends the call.
type guestMemory struct {
	api.Memory
	caller *hostFunc
}

// view returns the guest's bytes. They are live: copy what is kept.
func (m guestMemory) view(ptr, length uint64) []byte {
	b, ok := m.Read(uint32(ptr), uint32(length))
	if !ok {
		m.outside(ptr, length)
	}
	return b
}

// put copies b to ptr.
func (m guestMemory) put(ptr uint64, b []byte) {
	if !m.Write(uint32(ptr), b) {
		m.outside(ptr, uint64(len(b)))
	}
}

func (m guestMemory) put32(ptr uint64, v uint32) {
	if !m.WriteUint32Le(uint32(ptr), v) {
		m.outside(ptr, 4)
	}
}

func (m guestMemory) put64(ptr uint64, v uint64) {
	if !m.WriteUint64Le(uint32(ptr), v) {
		m.outside(ptr, 8)
	}
}

func (m guestMemory) outside(ptr, length uint64) {
	panic(&fault{ToolTrapped, fmt.Sprintf("The tool broke: it gave %s a place outside its memory (%d bytes at %d of %d).",
		m.caller.name, uint32(length), uint32(ptr), m.Size())})
}

// abiModule is the import module of ABI 1.
const abiModule = "toolsrv_v1"

// maxFailure is the largest JSON of fail in bytes.
const maxFailure = 64 << 10

// abiFuncs returns the functions of ABI 1. docs/abi.md describes them.
func abiFuncs() []hostFunc {
	return []hostFunc{
		{abiModule, "input_size", "", "i", inputSize},
		{abiModule, "input_read", "i", "", inputRead},
		{abiModule, "output_write", "ii", "", outputWrite},
		{abiModule, "fail", "ii", "", fail},
		{abiModule, "log", "iii", "", logLine},
		{abiModule, "deadline", "", "I", deadline},
	}
}

func inputSize(c *call, _ guestMemory, stack []uint64) {
	stack[0] = uint64(len(c.visible()))
}

func inputRead(c *call, mem guestMemory, stack []uint64) {
	b := c.visible()
	c.work(len(b) / bytesCopy)
	mem.put(stack[0], b)
}

// visible is the input as the guest may see it: none while it starts.
func (c *call) visible() []byte {
	if !c.serving {
		return nil
	}
	return c.input
}

func outputWrite(c *call, mem guestMemory, stack []uint64) {
	c.write(mem.view(stack[0], stack[1]), true)
}

// freeOutput is up to how many bytes output is not counted: an instance's overhead has room for it.
const freeOutput = 16 << 10

// write takes b as output, behind what is there or in its place. The call ends where the output gets too large.
func (c *call) write(b []byte, replace bool) {
	if !c.serving {
		return
	}
	if replace {
		c.output = c.output[:0]
	}
	if int64(len(c.output))+int64(len(b)) > c.limits.Output {
		panic(&fault{ToolBadOutput, fmt.Sprintf("The tool's output is larger than its limit of %s.", size(c.limits.Output))})
	}
	if total := len(c.output) + len(b); total > max(cap(c.output), freeOutput) {
		c.extend(int64(total)) // what it is copied from is garbage that is still there
	}
	c.work(len(b) / bytesCopy)
	c.output = append(c.output, b...)
	if c.output == nil {
		c.output = []byte{}
	}
}

func fail(c *call, mem guestMemory, stack []uint64) {
	text := mem.view(stack[0], stack[1])
	if !c.serving {
		return
	}
	if len(text) > maxFailure {
		panic(&fault{ToolBadOutput, fmt.Sprintf("The tool reported its failure in %d bytes; the limit is %s.", len(text), size(maxFailure))})
	}
	c.work(len(text) / bytesCopy)
	c.failure = append(make([]byte, 0, len(text)), text...)
}

// logLine logs at the next level where the guest's is none of the four: a log line is no reason to break a call.
func logLine(c *call, mem guestMemory, stack []uint64) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	level := min(max(int32(uint32(stack[0])), 0), int32(len(levels)-1))
	text := mem.view(stack[1], stack[2])
	if c.lines.left > 0 {
		c.work(workLine)
	}
	c.lines.emit(c.ctx, levels[level], "log", text)
}

// deadline tells how many milliseconds the call has left, by the tool's limit and by the caller's own deadline; 0 when
// there are none. A start is not told, so that it is the same for all calls.
func deadline(c *call, _ guestMemory, stack []uint64) {
	left := int64(-1)
	if c.serving {
		end := c.deadline
		if callers, ok := c.ctx.Deadline(); ok && callers.Before(end) {
			end = callers
		}
		left = max(0, time.Until(end).Milliseconds())
	}
	stack[0] = uint64(left)
}
