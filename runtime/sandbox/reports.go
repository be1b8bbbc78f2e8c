package sandbox

import (
	"time"

	"github.com/toolsrv/toolsrv/internal/progress"
)

// Progress takes a report for the listener, and tells it if that is due. One that is not is told when the host looks at the run, when
// the guest is about to wait, or when it ends.
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

// tell tells the listener the report that waits, if there is one.
func (c *call) tell(now time.Time) {
	if done, total, message, ok := c.reports.Take(now); ok {
		c.memory.Unwatch() // the listener may wait for a client
		c.stand()
		c.lines.listener.Progress(done, total, message)
	}
}
