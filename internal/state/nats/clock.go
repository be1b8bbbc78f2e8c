package nats

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A clock tells the time of the servers, so that an entry expires at the same moment for all processes, whatever their machines' clocks say. What one
// whose clock is ahead took for expired, it would delete for all.
type clock struct {
	ahead atomic.Int64 // nanoseconds that the servers' clock is ahead of this machine's
	told  atomic.Bool
}

const (
	// sureClock is how long an answer may take that says what time it is.
	sureClock = time.Second
	// warnClock is the difference of clocks that the log is told of: tokens expire by the machine's own.
	warnClock = 5 * time.Second
)

// now is the time of the servers, as far as is known.
func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// set takes up what time a server says that it was between two moments.
func (c *clock) set(asked, answered, said time.Time, log *slog.Logger) {
	took := answered.Sub(asked)
	if said.IsZero() || took > sureClock {
		return
	}
	ahead := said.Sub(asked.Round(0)) - took/2
	c.ahead.Store(int64(ahead))
	if differs := ahead.Abs() > warnClock; differs != c.told.Swap(differs) && differs {
		log.Warn("the machine's clock differs from that of NATS: what tools keep expires by that of NATS, and tokens by the machine's", slog.Duration("ahead", -ahead.Round(time.Millisecond)))
	}
}
