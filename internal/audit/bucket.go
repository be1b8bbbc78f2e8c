package audit

import (
	"sync"
	"time"
)

// A bucket lets some refused attempts have entries of their own, and then one in a while.
type bucket struct {
	mu    sync.Mutex
	left  int
	since time.Time // from when the time counts that fills it
}

// take reports whether one more may have an entry.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == refusals || b.since.After(now) { // full, or the clock was put back
		b.since = now
	}
	if n := int(now.Sub(b.since) / refusalEvery); n > 0 {
		b.left = min(refusals, b.left+n)
		b.since = b.since.Add(time.Duration(n) * refusalEvery)
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}
