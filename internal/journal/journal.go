// Package journal writes a log in the background: logging a line costs only its encoding and a copy.
//
// Logging never waits for the reader of the log. Lines are kept in order and written together every 100 ms, or at once if one is a warning or worse.
// If the reader is too slow or stuck, lines beyond a bound are dropped, and a line in their place says how many there were.
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
	interval = 100 * time.Millisecond // the longest time until a line is written
	pause    = 2 * time.Millisecond   // the shortest time between two writes: a thousand warnings are not a thousand writes
	capacity = 4 << 20                // the most bytes that wait to be written; as many more may be in a write
	hasten   = 1 << 20                // lines are written at once when they have this many bytes
	keep     = 256 << 10              // the largest buffer in bytes that is used again
	patience = 2 * time.Second        // how long Flush waits for a reader that takes nothing
)

// A Journal is a log. Its methods are safe for concurrent use.
type Journal struct {
	out     io.Writer
	notice  slog.Handler // writes to noticed; only run uses notice and noticed
	noticed bytes.Buffer

	mu      sync.Mutex
	pending []byte
	dropped int  // lines since pending was last taken
	closed  bool // later lines are lost

	wake    chan struct{} // holds a value if there is something to write
	urgent  chan struct{} // holds a value if the write must not wait
	flushes chan chan struct{}
	ended   chan struct{}
}

// New returns a journal that writes to out, and the handler to log with. encode makes a handler that writes each line at once; it is called twice.
// Control characters are escaped in all lines. The caller must call Close.
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

// lines is the writer of a journal's handler: each Write gets one line.
type lines struct{ *Journal }

func (l lines) Write(line []byte) (int, error) {
	j := l.Journal
	j.mu.Lock()
	before := len(j.pending)
	first := before == 0 && j.dropped == 0
	switch {
	case j.closed:
		first = false
	case j.dropped > 0 || len(j.pending)+len(line) > capacity: // a later line that still fits would be out of order
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

// Handle encodes a line, which is written soon if it is a warning or worse.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	err := h.Handler.Handle(ctx, line)
	if line.Level >= slog.LevelWarn {
		signal(h.journal.urgent)
	}
	return err
}

// WithAttrs returns a handler for the same journal.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.journal}
}

// WithGroup returns a handler for the same journal.
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

// write writes the pending lines. spare becomes the new pending buffer; the result is the next spare.
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
		// An error can't be reported anywhere: this is the log.
		_, _ = j.out.Write(text.EscapeBytes(batch))
	}
	if cap(batch) > keep {
		return nil
	}
	return batch
}

// Flush waits until all lines that were logged before are written. It gives up if the reader takes nothing for two seconds.
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

// Close flushes and closes the journal: lines that are logged later are lost. It can be called twice.
func (j *Journal) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.Flush()
}
