package trouble

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// againTime is the shortest time between two log lines about the same trouble.
	againTime = 10 * time.Minute
	// The trouble is over once nothing has gone wrong for calmTime.
	calmTime = time.Second
)

// A Recurring is a trouble that others can cause as often as they like, each time for a different reason. It is safe for concurrent use.
type Recurring struct {
	log    *slog.Logger
	level  slog.Level
	begins string
	ends   string
	on     atomic.Bool // the trouble was logged, and its end was not

	mu     sync.Mutex
	told   time.Time // when it was last logged; zero if it was not, or is over
	last   time.Time // when it last went wrong
	missed int       // how often it went wrong without a log line
}

// NewRecurring returns a trouble that has not begun. begins is the log line for when it goes wrong, written with the given level. ends is the log
// line for when it is over, written with the level INFO. If ends is empty, the trouble is never over.
func NewRecurring(log *slog.Logger, level slog.Level, begins, ends string) *Recurring {
	return &Recurring{log: log, level: level, begins: begins, ends: ends}
}

// Add records that something has gone wrong, and why. It logs the first time at once, and after that at most once every ten minutes, with the number
// of times that were not logged.
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

// Over records that all is well. It logs the end of the trouble, unless something went wrong a moment ago. After that, the next trouble is logged at
// once.
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
