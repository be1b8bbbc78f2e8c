package command

import (
	"math"
	"testing"
	"time"
)

// TestHistogram compares quantiles with the exact ones.
func TestHistogram(t *testing.T) {
	t.Parallel()
	var whole histogram
	for part := range 4 { // each worker counts in a histogram of its own
		var h histogram
		for i := 1 + part; i <= 100_000; i += 4 {
			h.add(time.Duration(i) * time.Microsecond)
		}
		whole.merge(&h)
	}
	whole.merge(&histogram{})
	if whole.total != 100_000 || whole.min != time.Microsecond || whole.max != 100*time.Millisecond {
		t.Errorf("got %d times from %s to %s", whole.total, whole.min, whole.max)
	}
	for _, part := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 0.99999} {
		want := float64(max(part*1e8, 1000))
		if got := float64(whole.quantile(part)); math.Abs(got-want) > want/60+1000 {
			t.Errorf("quantile %v: got %v, want about %v", part, got, want)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 127, 128, 129, 255, 256, time.Hour, math.MaxInt64} {
		var one histogram
		one.add(d)
		if got, want := one.quantile(0.5), max(d, 0); got != want {
			t.Errorf("the only time %d: got %d", want, got)
		}
	}
}
