package session

import "time"

// A bucket is a token bucket: it holds a number of tokens and refills in one second.
type bucket struct {
	left float64
	at   time.Time // when left was last updated; zero if the bucket is still full
}

// take takes a token, and reports whether there was one.
func (b *bucket) take(most float64, now time.Time) bool {
	if b.at.IsZero() {
		b.left = most
	} else {
		b.left = min(most, b.left+most*now.Sub(b.at).Seconds())
	}
	if b.at = now; b.left < 1 {
		return false
	}
	b.left--
	return true
}
