package command

import (
	"math/bits"
	"time"
)

// A histogram counts times in buckets whose width is 1/64 of their times, so that its memory does not grow with the number of times. The shortest and
// the longest time are exact. The zero histogram is empty.
type histogram struct {
	counts   [(64 - steps) << steps]int64
	total    int64
	min, max time.Duration
}

// steps is how many bits select the bucket among those of one power of two.
const steps = 6

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	if h.total == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.total++
	h.counts[bucket(d)]++
}

// bucket returns the bucket of a time. There is a bucket for each nanosecond below 128, and from there 64 for each doubling.
func bucket(d time.Duration) int {
	n := uint64(d)
	shift := max(bits.Len64(n)-steps-1, 0)
	return shift<<steps + int(n>>shift)
}

func (h *histogram) merge(other *histogram) {
	if other.total == 0 {
		return
	}
	if h.total == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	h.total += other.total
	for i, n := range other.counts {
		h.counts[i] += n
	}
}

// quantile returns the time that this fraction of all times does not exceed, as the upper end of its bucket.
func (h *histogram) quantile(part float64) time.Duration {
	rank := int64(part * float64(h.total))
	seen := int64(0)
	for i, n := range h.counts {
		if seen += n; seen > rank {
			shift := max(i>>steps-1, 0)
			upper := time.Duration(i-shift<<steps+1)<<shift - 1
			return min(max(upper, h.min), h.max)
		}
	}
	return h.max
}
