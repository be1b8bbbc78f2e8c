// Package trouble tells a log what goes wrong for a time: once when it begins, and once when it is over.
package trouble

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// A Trouble is one thing that can go wrong. It is safe for concurrent use.
type Trouble struct {
	log    *slog.Logger
	level  slog.Level
	begins string
	ends   string
	on     atomic.Bool
}

// New returns a trouble that there is not. A line of a level says that it begins, and one of the level INFO that it has ended.
func New(log *slog.Logger, level slog.Level, begins, ends string) *Trouble {
	return &Trouble{log: log, level: level, begins: begins, ends: ends}
}

// Set takes up whether there is the trouble, and why; if nil, there is none. It reports whether that is new, and so was told.
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
