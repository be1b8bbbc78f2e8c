// Package durations counts durations in buckets, without a lock and without an allocation for each.
package durations

import (
	"slices"
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of all buckets except the last, which has none.
var bounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	500 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute,
}

// A Histogram counts durations. The zero value is ready for use. It is safe for concurrent use, and must not be copied.
type Histogram struct {
	buckets     [len(bounds) + 1]atomic.Uint64
	nanoseconds atomic.Int64
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	at, _ := slices.BinarySearch(bounds[:], d) // a duration that equals a bound belongs to the bucket below it
	h.buckets[at].Add(1)
	h.nanoseconds.Add(int64(max(d, 0)))
}

// A Sum is what a Histogram had counted when it was read.
type Sum struct {
	// Count is how many durations there were, and Took their sum.
	Count uint64
	Took  time.Duration
	// Below is how many were no longer than each bound, in seconds.
	Below map[float64]uint64
}

// Sum returns what was counted. A duration that is added meanwhile may be in only some of its numbers.
func (h *Histogram) Sum() Sum {
	s := Sum{Below: make(map[float64]uint64, len(bounds))}
	for i := range h.buckets {
		s.Count += h.buckets[i].Load()
		if i < len(bounds) {
			s.Below[bounds[i].Seconds()] = s.Count
		}
	}
	s.Took = time.Duration(h.nanoseconds.Load())
	return s
}
