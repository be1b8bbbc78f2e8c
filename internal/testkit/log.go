package testkit

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is the longest wait for an event. Tests go on as soon as the event has come.
const Patience = time.Minute

// A Log keeps what many goroutines write. The zero Log is empty.
type Log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed by the next write; nil if nobody waits
}

// Write appends to the log.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.text.Write(b)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes lines of text of this level and above.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// Count returns the number of lines that contain all parts.
func (l *Log) Count(parts ...string) (n int) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// Wait waits until the log contains a text.
func (l *Log) Wait(t testing.TB, text string) {
	t.Helper()
	l.WaitFor(t, text, func(all string) bool { return strings.Contains(all, text) })
}

// WaitFor waits until good returns true for the content of the log.
func (l *Log) WaitFor(t testing.TB, what string, good func(all string) bool) {
	t.Helper()
	deadline := time.After(Patience)
	for {
		all, changed := l.next()
		if good(all) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s in the log:\n%s", what, all)
		}
	}
}

// next returns what was written, and a channel that is closed when there is more.
func (l *Log) next() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.text.String(), l.changed
}

// Until waits until another goroutine, or another process, makes a condition true.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	end, rest := time.Now().Add(Patience), time.Duration(0)
	for !done() {
		if time.Now().After(end) {
			t.Fatal("waited in vain for ", what)
		}
		rest = min(rest+time.Millisecond, 50*time.Millisecond) // asking without a pause would take processor time that others need
		time.Sleep(rest)
	}
}
