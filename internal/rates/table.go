package rates

import (
	"math"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A table consists of shards, each with a lock of its own. A set is the group of places where one caller's entry can be.
const (
	shards = 64
	sets   = 128 // the number of sets of each shard
	places = 16  // the number of places of each set
	// Most is how many callers a table can count.
	Most = shards * sets * places
)

// A table counts the calls of each caller, by a number that others can't foresee. It takes 5 MiB at most, or 8 MiB if it is shared; memory is
// allocated when a shard is first used.
//
// If there is no room, it forgets a caller. A caller whose bucket is full is forgotten without loss. Of the others, it keeps longest those that were
// refused, the last refused one longest of all, and then those that have used most of their calls. So somebody who comes with a million addresses
// makes it forget these addresses, and not a caller that keeps calling too often. A new caller always finds a place: nobody is locked out.
type table struct {
	shards  [shards]shard
	sharing sharing
}

type shard struct {
	mu      sync.Mutex
	entries []entry // one set after another; nil until the first caller comes
	parts   []part  // one for each entry; nil if the table was never shared
	active  []active
}

// An entry counts the calls of a caller.
type entry struct {
	caller  uint64 // 0: nobody's
	since   time.Duration
	window  time.Duration // how long an empty bucket takes to fill; 0 means no rate
	refused time.Duration // when a call was last refused since the bucket was full; 0 if none was
	running int32
}

// The field since is when the bucket is full again: each call moves it on by the time that one call takes to refill, and it is never a whole window
// ahead. It is the theoretical arrival time of the generic cell rate algorithm: a token bucket in one number.

// A measure is a rate in the form that the table uses.
type measure struct {
	interval   time.Duration // how long one call takes to refill; 0 means no rate
	window     time.Duration
	concurrent int32 // 0: any number
}

// longest is the longest window, about 70 years, so that no sum of times overflows: programs may give any rate.
const longest = math.MaxInt64 / 4

// measureOf returns the measure of a rate.
func measureOf(r wasmtools.Rate) (m measure) {
	m.concurrent = int32(max(0, min(r.Concurrent, math.MaxInt32)))
	if r.Calls > 0 {
		calls, period, burst := time.Duration(r.Calls), max(1, min(r.Period, longest/2)), time.Duration(burstOf(r))
		m.interval = max(1, period/calls)
		if m.interval*calls < period {
			m.interval++ // never more calls than the rate has
		}
		m.window = longest
		if m.interval <= longest/burst {
			m.window = m.interval * burst
		}
	}
	return m
}

// take counts a call that begins, or returns how long to wait before the next try. after is 0 if too many calls run: then a call may be made as soon
// as one ends. held says that the call counts as running until give is called. Other processes are told about the calls of who, unless it is nil.
func (t *table) take(caller uint64, who *wasmtools.Principal, m measure, now time.Duration) (held, ok bool, after time.Duration) {
	s, at := t.lock(caller)
	defer s.mu.Unlock()
	i := s.find(at, caller)
	if i < 0 {
		if i = s.room(at, now); i < 0 { // each of the other callers has a running call
			return false, true, 0
		}
		s.renew(i, entry{caller: caller, since: now})
	}
	e := &s.entries[i]
	if e.window != m.window { // the rate has changed: the bucket can't be more than empty
		e.since, e.window = min(e.since, now+m.window), m.window
	}
	if e.since <= now {
		e.since, e.refused = now, 0
	}
	if m.concurrent > 0 && e.running >= m.concurrent {
		e.refused = max(1, now)
		return false, false, 0
	}
	if over := e.since + m.interval - m.window - now; m.interval > 0 && over > 0 {
		e.refused = max(1, now)
		return false, false, over
	}
	if round := t.sharing.round.Load(); round != 0 && who != nil && m.interval > 0 {
		if over := t.sharing.take(s, i, who, m, round, now); over > 0 {
			e.refused = max(1, now)
			return false, false, over
		}
	}
	e.since += m.interval
	if m.concurrent > 0 {
		e.running++
	}
	return m.concurrent > 0, true, 0
}

// give ends a call that take has counted as running. If back is true, the call was not made, and is no longer counted.
func (t *table) give(caller uint64, m measure, held, back bool) {
	if !held && !back {
		return
	}
	s, at := t.lock(caller)
	defer s.mu.Unlock()
	i := s.find(at, caller)
	if i < 0 {
		return
	}
	e := &s.entries[i]
	if held {
		e.running--
	}
	if back {
		e.since -= m.interval
		if s.parts != nil {
			s.parts[i].untold -= m.interval
		}
	}
}

// left returns how many calls a caller can make at once now, and how many of its calls run.
func (t *table) left(caller uint64, m measure, now time.Duration) (calls, running int) {
	s, at := t.lock(caller)
	defer s.mu.Unlock()
	owed := time.Duration(0)
	if i := s.find(at, caller); i >= 0 {
		e := &s.entries[i]
		owed, running = max(0, min(e.since-now, m.window)), int(e.running)
	}
	if m.interval > 0 {
		calls = int((m.window - owed) / m.interval)
	}
	return calls, running
}

// known returns how many callers have used up some of their calls.
func (t *table) known(now time.Duration) (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for k := range s.entries {
			if owes(&s.entries[k], now) > 0 {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// lock locks the shard of a caller, and returns the first place of the caller's set.
func (t *table) lock(caller uint64) (s *shard, at int) {
	s = &t.shards[caller>>32%shards]
	s.mu.Lock()
	if s.entries == nil {
		s.entries = make([]entry, sets*places)
	}
	return s, int(caller >> 48 % sets * places)
}

// find returns the place of a caller in the set whose first place is at, or -1.
func (s *shard) find(at int, caller uint64) int {
	set := s.entries[at : at+places]
	for i := range set {
		if set[i].caller == caller {
			return at + i
		}
	}
	return -1
}

// room returns the place in a set whose caller can be forgotten, or -1 if all callers there have running calls.
func (s *shard) room(at int, now time.Duration) int {
	least, best := -1, math.Inf(1)
	set := s.entries[at : at+places]
	for i := range set {
		if owed := owes(&set[i], now); owed < best {
			least, best = at+i, owed
		}
	}
	return least
}

// renew gives a place to another caller.
func (s *shard) renew(i int, e entry) {
	s.entries[i] = e
	if s.parts != nil {
		s.parts[i] = part{}
	}
}

// owes returns which fraction of a caller's bucket is used up. It is more than 1 if the caller was refused, and infinity while it has running calls
// that are counted.
func owes(e *entry, now time.Duration) float64 {
	switch {
	case e.running > 0:
		return math.Inf(1)
	case e.since <= now || e.window == 0:
		return 0
	}
	if e.refused > 0 {
		return 1 + float64(e.refused)
	}
	return float64(e.since-now) / float64(e.window)
}
