package trouble

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// againTime is how long the log has no other line on what recurs.
	againTime = 10 * time.Minute
	// calmTime is how long it must not have gone wrong until it is over.
	calmTime = time.Second
)

// A Recurring is what may go wrong as often as somebody likes, each time for a reason of its own. It is safe for concurrent use.
type Recurring struct {
	log    *slog.Logger
	level  slog.Level
	begins string
	ends   string
	on     atomic.Bool // it was told, and not that it is over

	mu     sync.Mutex
	told   time.Time // zero: it was not, or is over
	last   time.Time // when it went wrong last
	missed int       // how often it was not told
}

// NewRecurring returns what has not gone wrong. A line of a level says that it has, and one of the level INFO that it is over. What is never over has an
// empty ends.
func NewRecurring(log *slog.Logger, level slog.Level, begins, ends string) *Recurring {
	return &Recurring{log: log, level: level, begins: begins, ends: ends}
}

// Add takes up that it has gone wrong, and why. The log has a line of it at once, and then one in ten minutes at most, with how often it had none.
func (r *Recurring) Add(why error, more ...any) {
	r.mu.Lock()
	now := time.Now()
	r.last = now
	tell, missed := r.told.IsZero() || now.Sub(r.told) > againTime, r.missed
	if tell {
		r.told, r.missed = now, 0
		r.on.Store(true)
	} else {
		r.missed++
	}
	r.mu.Unlock()
	if tell {
		r.log.Log(context.Background(), r.level, r.begins, append(more, "error", why, "not_logged", missed)...)
	}
}

// Over takes up that it has gone well: what was told is over, unless it has gone wrong a moment ago. The next line comes at once then.
func (r *Recurring) Over() {
	if !r.on.Load() { // nearly always
		return
	}
	r.mu.Lock()
	over := r.on.Load() && time.Since(r.last) > calmTime
	if over {
		r.on.Store(false)
		r.told = time.Time{}
	}
	r.mu.Unlock()
	if over {
		r.log.Info(r.ends)
	}
}
