package durations_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/durations"
)

// TestHistogram counts durations at bounds, between them and beyond them.
func TestHistogram(t *testing.T) {
	t.Parallel()
	var h durations.Histogram
	if s := h.Sum(); s.Count != 0 || s.Took != 0 || s.Below[1] != 0 || len(s.Below) == 0 {
		t.Errorf("before anything is counted: %+v", s)
	}
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, time.Second, math.MaxInt64 / 4} {
		h.Add(d)
	}
	s := h.Sum()
	if s.Count != 6 {
		t.Errorf("got %d durations", s.Count)
	}
	if want := 2*time.Millisecond + 1 + time.Second + math.MaxInt64/4; s.Took != want {
		t.Errorf("got %v in all, want %v", s.Took, want)
	}
	for bound, want := range map[float64]uint64{.0005: 2, .001: 3, .005: 4, .5: 4, 1: 5, 120: 5} {
		if got, ok := s.Below[bound]; !ok || got != want {
			t.Errorf("%d are no longer than %v s, want %d", got, bound, want)
		}
	}
}

// TestConcurrent counts on several goroutines, and allocates nothing.
func TestConcurrent(t *testing.T) {
	var h durations.Histogram
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				h.Add(time.Millisecond)
			}
		})
	}
	all.Wait()
	if s := h.Sum(); s.Count != 4000 || s.Took != 4*time.Second {
		t.Errorf("got %+v", s)
	}
	if n := testing.AllocsPerRun(100, func() { h.Add(time.Second) }); n != 0 {
		t.Errorf("a duration takes %v allocations", n)
	}
}
