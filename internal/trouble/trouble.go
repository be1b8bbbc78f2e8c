// Package trouble logs a lasting problem twice: once when it begins, and once when it is over.
package trouble

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// A Trouble is a problem that can last for a while. It is safe for concurrent use.
type Trouble struct {
	log    *slog.Logger
	level  slog.Level
	begins string
	ends   string
	on     atomic.Bool
}

// New returns a trouble that has not begun. begins is the log line for its beginning, written with the given level. ends is the log line for its
// end, written with the level INFO.
func New(log *slog.Logger, level slog.Level, begins, ends string) *Trouble {
	return &Trouble{log: log, level: level, begins: begins, ends: ends}
}

// Set records whether there is trouble: err is the reason, or nil if there is none. It reports whether that has changed, and so was logged.
func (t *Trouble) Set(why error) (changed bool) {
	if t.on.Swap(why != nil) == (why != nil) {
		return false
	}
	if why != nil {
		t.log.Log(context.Background(), t.level, t.begins, "error", why)
	} else {
		t.log.Info(t.ends)
	}
	return true
}
