package sandbox

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/progress"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/text"
)

// lines counts the lines that a run may still log, and says who receives them.
type lines struct {
	tool     string
	listener hostcall.Listener // nil: nobody listens
	left     int               // lines that may still be written
	dropped  bool              // a log line has said that there were more lines
	secret   bool              // a log line has said that a secret was removed
}

// Log writes one line to the engine's log and passes it to the listener. It returns false once the run has written all its lines.
func (c *call) Log(level slog.Level, source string, line []byte) bool {
	l, log := &c.lines, c.engine.log
	if !c.Line() {
		return false
	}
	line = c.filtered("log line", line[:min(len(line), 2*hostcall.MaxLine)]) // a cut could leave a part of what the filter looks for
	line = line[:min(len(line), hostcall.MaxLine+1)]
	if l.listener != nil {
		l.listener.Log(level, source, text.Clip(strings.ToValidUTF8(string(line), "\uFFFD"), hostcall.MaxLine))
	}
	if log.Enabled(c.ctx, level) {
		log.LogAttrs(c.ctx, level, text.ClipEscaped(string(line), hostcall.MaxLine), slog.String("tool", l.tool), slog.String("source", source))
	}
	return true
}

// Line takes one of the run's remaining lines, and one from each call around it. If the outer calls did not pay, too, a tool could have the tools
// that it calls write without end. Line returns false if no line is left, and logs that once.
func (c *call) Line() bool {
	l := &c.lines
	if l.left > 0 {
		if c.outer != nil && !c.outer.Line() {
			return false
		}
		l.left--
		return true
	}
	if !l.dropped {
		l.dropped = true
		if c.outer == nil || c.outer.Line() {
			c.engine.log.LogAttrs(c.ctx, slog.LevelWarn, "further lines dropped", slog.String("tool", l.tool))
		}
	}
	return false
}

// Progress takes a progress report, and passes it to the listener if that is due. A report that is not yet due is passed on when the host checks the
// run, when the guest is about to wait, or when it ends.
func (c *call) Progress(done, total float64, message []byte) (told bool) {
	if c.lines.listener == nil {
		return false
	}
	if c.reports == nil {
		c.reports = new(progress.Reports)
	}
	if !c.reports.Add(done, total, c.filtered("progress", message)) {
		return false
	}
	now := time.Now()
	due := c.reports.Due(now, false)
	if due {
		c.tell(now)
	}
	return due
}

// tell passes the report that is kept back to the listener, if there is one.
func (c *call) tell(now time.Time) {
	if done, total, message, ok := c.reports.Take(now); ok {
		c.memory.Unwatch() // the listener may have to wait for a client
		c.stand()
		c.lines.listener.Progress(done, total, message)
	}
}

// maxTarget is how many bytes of a use's target a log line shows.
const maxTarget = 256

// Count counts a use, also for the calls around this one.
func (c *call) Count(u hostcall.Use) {
	if c.counter != nil {
		c.counter.Used(u)
	}
	if c.outer != nil {
		c.outer.Count(u)
	}
}

// Tally keeps its count in the outermost call: what is allowed once in a call is not allowed again in each call inside it.
func (c *call) Tally(key any, n int) int {
	if c.outer != nil {
		return c.outer.Tally(key, n)
	}
	if c.tallies == nil {
		c.tallies = map[any]int{}
	}
	c.tallies[key] += n
	return c.tallies[key]
}

// Used counts a use, and writes its log line.
func (c *call) Used(u hostcall.Use) {
	c.Count(u)
	if w, ok := c.counter.(hostcall.Watcher); ok {
		w.Watched(u)
	}
	if u.Redacted {
		c.warnSecret("answer")
	}
	level, message := slog.LevelDebug, "used"
	if u.Outcome == hostcall.NotGranted {
		message = "a tool tried to use what it was not granted"
		if c.Tally(refused{c.lines.tool, u.Capability}, 1) == 1 { // operators must learn of it, and a guest may try a million times
			level = slog.LevelInfo
		}
	}
	log := c.engine.log
	if !log.Enabled(c.ctx, level) {
		return
	}
	target := string(c.filter.bytes([]byte(u.Target), c.principal)) // before it is cut, since a part of a secret would not be found
	attrs := make([]slog.Attr, 0, 7)
	attrs = append(attrs, slog.String("tool", c.lines.tool), slog.String("capability", u.Capability),
		slog.String("target", text.ClipEscaped(target, maxTarget)), slog.Int64("sent", u.Sent), slog.Int64("received", u.Received),
		slog.Duration("took", u.Took))
	if u.Outcome != "" {
		attrs = append(attrs, slog.String("outcome", u.Outcome))
	}
	log.LogAttrs(c.ctx, level, message, attrs...)
}

// refused is the key for counting how often, in a client's call, a tool's grant did not allow a use of a capability.
type refused struct{ tool, capability string }

// Hold makes the account hold n bytes more for the call; a negative n means fewer.
func (c *call) Hold(n int64) {
	if c.beside += n; n > 0 {
		c.owner.grow(int64(len(c.memory.Bytes())))
	}
}

// A filter removes from a guest's words what must not leave the host.
type filter []hostcall.Filter

// filterOf returns the filter among the values of grants.
func filterOf(grants []any) (f filter) {
	for _, value := range grants {
		if one, ok := value.(hostcall.Filter); ok {
			f = append(f, one)
		}
	}
	return f
}

// bytes returns b without what must not leave. The guest says b on behalf of who.
func (f filter) bytes(b []byte, who fmt.Stringer) []byte {
	for _, one := range f {
		b = one.Filter(b, who)
	}
	return b
}

// filtered returns b, the guest's words, without what must not leave.
func (c *call) filtered(where string, b []byte) []byte {
	clean := c.filter.bytes(b, c.principal)
	if !bytes.Equal(clean, b) {
		c.warnSecret(where)
	}
	return clean
}

// warnSecret logs, once in a client's call, that something was removed: the caller may be trying to find out which text is a secret. A tool that is
// called again and again inside that call gets no further lines.
func (c *call) warnSecret(where string) {
	if c.lines.secret {
		return
	}
	c.lines.secret = true
	if c.Tally(warned{c.lines.tool}, 1) > 1 {
		return
	}
	c.engine.log.LogAttrs(c.ctx, slog.LevelWarn, "a secret was removed", slog.String("tool", c.lines.tool), slog.String("where", where))
}

// warned is the key for counting how often secrets were removed from a tool's words in a client's call.
type warned struct{ tool string }
