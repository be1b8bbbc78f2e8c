package sandbox

import (
	"runtime"
	"time"
)

// seatsPerProcessor is how many guests that compute for long may be about to run for each processor.
const seatsPerProcessor = 2

// A guest has its first turn as soon as Go lets it run. For each further one it needs a seat. The engine has some of them, for which modules take
// turns, so that a guest of another module waits for one turn, however many wait before it. Go would have thousands of
// guests that compute run one after the other before it comes back to anybody else. Who waits for anything but a seat has none.

// sit waits for a seat, until the run is over at most. It reports false where it need not wait.
func (c *call) sit() (waited bool) {
	if !c.engine.seats.Try() {
		if err := c.engine.seats.Enter(c.patience(), c.module); err != nil {
			if over := c.over(time.Now()); over != nil {
				err = over
			}
			panic(err)
		}
		waited = true
	}
	c.meter.seated = true
	return waited
}

// stand gives the seat to another guest, if this one has it.
func (c *call) stand() {
	if c.meter.seated {
		c.meter.seated = false
		c.engine.seats.Leave()
	}
}

// pause ends a part of the guest's turn, since it waits for something.
func (c *call) pause() {
	c.stand()
	if m := &c.meter; !m.turn.IsZero() {
		m.ran += time.Since(m.turn)
		m.turn = time.Time{}
	}
}

// share lets others run where the guest has had its turn. now is the time; it returns the time at which the guest goes on.
func (c *call) share(now time.Time) time.Time {
	m := &c.meter
	if m.turn.IsZero() {
		m.turn = now
	}
	back := m.long && !m.seated // from waiting for something else
	if !back && m.ran+now.Sub(m.turn) < c.length() {
		return now
	}
	c.memory.Unwatch()
	if m.seated && c.engine.seats.Waiting() > 0 {
		c.stand()
	}
	if waited := !m.seated && c.sit(); !waited && !back {
		runtime.Gosched()
	}
	m.long, m.ran, m.turn = true, 0, time.Now()
	return m.turn
}

// length returns how long a turn is. The first one is short while others wait for seats: thousands may begin at a time.
func (c *call) length() time.Duration {
	if !c.meter.long && c.engine.seats.Waiting() > 0 {
		return turn / 8
	}
	return turn
}
