// Package toolslog makes log/slog write to the host's log. It is a package of its own because log/slog makes a module
// some hundred kilobytes larger.
package toolslog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

// New returns a logger whose lines go to the log of c, with their attributes after the message as key=value. The host
// adds the time, the tool's name and the level.
func New(c *toolsrv.Call) *slog.Logger { return slog.New(&handler{call: c}) }

// handler implements slog.Handler. Its values never change.
type handler struct {
	call   *toolsrv.Call
	before string // the attributes of With, written out
	group  string // the prefix of the keys to come, such as "request."
}

var _ slog.Handler = (*handler)(nil)

// Enabled reports true: the operator chooses which levels are shown.
func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes one line.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	line.WriteString(h.before)
	r.Attrs(func(a slog.Attr) bool {
		write(&line, h.group, a)
		return true
	})
	h.call.Log(level(r.Level), line.String())
	return nil
}

// WithAttrs returns a handler that adds attributes to each line.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var text strings.Builder
	text.WriteString(h.before)
	for _, a := range attrs {
		write(&text, h.group, a)
	}
	return &handler{call: h.call, before: text.String(), group: h.group}
}

// WithGroup returns a handler that puts name before the keys to come.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{call: h.call, before: h.before, group: h.group + name + "."}
}

// write appends an attribute as " key=value".
func write(to *strings.Builder, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range value.Group() {
			write(to, group, inner)
		}
		return
	}
	text := value.String()
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' }) {
		text = fmt.Sprintf("%q", text)
	}
	to.WriteString(" " + group + a.Key + "=" + text)
}

// level returns the host's level for one of slog's, which may be between two.
func level(l slog.Level) toolsrv.Level {
	switch {
	case l >= slog.LevelError:
		return toolsrv.LevelError
	case l >= slog.LevelWarn:
		return toolsrv.LevelWarn
	case l >= slog.LevelInfo:
		return toolsrv.LevelInfo
	}
	return toolsrv.LevelDebug
}
