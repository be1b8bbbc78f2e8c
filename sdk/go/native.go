//go:build !wasip1 && !tinygo.wasm

package toolsrv

import (
	"time"

	"github.com/toolsrv/toolsrv/sdk/go/internal/double"
)

// export does nothing on the host: tests call the Module itself.
func export(Module) {}

// report tells the test that asked for it.
func (c *Call) report(done, total float64, message string) {
	if c != nil && c.progress != nil {
		c.progress(done, total, message)
	}
}

// left returns what is left until the deadline of a test, if it set one.
func (c *Call) left() (time.Duration, bool) {
	if c == nil || c.deadline.IsZero() {
		return 0, false
	}
	return max(0, time.Until(c.deadline)), true
}

// Value implements [context.Context]. It returns nil for every key except one of this module, under which packages find a test's replacement for the
// host.
func (c *Call) Value(key any) any {
	if _, ok := key.(double.Key); ok && c != nil && c.host != nil {
		return c.host
	}
	return nil
}
