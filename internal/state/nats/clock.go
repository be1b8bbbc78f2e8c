package nats

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A clock tells the time of the servers, so that an entry expires at the same moment for all processes, whatever their machines' clocks say.
// Otherwise a process whose clock is ahead would delete entries that have not expired for the others.
//
// The time comes from the node that leads, and the next leader's clock may be wrong. So a time that differs much from the expected one is accepted
// only if it is nearer to the machine's own clock.
type clock struct {
	last   atomic.Pointer[reading] // nil: no server has told the time yet
	told   atomic.Bool
	jumped atomic.Bool
}

// A reading is the servers' time at a moment of this machine's monotonic clock.
type reading struct{ said, at time.Time }

// on returns the servers' time at a moment. Changes of the machine's clock since the reading make no difference.
func (r *reading) on(moment time.Time) time.Time { return r.said.Add(moment.Sub(r.at)) }

const (
	// sureClock is the longest that a request for the time may take. Slower answers are not used.
	sureClock = time.Second
	// If the clocks differ by warnClock or more, a warning is logged, since tokens expire by the machine's own clock.
	warnClock = 5 * time.Second
)

// now returns the servers' time, or the machine's own until the first reading.
func (c *clock) now() time.Time {
	now := time.Now()
	if r := c.last.Load(); r != nil {
		return r.on(now)
	}
	return now
}

// set adopts a server's time. said is what the server reported, at some moment between asked and answered.
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
	is := said.Round(0).Add(min(max(expected.Sub(said), 0), took)) // the server's time when the answer came: as expected, if the answer allows it
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
