// Package journal writes a log off the path of those who log: a line costs them its encoding and a copy.
//
// Logging never waits for the reader of the log. Lines are kept in order and written together, each 100 ms, and at
// once where one is a warning or worse. Where the reader is too slow, or stuck, what is kept is bounded, and a line in place of the dropped
// ones says how many they were.
package journal

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	interval = 100 * time.Millisecond // between a line and its writing, at most
	pause    = 2 * time.Millisecond   // between two writings: a thousand warnings are not a thousand writes
	capacity = 4 << 20                // bytes that wait to be written; as many may be on their way
	hasten   = 1 << 20                // bytes that do not wait any longer
	keep     = 256 << 10              // bytes of a buffer that is kept for the next lines
	patience = 2 * time.Second        // for a reader, when all must be out
)

// A Journal is a log. Its methods are safe for concurrent use.
type Journal struct {
	out     io.Writer
	notice  slog.Handler // writes to noticed; both are run's
	noticed bytes.Buffer

	mu      sync.Mutex
	pending []byte
	dropped int  // lines since pending was taken last
	closed  bool // what comes now is lost

	wake    chan struct{} // there is something to write: holds one
	urgent  chan struct{} // and it must not wait: holds one
	flushes chan chan struct{}
	ended   chan struct{}
}

// New returns a journal that writes to out, and the handler to log with. encode makes handlers that write each line at once;
// it is called twice. What terminals obey is escaped in all lines. The caller must call Close.
func New(out io.Writer, encode func(io.Writer) slog.Handler) (*Journal, slog.Handler) {
	j := &Journal{
		out:     out,
		wake:    make(chan struct{}, 1),
		urgent:  make(chan struct{}, 1),
		flushes: make(chan chan struct{}),
		ended:   make(chan struct{}),
	}
	j.notice = encode(&j.noticed)
	go j.run()
	return j, handler{encode(lines{j}), j}
}

// lines are the journal as a handler's writer: each Write is a line.
type lines struct{ *Journal }

func (l lines) Write(line []byte) (int, error) {
	j := l.Journal
	j.mu.Lock()
	before := len(j.pending)
	first := before == 0 && j.dropped == 0
	switch {
	case j.closed:
		first = false
	case j.dropped > 0 || len(j.pending)+len(line) > capacity: // a shorter one that fits would be out of order
		j.dropped++
	default:
		j.pending = append(j.pending, line...)
	}
	many := before < hasten && len(j.pending) >= hasten
	j.mu.Unlock()
	if first {
		signal(j.wake)
	}
	if many {
		signal(j.urgent)
	}
	return len(line), nil
}

// A handler encodes lines into its journal.
type handler struct {
	slog.Handler
	journal *Journal
}

// Handle encodes a line, and has it written soon if it is a warning.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	err := h.Handler.Handle(ctx, line)
	if line.Level >= slog.LevelWarn {
		signal(h.journal.urgent)
	}
	return err
}

// WithAttrs and WithGroup keep the journal.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.journal}
}

// WithGroup does as WithAttrs.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.journal}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known
	}
}

// run writes until the journal is closed.
func (j *Journal) run() {
	defer close(j.ended)
	timer := time.NewTimer(interval)
	timer.Stop()
	var spare []byte
	for {
		var flushed chan struct{}
		select {
		case <-j.wake:
			timer.Reset(interval)
			select {
			case <-timer.C:
			case <-j.urgent:
			case flushed = <-j.flushes:
			}
			timer.Stop()
		case <-j.urgent:
		case flushed = <-j.flushes:
		}
		spare = j.write(spare)
		if flushed != nil {
			close(flushed)
		}
		j.mu.Lock()
		done := j.closed && len(j.pending) == 0 && j.dropped == 0
		j.mu.Unlock()
		if done {
			return
		}
		time.Sleep(pause)
	}
}

// write writes what is pending, whose place spare takes, and returns the next spare.
func (j *Journal) write(spare []byte) []byte {
	j.mu.Lock()
	batch, dropped := j.pending, j.dropped
	j.pending, j.dropped = spare[:0], 0
	j.mu.Unlock()
	// The lines that were dropped came after those that were kept.
	if dropped > 0 {
		line := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped: their reader is too slow", 0)
		line.AddAttrs(slog.Int("lines", dropped))
		j.noticed.Reset()
		if err := j.notice.Handle(context.Background(), line); err == nil {
			batch = append(batch, j.noticed.Bytes()...)
		}
	}
	if len(batch) > 0 {
		// There is nowhere to report to that the log can't be written.
		_, _ = j.out.Write(text.EscapeBytes(batch))
	}
	if cap(batch) > keep {
		return nil
	}
	return batch
}

// Flush has all lines written that were logged before it was called. It gives up on a reader that takes nothing for two seconds.
func (j *Journal) Flush() {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	flushed := make(chan struct{})
	select {
	case j.flushes <- flushed:
	case <-j.ended:
		return
	case <-limit.C:
		return
	}
	select {
	case <-flushed:
	case <-limit.C:
	}
}

// Close is Flush, and the end: lines that are logged later are lost. It can be called twice.
func (j *Journal) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.Flush()
}
