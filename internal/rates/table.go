package rates

import (
	"math"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A table's shards have locks of their own. A set is the places where a caller can be.
const (
	shards = 64
	sets   = 128 // of each shard
	places = 16  // of each set
	// Most is how many callers a table knows at most.
	Most = shards * sets * places
)

// A table has the calls of each caller, by a number that others can't foresee. It takes 5 MiB at most, which come as shards are used, and 8 MiB where
// it is shared.
//
// Where there is no room, it forgets who owes least. Whoever may make as many calls at once as ever is forgotten without a trace. Of the others,
// those are kept who were refused meanwhile, the last one longest, and then those who have made more of their calls. So whoever comes with a million
// addresses makes it forget these addresses, and not one that goes on asking for too much. Whoever comes finds a place: nobody is locked out.
type table struct {
	shards  [shards]shard
	sharing sharing
}

type shard struct {
	mu      sync.Mutex
	entries []entry // nil: nobody has come yet; set after set
	parts   []part  // of the entries; if nil, the table was never shared
	active  []active
}

// An entry is the calls of a caller.
type entry struct {
	caller  uint64 // 0: nobody's
	since   time.Duration
	window  time.Duration // how long a used-up burst takes to come back; 0 means no rate
	refused time.Duration // when a call was refused last since all could be made at once; 0 means none was
	running int32
}

// The field since is when all calls could be made at once again that the burst has: each call moves it on by the time that one call takes to come
// back, and it is never a whole window ahead. That is the theoretical arrival time of the generic cell rate algorithm: a token bucket in one number.

// A measure is a rate as the table counts.
type measure struct {
	interval   time.Duration // after which a call comes back; 0 means no rate
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

// take counts a call that begins, or returns how long to wait for one. held says that the call counts as running, until give. A call that may
// not be made because too many run may be made as soon as one ends: after is 0 then. Other processes are told of the calls of who, unless that is nil.
func (t *table) take(caller uint64, who *wasmtools.Principal, m measure, now time.Duration) (held, ok bool, after time.Duration) {
	s, at := t.lock(caller)
	defer s.mu.Unlock()
	i := s.find(at, caller)
	if i < 0 {
		if i = s.room(at, now); i < 0 { // a call of each of the others runs
			return false, true, 0
		}
		s.renew(i, entry{caller: caller, since: now})
	}
	e := &s.entries[i]
	if e.window != m.window { // another rate: nobody owes more than all that it has
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

// give ends a call that take has counted as running. back takes back the call itself: it was not made.
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

// known returns how many callers are known that owe anything.
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

// lock locks the shard of a caller, and returns where the set begins in which it can be.
func (t *table) lock(caller uint64) (s *shard, at int) {
	s = &t.shards[caller>>32%shards]
	s.mu.Lock()
	if s.entries == nil {
		s.entries = make([]entry, sets*places)
	}
	return s, int(caller >> 48 % sets * places)
}

// find returns the place of a caller in the set that begins at a place, or -1.
func (s *shard) find(at int, caller uint64) int {
	set := s.entries[at : at+places]
	for i := range set {
		if set[i].caller == caller {
			return at + i
		}
	}
	return -1
}

// room returns the place in a set whose caller can be forgotten, or -1 if each of them has a running call.
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

// owes returns how much of a caller's burst is used up, as a part of it; more than all if it was refused, and infinity while calls of its are counted
// that run.
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
