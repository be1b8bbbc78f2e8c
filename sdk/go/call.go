package toolsrv

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/toolsrv/toolsrv/sdk/go/internal/double"
)

// A Call is one call of a tool: its log, its progress and, as a [context.Context], its deadline. The zero Call is usable, logs nothing and
// has no deadline, so that a test can pass new(toolsrv.Call). Within a guest only the goroutine of the call may use it.
type Call struct {
	log func(level Level, message string)
	// These fields are for tests; in a guest the host does their work.
	progress func(done, total float64, message string)
	deadline time.Time // zero: none
	host     double.Host
}

var _ context.Context = (*Call)(nil)

// NewCall returns a Call whose log lines go to log, which may be nil. Tests use it, mostly through package toolsrvtest.
func NewCall(log func(level Level, message string)) *Call {
	return &Call{log: log}
}

// Until returns a Call like c that has a deadline, for tests. In a guest the host's deadline applies instead.
func (c *Call) Until(deadline time.Time) *Call {
	like := *c
	like.deadline = deadline
	return &like
}

// Reporting returns a Call like c whose progress goes to progress, for tests. It gets every report as the tool made it. In a guest
// the host gets them instead.
func (c *Call) Reporting(progress func(done, total float64, message string)) *Call {
	like := *c
	like.progress = progress
	return &like
}

// WithHost returns a Call like c for which host does what needs a grant: HTTP, keys and values, secrets, settings, other tools.
// Package toolsrvtest has one for tests. In a guest the host itself does all that.
func (c *Call) WithHost(host double.Host) *Call {
	like := *c
	like.host = host
	return &like
}

// A Level is the level of a log line.
type Level int32

// The levels of the host's log. The operator chooses which of them are shown.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

// String returns the level as the host's log shows it.
func (l Level) String() string {
	switch l {
	case LevelDebug:
		return "DEBUG"
	case LevelInfo:
		return "INFO"
	case LevelWarn:
		return "WARN"
	case LevelError:
		return "ERROR"
	}
	return fmt.Sprintf("Level(%d)", int32(l))
}

// Log writes a line to the host's log. The host bounds the number of lines of a call and their length.
func (c *Call) Log(level Level, message string) {
	if c != nil && c.log != nil {
		c.log(level, message)
	}
}

// Debugf logs a line that helps to debug the tool.
func (c *Call) Debugf(format string, args ...any) { c.logf(LevelDebug, format, args...) }

// Infof logs a line that says what the tool does.
func (c *Call) Infof(format string, args ...any) { c.logf(LevelInfo, format, args...) }

// Warnf logs a line about something that looks wrong but does not stop the tool.
func (c *Call) Warnf(format string, args ...any) { c.logf(LevelWarn, format, args...) }

// Errorf logs a line about something that broke. The call goes on; return an error to end it.
func (c *Call) Errorf(format string, args ...any) { c.logf(LevelError, format, args...) }

// logf passes its arguments on as it got them, so that go vet sees that these methods are like Printf and checks their calls.
func (c *Call) logf(level Level, format string, args ...any) {
	if c != nil && c.log != nil {
		c.log(level, fmt.Sprintf(format, args...))
	}
}

// Progress reports how much of its work the call has done, to clients that ask for it. total is how much there is to do in the same
// unit, such as rows or per cent, and 0 if that is not known. The message is for people and may be empty.
//
// A tool may report as often as it likes: the host passes on a few reports in a second, and only those whose done is greater than
// before. Nothing happens if nobody listens.
func (c *Call) Progress(done, total float64, message string) { c.report(done, total, message) }

// TimeLeft returns how long the call may still take. The host ends it then, whatever the tool does, so a tool that can give a partial
// answer should do so before. Without a deadline it is the longest Duration.
func (c *Call) TimeLeft() time.Duration {
	if left, ok := c.left(); ok {
		return left
	}
	return math.MaxInt64
}

// Deadline implements [context.Context]: it is when the host ends the call.
func (c *Call) Deadline() (deadline time.Time, ok bool) {
	left, ok := c.left()
	if !ok {
		return time.Time{}, false
	}
	return time.Now().Add(left), true
}

// Done implements [context.Context]. It returns nil: a call that is cancelled, or out of time, does not go on.
func (c *Call) Done() <-chan struct{} { return nil }

// Err implements [context.Context]. It returns nil.
func (c *Call) Err() error { return nil }
