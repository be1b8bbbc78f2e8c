// Package recent keeps the last lines of a log in memory, within a bound of bytes, for those who look at them and for those who wait for more.
// Nothing is kept for a slow reader: it is told how many lines it has missed.
package recent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// logBytes is what lines of the log may take.
	logBytes = 1 << 20
	// maxLine is the size of the largest line that is kept, in bytes.
	maxLine = 32 << 10
	// chunkSize is how many bytes of lines are allocated at a time.
	chunkSize = 4 * maxLine
)

// A Log is the last lines of a log. It is safe for concurrent use.
type Log struct {
	Lines Ring

	buffers sync.Pool // for lines, which are made before a ring is locked: that runs methods of what is logged
}

// New returns a log without lines.
func New() *Log {
	return &Log{Lines: Ring{most: logBytes}, buffers: sync.Pool{New: func() any { return new([]byte) }}}
}

// Handler returns a handler that hands lines on to next, and keeps them. It keeps what next is enabled for.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &handler{log: l, next: next} }

type handler struct {
	log    *Log
	next   slog.Handler
	preset []byte // attributes of every line
	group  string // what their names begin with
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

// A Line is one that was kept.
type Line struct {
	// Number is the line's, the first being 1.
	Number uint64
	Time   time.Time
	Level  slog.Level
	// Message and Attributes are the rest, as JSON has it; a duration is a text with its unit. Attributes of a group have its name and a dot before
	// theirs. A line that is to be matched has neither yet.
	Message    string
	Attributes map[string]any

	message []byte // as it is kept
	rest    reader // the attributes, as they are kept
}

// A Ring is the last lines, up to a number of bytes.
type Ring struct {
	most int

	mu     sync.Mutex
	chunk  []byte   // has the newest lines
	lines  [][]byte // the oldest first; they are parts of chunks
	bytes  int
	last   uint64        // the number of the last line
	coming chan struct{} // closed with the next line; if nil, nobody waits
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

// cost returns what a line counts, with what is kept beside its bytes.
func cost(bytes int) int { return bytes + 32 }

// After returns the lines that match and have a higher number, the oldest first. If there are more than most, it returns the last ones, or with
// forward the first ones, so that the next call can go on. last is the number of the last line that was looked at, and missed says how many are
// no longer kept. match asks a line for its attributes with [Line.Text].
func (r *Ring) After(number uint64, most int, forward bool, match func(*Line) bool) (lines []Line, last, missed uint64) {
	r.mu.Lock()
	first, last := r.last-uint64(len(r.lines))+1, r.last
	if number > last { // of another process
		number = 0
	}
	from := max(number+1, first)
	kept := slices.Clone(r.lines[from-first:]) // what is added waits meanwhile
	r.mu.Unlock()
	if number > 0 && number+1 < first {
		missed = first - number - 1
	}
	var line Line // one for all that don't match
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

// Wait waits until there is a line with a higher number than one, or ctx ends.
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
