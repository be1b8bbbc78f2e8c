package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// A call is everything that the host keeps about one run of a guest. Host functions find it in their context, so
// nothing of it can outlive the call or reach another one. A guest runs on one goroutine; a call needs no lock.
type call struct {
	limits  Limits
	command bool // a plain WASI program: JSON on stdin and stdout
	memory  memory
	lines   lines

	// serving is false while the guest is being started. What it reads then is empty and what it writes is dropped,
	// so that a start is the same for all calls.
	serving bool
	input   []byte
	read    int    // bytes of input that stdin has given
	output  []byte // nil: none yet
	failure []byte // the JSON of fail; nil: none
}

// A callContext carries a call to the host functions.
type callContext struct {
	context.Context
	call *call
}

type callKey struct{}

// Value returns the call for callKey.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// A hostFunc is a function that the host offers to guests.
type hostFunc struct {
	module, name string
	// params and results hold one letter for each: i for i32, I for i64.
	params, results string
	// call reads the parameters from the stack and writes the result over the first.
	call func(ctx context.Context, c *call, mem guestMemory, stack []uint64)
}

// Call adapts the function to wazero.
func (f *hostFunc) Call(ctx context.Context, mod api.Module, stack []uint64) {
	f.call(ctx, ctx.Value(callKey{}).(*call), guestMemory{mod.Memory(), f}, stack)
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
	c.output = append(c.output, b...)
	if c.output == nil {
		c.output = []byte{}
	}
}

// maxLine is the longest log line of a guest in bytes; the rest of a longer one is dropped.
const maxLine = 4 << 10

// lines turns what a guest logs into lines of the host's log, no more than a call may write.
type lines struct {
	log    *slog.Logger
	tool   string
	left   int // lines that the call may still write
	ended  bool
	stdout []byte // begun, but not ended; at most maxLine
	stderr []byte
	last   []byte // last line of stderr that is not blank
}

// emit logs one line.
func (l *lines) emit(ctx context.Context, level slog.Level, source string, text []byte) {
	if l.left <= 0 {
		if !l.ended {
			l.ended = true
			l.log.LogAttrs(ctx, slog.LevelWarn, "further lines dropped", slog.String("tool", l.tool))
		}
		return
	}
	l.left--
	if !l.log.Enabled(ctx, level) {
		return
	}
	line := strings.ToValidUTF8(string(text[:min(len(text), maxLine)]), "\uFFFD")
	if len(text) > maxLine {
		line += "..."
	}
	l.log.LogAttrs(ctx, level, line, slog.String("tool", l.tool), slog.String("source", source))
}

// stream takes a piece of stdout (fd 1) or stderr (fd 2).
func (l *lines) stream(ctx context.Context, fd uint32, piece []byte) {
	begun := &l.stdout
	if fd == 2 {
		begun = &l.stderr
	}
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			*begun = join(*begun, piece)
			return
		}
		l.line(ctx, fd, join(*begun, piece[:end]))
		*begun = (*begun)[:0]
		piece = piece[end+1:]
	}
}

// flush logs the lines that were begun and not ended.
func (l *lines) flush(ctx context.Context) {
	if len(l.stdout) > 0 {
		l.line(ctx, 1, l.stdout)
	}
	if len(l.stderr) > 0 {
		l.line(ctx, 2, l.stderr)
	}
	l.stdout, l.stderr = nil, nil
}

func (l *lines) line(ctx context.Context, fd uint32, text []byte) {
	text = bytes.TrimRight(text, "\r")
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	if fd == 2 {
		l.last = append(l.last[:0], text...)
		l.emit(ctx, slog.LevelInfo, "stderr", text)
		return
	}
	l.emit(ctx, slog.LevelInfo, "stdout", text)
}

// join appends what a line still has room for: one byte above maxLine tells that there was more.
func join(begun, piece []byte) []byte {
	return append(begun, piece[:min(len(piece), maxLine+1-len(begun))]...)
}
