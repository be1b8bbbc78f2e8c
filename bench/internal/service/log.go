package service

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
)

// kept is how many lines of a log are kept at its end.
const kept = 20

// A Log takes the output of the server, counts its lines and keeps a few of them. It is safe for concurrent use.
type Log struct {
	Lines, Bytes atomic.Int64

	address chan string // the address that the server listens on
	each    func(line []byte)
	told    bool
	mu      sync.Mutex
	begun   []byte // the line that has not ended yet
	last    []string
	cause   []string // the lines from the first one that reports a crash
}

// Write never fails.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Bytes.Add(int64(len(text)))
	for rest := text; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if room := 4<<10 - len(l.begun); room > 0 {
			l.begun = append(l.begun, line[:min(len(line), room)]...)
		}
		if ended {
			l.end()
		}
	}
	return len(text), nil
}

// end ends a line.
func (l *Log) end() {
	l.Lines.Add(1)
	if l.each != nil {
		l.each(l.begun)
	}
	line := string(l.begun)
	l.begun = l.begun[:0]
	if !l.told {
		var told struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &told) == nil && told.Msg == "listening" {
			l.told = true
			l.address <- told.Address
		}
	}
	if l.last = append(l.last, line); len(l.last) > kept {
		l.last = l.last[1:]
	}
	crash := false
	for _, prefix := range []string{"panic:", "fatal error:", "runtime:", "SIG"} {
		crash = crash || strings.HasPrefix(line, prefix)
	}
	if crash && len(l.cause) < 3 {
		l.cause = append(l.cause, line)
	}
}

// Tail returns the last lines.
func (l *Log) Tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, " | ")
}

// Cause returns the lines that report a crash, or the last ones.
func (l *Log) Cause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cause) > 0 {
		return strings.Join(l.cause, " | ")
	}
	return strings.Join(l.last[max(0, len(l.last)-3):], " | ")
}
