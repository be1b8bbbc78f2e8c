package sandbox

import (
	"time"
)

// Times are the durations of the phases of a call. A phase that was not reached has 0.
type Times struct {
	// Turn is the wait for a place, and Compile the wait for the module's code. They are parts of Ready.
	Turn, Compile time.Duration
	// Ready ends when an instance is ready, or when the call ends without one. It consists of the wait for a turn and, if no instance is idle, making
	// one. The first call of a program compiles and initialises it.
	Ready time.Duration
	// Run is the guest's own time.
	Run time.Duration
	// Reset is the time for resetting the instance. It is 0 if the instance was closed instead: the call broke it, or grew its memory to the most that
	// the module declares, or instances of the program can't be reset.
	Reset time.Duration
}

// A clock records when the phases of a call end. A nil clock records nothing.
type clock struct {
	ends          [3]time.Time
	phases        int
	turn, compile time.Duration
}

// now returns the time, or zero if c is nil.
func (c *clock) now() (t time.Time) {
	if c != nil {
		t = time.Now()
	}
	return t
}

// turned records that the call has waited for a place since the given time. compiled does the same for a wait for code.
func (c *clock) turned(since time.Time) {
	if c != nil {
		c.turn += time.Since(since)
	}
}

func (c *clock) compiled(since time.Time) {
	if c != nil {
		c.compile += time.Since(since)
	}
}

// tick records the end of a phase.
func (c *clock) tick() {
	if c != nil && c.phases < len(c.ends) {
		c.ends[c.phases] = time.Now()
		c.phases++
	}
}

func (c *clock) times(begun time.Time) Times {
	t := Times{Turn: c.turn, Compile: c.compile}
	if c.phases == 0 { // the call ended before it was ready
		t.Ready = time.Since(begun)
	}
	for i, phase := range []*time.Duration{&t.Ready, &t.Run, &t.Reset}[:c.phases] {
		*phase = c.ends[i].Sub(begun)
		begun = c.ends[i]
	}
	return t
}
