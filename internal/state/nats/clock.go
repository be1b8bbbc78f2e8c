package nats

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A clock tells the time of the servers, so that an entry expires at the same moment for all processes, whatever their machines' clocks say. What one
// whose clock is ahead took for expired, it would delete for all.
//
// The node that leads tells the time, and another one may lead whose clock is wrong. So a time that is far from the one before is taken only where the
// machine's own clock agrees with it more.
type clock struct {
	last   atomic.Pointer[reading] // nil: nobody was asked yet
	told   atomic.Bool
	jumped atomic.Bool
}

// A reading is what time it was for the servers at a moment.
type reading struct{ said, at time.Time }

// on returns what time it was by a reading at a moment, whatever became of the machine's clock meanwhile.
func (r *reading) on(moment time.Time) time.Time { return r.said.Add(moment.Sub(r.at)) }

const (
	// sureClock is how long an answer may take that says what time it is.
	sureClock = time.Second
	// warnClock is the difference of clocks that the log is told of: tokens expire by the machine's own.
	warnClock = 5 * time.Second
)

// now is the time of the servers, as far as is known.
func (c *clock) now() time.Time {
	now := time.Now()
	if r := c.last.Load(); r != nil {
		return r.on(now)
	}
	return now
}

// set takes up what time a server says that it was between two moments.
func (c *clock) set(asked, answered, said time.Time, log *slog.Logger) {
	took := answered.Sub(asked)
	if said.IsZero() || took > sureClock {
		return
	}
	own := answered.Round(0)
	expected, before := own, c.last.Load()
	if before != nil {
		expected = before.on(answered)
	}
	is := said.Round(0).Add(min(max(expected.Sub(said), 0), took)) // when the answer came; what was expected, if that may be
	if before != nil {
		off := is.Sub(expected)
		jumps := off.Abs() > warnClock && is.Sub(own).Abs() > expected.Sub(own).Abs()
		if jumps != c.jumped.Swap(jumps) && jumps {
			log.Warn("the clock of the node that now leads the state differs from the previous leader's; the earlier time is used: set that clock", slog.Duration("ahead", off.Round(time.Millisecond)))
		}
		if jumps {
			return
		}
	}
	c.last.Store(&reading{is, answered})
	ahead := own.Sub(is)
	if differs := ahead.Abs() > warnClock; differs != c.told.Swap(differs) && differs {
		log.Warn("the machine's clock differs from NATS's: tools' keys expire by NATS's clock, and tokens by the machine's", slog.Duration("ahead", ahead.Round(time.Millisecond)))
	}
}
