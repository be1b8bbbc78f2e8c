package sandbox

import (
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// maxTarget is how much of what was used a log line shows, in bytes.
const maxTarget = 256

// Count counts a use, for the calls that this one is inside, too.
func (c *call) Count(u hostabi.Use) {
	if c.counter != nil {
		c.counter.Used(u)
	}
	if c.outer != nil {
		c.outer.Count(u)
	}
}

// Tally counts in the outermost call: what a call may do of something, it may not do again in each call inside it.
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

// Used counts a use, and writes its line.
func (c *call) Used(u hostabi.Use) {
	c.Count(u)
	if u.Redacted {
		c.warnSecret("answer")
	}
	log := c.engine.log
	if !log.Enabled(c.ctx, slog.LevelDebug) {
		return
	}
	target := string(c.filter.bytes([]byte(u.Target))) // before it is cut, as a part of a secret is not found
	attrs := make([]slog.Attr, 0, 7)
	attrs = append(attrs, slog.String("tool", c.lines.tool), slog.String("capability", u.Capability),
		slog.String("target", text.ClipEscaped(target, maxTarget)), slog.Int64("sent", u.Sent), slog.Int64("received", u.Received),
		slog.Duration("took", u.Took))
	if u.Outcome != "" {
		attrs = append(attrs, slog.String("outcome", u.Outcome))
	}
	log.LogAttrs(c.ctx, slog.LevelDebug, "used", attrs...)
}

// Hold has the account hold n bytes more for the call, or less.
func (c *call) Hold(n int64) {
	if c.beside += n; n > 0 {
		c.owner.grow(int64(len(c.memory.Bytes())))
	}
}
