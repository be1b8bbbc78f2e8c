package statetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A Clock makes time pass for a store.
type Clock interface {
	Sleep(time.Duration)
	// Eventually reports whether a condition becomes true once everything in progress has been done.
	Eventually(func() bool) bool
}

// bubble is the clock of a testing/synctest bubble.
type bubble struct{}

func (bubble) Sleep(d time.Duration) { time.Sleep(d) }

func (bubble) Eventually(is func() bool) bool {
	synctest.Wait()
	return is()
}

// A SetClock is a clock that only Sleep moves, for stores that are told the time but wait for others in real time.
type SetClock struct {
	mu  sync.Mutex
	now time.Time
}

// NewSetClock returns a clock that is set to the present time.
func NewSetClock() *SetClock { return &SetClock{now: time.Now()} }

// Now returns the time.
func (c *SetClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep implements Clock.
func (c *SetClock) Sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Eventually implements Clock.
func (c *SetClock) Eventually(is func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if is() {
			return true
		}
		<-tick.C
	}
	return false
}

// setFor sets a key that expires after a time.
func setFor(t *testing.T, s state.Space, key string, expect int64, ttl time.Duration) {
	t.Helper()
	if _, err := s.Set(t.Context(), key, []byte(key), expect, state.SetOptions{TTL: ttl}); err != nil {
		t.Errorf("set %.60q: %v", key, err)
	}
}

// testExpiry checks that an entry exists until it expires, and not longer.
func testExpiry(t *testing.T, s state.Space, c Clock) {
	set(t, s, "for ever", "")
	setFor(t, s, "second", state.Any, time.Second)
	setFor(t, s, "minute", state.Any, time.Minute)
	setFor(t, s, "kept", state.Any, time.Second)
	setFor(t, s, "kept longer", state.Any, time.Second)
	setFor(t, s, "kept longer", state.Any, time.Hour)
	setFor(t, s, "shortened", state.Any, time.Hour)
	setFor(t, s, "shortened", state.Any, time.Second)
	kept := set(t, s, "kept", "kept") // without an expiry
	var wg sync.WaitGroup
	for i := range 3000 {
		wg.Go(func() { setFor(t, s, fmt.Sprint("many/", i), state.Any, time.Second) })
	}
	wg.Wait()
	e, _, err := s.Get(t.Context(), "minute", state.MaxValue)
	if left := time.Until(e.Expires); err != nil || left <= 0 || left > time.Minute {
		t.Errorf("a minute is %v, %v", left, err)
	}
	c.Sleep(time.Second - time.Millisecond)
	if got := get(t, s, "second"); got != "second" {
		t.Errorf("an entry is gone before its time: %s", got)
	}
	c.Sleep(time.Millisecond)
	for key, want := range map[string]string{"second": "-", "shortened": "-", "many/7": "-", "minute": "minute", "for ever": "", "kept": "kept", "kept longer": "kept longer"} {
		if got := get(t, s, key); got != want {
			t.Errorf("after a second %s is %q, want %q", key, got, want)
		}
	}
	if keys, more, err := s.List(t.Context(), "", "", 10); err != nil || more || len(keys) != 4 {
		t.Errorf("after a second there are %q, %t, %v", keys, more, err)
	}
	if deleted, err := s.Delete(t.Context(), "second", state.Any); deleted || err != nil {
		t.Errorf("an expired entry was deleted again: %t, %v", deleted, err)
	}
	if version, err := s.Set(t.Context(), "shortened", nil, state.Absent, state.SetOptions{}); err != nil || version <= kept {
		t.Errorf("an expired entry is made anew at version %d, %v", version, err)
	}
	c.Sleep(2 * time.Minute) // a store deletes expired entries even if nobody reads them
	if !c.Eventually(func() bool { return usage(t, s).Entries == 4 }) {
		t.Errorf("%+v is left, want 4 entries", usage(t, s))
	}
}

// testQuotaOfExpired fills a space with entries that expire, and checks that it is full until then, and not longer.
func testQuotaOfExpired(t *testing.T, s state.Space, c Clock) {
	quota := state.Usage{Entries: 100, Bytes: 100 * (state.Overhead + 10)}
	put := func(key string, size int) error {
		_, err := s.Set(t.Context(), key, make([]byte, size), state.Any, state.SetOptions{TTL: time.Second, Quota: quota})
		return err
	}
	for range 3 {
		for i := range 100 {
			if err := put(fmt.Sprintf("k%03d", i), 6); err != nil {
				t.Fatal(err)
			}
		}
		c.Sleep(time.Second - time.Millisecond)
		if err := put("more", 6); !errors.Is(err, state.ErrQuota) {
			t.Errorf("got %v above the quota", err)
		}
		c.Sleep(time.Millisecond)
		// This entry needs the room of all entries that have expired.
		if err := put("large", 100*(state.Overhead+10)-state.Overhead-5); err != nil {
			t.Errorf("got %v although all entries have expired", err)
		}
		if err := put("more", 0); !errors.Is(err, state.ErrQuota) {
			t.Errorf("got %v above the quota", err)
		}
		c.Sleep(time.Second)
	}
}

// testWatch watches a prefix from the beginning.
func testWatch(t *testing.T, s state.Space, c Clock) {
	for i := range 3 {
		set(t, s, fmt.Sprint("in/", i), "old")
	}
	set(t, s, "out", "old")
	ctx, cancel := context.WithCancelCause(t.Context())
	events := make(chan string)
	go func() {
		for e, err := range s.Watch(ctx, "in/") {
			switch {
			case err != nil:
				events <- err.Error()
			case e.Synced:
				events <- "synced"
			case e.Deleted:
				events <- "-" + e.Key
			default:
				events <- fmt.Sprintf("%s=%s", e.Key, e.Value)
			}
		}
		close(events)
	}()
	want := func(list ...string) {
		t.Helper()
		for _, want := range list {
			if got := <-events; got != want {
				t.Errorf("got the event %q, want %q", got, want)
			}
		}
	}
	want("in/0=old", "in/1=old", "in/2=old", "synced")
	set(t, s, "in/1", "new")
	set(t, s, "out", "new")
	setFor(t, s, "in/ttl", state.Any, time.Second)
	want("in/1=new", "in/ttl=in/ttl")
	if _, err := s.Delete(t.Context(), "in/0", state.Any); err != nil {
		t.Error(err)
	}
	want("-in/0")
	c.Sleep(2 * time.Second)
	usage(t, s)
	want("-in/ttl")
	cancel(errors.New("enough"))
	want("enough")
	if _, open := <-events; open {
		t.Error("the watch goes on")
	}
}

// testWatchMany has watchers that are slower than the writers, and checks that each sees the last value of each key.
func testWatchMany(t *testing.T, store state.Store) {
	s := store.Space("a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const keys, rounds = 5, 20
	synced, done := make(chan struct{}), make(chan error)
	for range 3 {
		go func() {
			last := map[string]string{}
			for e, err := range s.Watch(ctx, "") {
				if err != nil {
					done <- err
					return
				}
				if e.Synced {
					synced <- struct{}{}
					continue
				}
				if last[e.Key] = string(e.Value); len(last) == keys {
					finished := true
					for _, value := range last {
						finished = finished && value == fmt.Sprint(rounds)
					}
					if finished {
						done <- nil
						return
					}
				}
			}
		}()
	}
	for range 3 {
		<-synced
	}
	for round := range rounds {
		for key := range keys {
			set(t, s, fmt.Sprint(key), fmt.Sprint(round+1))
		}
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
