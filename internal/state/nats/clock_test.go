package nats

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	var c clock
	is := func(want time.Duration, lines int) {
		t.Helper()
		if got := time.Until(c.now()); got < want-time.Second || got > want+time.Second {
			t.Errorf("the servers' clock is ahead by %v, want %v", got, want)
		}
		if got := strings.Count(said.String(), "clock differs"); got != lines {
			t.Errorf("the log has %d lines, want %d: %s", got, lines, &said)
		}
	}
	is(0, 0)
	now := time.Now()
	for range 3 { // answers that come late, as under load, change nothing
		if c.set(now, now.Add(800*time.Millisecond), now.UTC().Round(0), log); time.Until(c.now()).Abs() > 10*time.Millisecond {
			t.Errorf("the servers' clock is ahead by %v", time.Until(c.now()))
		}
	}
	c = clock{}
	set := func(took, ahead time.Duration) { c.set(now, now.Add(took), now.Add(took/2+ahead).UTC().Round(0), log) }
	set(20*time.Millisecond, -5*time.Minute) // nobody knows better
	is(-5*time.Minute, 1)
	set(20*time.Millisecond, -5*time.Minute)
	is(-5*time.Minute, 1)
	set(3*time.Second, time.Hour) // an answer that took long says little
	is(-5*time.Minute, 1)
	c.set(now, now, time.Time{}, log)
	is(-5*time.Minute, 1)
	set(0, -10*time.Minute) // another node leads, whose clock is worse than the previous leader's
	is(-5*time.Minute, 1)
	set(0, 2*time.Second)
	is(2*time.Second, 1)
	set(0, 5*time.Minute)
	set(0, 5*time.Minute)
	is(2*time.Second, 1)
	set(0, -time.Hour)
	is(2*time.Second, 1)
	set(0, 3*time.Second)
	is(3*time.Second, 1)
	set(0, 5*time.Minute)
	is(3*time.Second, 1)
	if got := strings.Count(said.String(), "the clock of the node that now leads"); got != 3 {
		t.Errorf("the log has %d lines about nodes, want 3: %s", got, &said)
	}
}
