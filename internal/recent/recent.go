// Package recent keeps the last lines of a log in memory, within a bound of bytes, for readers who look at them or wait for more. Nothing is stored
// for a slow reader: it is told how many lines it has missed.
package recent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// logBytes is how many bytes the lines of a log may take.
	logBytes = 1 << 20
	// maxLine is the size of the largest line that is kept, in bytes.
	maxLine = 32 << 10
	// chunkSize is how many bytes of lines are allocated at a time.
	chunkSize = 4 * maxLine
)

// A Log keeps the last lines of a log. It is safe for concurrent use.
type Log struct {
	Lines Ring

	buffers sync.Pool // buffers for lines, which are encoded before the ring is locked: encoding runs methods of logged values
}

// New returns a log without lines.
func New() *Log {
	return &Log{Lines: Ring{most: logBytes}, buffers: sync.Pool{New: func() any { return new([]byte) }}}
}

// Handler returns a handler that keeps lines and passes them on to next. It is enabled for the levels that next is enabled for.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &handler{log: l, next: next} }

type handler struct {
	log    *Log
	next   slog.Handler
	preset []byte // attributes of every line
	group  string // the prefix of attribute names
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	b := h.log.buffers.Get().(*[]byte)
	line := appendLine((*b)[:0], h, &r)
	h.log.Lines.add(line)
	if cap(line) <= maxLine {
		*b = line
		h.log.buffers.Put(b)
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.next = h.next.WithAttrs(attrs)
	with.preset = slices.Clip(h.preset)
	for _, a := range attrs {
		with.preset = appendAttribute(with.preset, h.group, a)
	}
	return &with
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	with := *h
	with.next = h.next.WithGroup(name)
	if name != "" {
		with.group += name + "."
	}
	return &with
}

// A Line is a line of the log.
type Line struct {
	// Number is the number of the line, from 1.
	Number uint64
	Time   time.Time
	Level  slog.Level
	// Attributes are JSON; a duration is a text with its unit. The name of an attribute in a group begins with the group's name and a dot. Message
	// and Attributes are not set yet while a line is matched.
	Message    string
	Attributes map[string]any

	message []byte // the stored line
	rest    reader // the stored attributes
}

// A Ring keeps the last lines, up to a number of bytes.
type Ring struct {
	most int

	mu     sync.Mutex
	chunk  []byte   // the chunk of the newest lines
	lines  [][]byte // the oldest first; slices of chunks
	bytes  int
	last   uint64        // the number of the last line
	coming chan struct{} // closed when the next line comes; nil if nobody waits
}

// add keeps a copy of a line.
func (r *Ring) add(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(line) > maxLine { // a gap
		line = nil
	}
	if cap(r.chunk)-len(r.chunk) < len(line) {
		r.chunk = make([]byte, 0, chunkSize)
	}
	begin := len(r.chunk)
	r.chunk = append(r.chunk, line...)
	r.last++
	r.lines = append(r.lines, r.chunk[begin:len(r.chunk):len(r.chunk)])
	r.bytes += cost(len(line))
	drop := 0
	for ; r.bytes > r.most; drop++ {
		r.bytes -= cost(len(r.lines[drop]))
		r.lines[drop] = nil
	}
	r.lines = r.lines[drop:]
	if r.coming != nil {
		close(r.coming)
		r.coming = nil
	}
}

// cost returns how many bytes a line counts for, including the overhead.
func cost(bytes int) int { return bytes + 32 }

// After returns the lines that match and have a higher number, the oldest first. If there are more than most, it returns the last ones, or the first
// ones if forward is true, so that the next call can continue. last is the number of the last line that was looked at, and missed how many lines are
// no longer kept. match gets the attributes of a line with [Line.Text].
func (r *Ring) After(number uint64, most int, forward bool, match func(*Line) bool) (lines []Line, last, missed uint64) {
	r.mu.Lock()
	first, last := r.last-uint64(len(r.lines))+1, r.last
	if number > last { // the number is from another process
		number = 0
	}
	from := max(number+1, first)
	kept := slices.Clone(r.lines[from-first:]) // while this runs, new lines have to wait
	r.mu.Unlock()
	if number > 0 && number+1 < first {
		missed = first - number - 1
	}
	var line Line // used again for all lines that don't match
	take := func(n uint64) {
		var ok bool
		if line, ok = parse(n, kept[n-from]); ok && match(&line) {
			line.read()
			lines = append(lines, line)
		}
	}
	if forward {
		for n := from; n <= last; n++ {
			if take(n); len(lines) == most {
				return lines, n, missed
			}
		}
		return lines, last, missed
	}
	for n := last; n >= from && len(lines) < most; n-- {
		take(n)
	}
	slices.Reverse(lines)
	return lines, last, missed
}

// Wait waits until there is a line with a number above after, or ctx ends.
func (r *Ring) Wait(ctx context.Context, number uint64) {
	r.mu.Lock()
	if r.last > number {
		r.mu.Unlock()
		return
	}
	if r.coming == nil {
		r.coming = make(chan struct{})
	}
	coming := r.coming
	r.mu.Unlock()
	select {
	case <-coming:
	case <-ctx.Done():
	}
}
