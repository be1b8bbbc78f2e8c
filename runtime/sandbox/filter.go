package sandbox

import (
	"bytes"
	"log/slog"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// A filter is what takes out of a guest's words what must not leave the host.
type filter []hostabi.Filter

// filterOf returns the filter of those values of grants that are one.
func filterOf(grants []any) (f filter) {
	for _, value := range grants {
		if one, ok := value.(hostabi.Filter); ok {
			f = append(f, one)
		}
	}
	return f
}

// bytes returns what is left of b.
func (f filter) bytes(b []byte) []byte {
	for _, one := range f {
		b = one.Filter(b)
	}
	return b
}

// filtered returns what is left of what the guest says there.
func (c *call) filtered(where string, b []byte) []byte {
	clean := c.filter.bytes(b)
	if !bytes.Equal(clean, b) {
		c.warnSecret(where)
	}
	return clean
}

// warnSecret has the log say, once in a client's call, that something was taken out: who calls may be trying which text is a secret. A tool
// that is called again and again inside that call has no more lines for it.
func (c *call) warnSecret(where string) {
	if c.lines.secret {
		return
	}
	c.lines.secret = true
	if c.Tally(warned{c.lines.tool}, 1) > 1 {
		return
	}
	c.engine.log.LogAttrs(c.ctx, slog.LevelWarn, "a secret was taken out", slog.String("tool", c.lines.tool), slog.String("where", where))
}

// warned is the key under which it is counted how often a tool's secrets were taken out in a client's call.
type warned struct{ tool string }
