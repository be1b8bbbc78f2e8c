package sandbox

import (
	"log/slog"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// lines are what a run may still log, and who hears it.
type lines struct {
	tool     string
	listener hostabi.Listener // nil: nobody listens
	left     int              // lines that may still be written
	dropped  bool             // the log says that there were more
	secret   bool             // a secret was taken out, and the log says so
}

// Log writes one line to the engine's log and tells the listener. It reports false where the run has written all its lines.
func (c *call) Log(level slog.Level, source string, line []byte) bool {
	l, log := &c.lines, c.engine.log
	if !c.Line() {
		return false
	}
	line = c.filtered("log line", line[:min(len(line), 2*hostabi.MaxLine)]) // where it is cut, a part of what is filtered could be left
	line = line[:min(len(line), hostabi.MaxLine+1)]
	if l.listener != nil {
		l.listener.Log(level, source, text.Clip(strings.ToValidUTF8(string(line), "\uFFFD"), hostabi.MaxLine))
	}
	if log.Enabled(c.ctx, level) {
		log.LogAttrs(c.ctx, level, text.ClipEscaped(string(line), hostabi.MaxLine), slog.String("tool", l.tool), slog.String("source", source))
	}
	return true
}

// Line takes one of the lines that the run may still write, and one of each call that it is inside. It reports false where there is none,
// which the log says once: a tool that calls others could have them write without end otherwise.
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
