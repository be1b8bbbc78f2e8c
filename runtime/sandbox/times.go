package sandbox

import (
	"time"
)

// Times are what the phases of a call took. One that was not reached is 0.
type Times struct {
	// Ready is from the call's begin to where an instance is ready: waiting for a turn, and, where none is idle, making one.
	// That compiles and initialises a program that was not called before.
	Ready time.Duration
	// Run is the guest's run.
	Run time.Duration
	// Reset is making the instance as new. It is 0 where it was closed instead: because the call broke it, or let its memory
	// grow to all that the module declares, or because instances of the program can't be reset in place.
	Reset time.Duration
}

// A clock notes when the phases of a call end. A nil clock notes nothing, which is what calls that nobody times do.
type clock struct {
	ends   [3]time.Time
	phases int
}

// tick notes the end of a phase.
func (c *clock) tick() {
	if c != nil && c.phases < len(c.ends) {
		c.ends[c.phases] = time.Now()
		c.phases++
	}
}

func (c *clock) times(begun time.Time) Times {
	var t Times
	for i, phase := range []*time.Duration{&t.Ready, &t.Run, &t.Reset}[:c.phases] {
		*phase = c.ends[i].Sub(begun)
		begun = c.ends[i]
	}
	return t
}
