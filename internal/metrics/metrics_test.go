package metrics

import (
	"testing"
	"time"
)

// TestBuckets checks which bucket a duration is in.
func TestBuckets(t *testing.T) {
	t.Parallel()
	last := 0
	for d := time.Duration(1); d < 300*time.Second; d += d/64 + 1 {
		at := bucketOf(d)
		if at < last {
			t.Fatalf("%v is in bucket %d, and a shorter duration in %d", d, at, last)
		}
		last = at
		if off := float64(middle(at)) / float64(d); d > 1024 && d < 240*time.Second && (off < 0.88 || off > 1.13) {
			t.Errorf("%v is in a bucket around %v", d, middle(at))
		}
	}
	if last != buckets-1 {
		t.Errorf("the last bucket is %d", last)
	}
	for _, d := range []time.Duration{-1, 0, 1, 1<<63 - 1} {
		if at := bucketOf(d); at < 0 || at >= buckets {
			t.Errorf("%v is in bucket %d", d, at)
		}
	}
}
