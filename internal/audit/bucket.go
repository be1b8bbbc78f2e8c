package audit

import (
	"sync"
	"time"
)

// A bucket says which refused attempts get entries of their own: some at first, and then one every ten minutes.
type bucket struct {
	mu    sync.Mutex
	left  int
	since time.Time // the bucket has been refilled for the time before this
}

// take reports whether one more attempt may have an entry.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == refusals || b.since.After(now) { // the bucket is full, or the clock was put back
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
