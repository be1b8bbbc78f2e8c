package measure_test

import (
	"errors"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		list []float64
		want float64
	}{
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 2}, 2},
		{"even", []float64{4, 1, 2, 9}, 3},
	} {
		if got := measure.Median(test.list); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	list := make([]time.Duration, 200)
	for i := range list {
		list[len(list)-1-i] = time.Duration(i + 1)
	}
	for p, want := range map[float64]time.Duration{0: 1, 50: 100, 99: 198, 100: 200} {
		if got := measure.Percentile(list, p); got != want {
			t.Errorf("p%v: got %d, want %d", p, got, want)
		}
	}
}

// TestTimes checks the direction of ratios: if the first side is slower, the ratio is above 1.
func TestTimes(t *testing.T) {
	t.Parallel()
	times := measure.Times{{10, 30, 20}, {5, 10, 10}}
	if got := times.Ratio(0, 1); got != 2 {
		t.Errorf("ratio: got %v, want 2", got)
	}
	if got := times.Difference(0, 1); got != 10 {
		t.Errorf("difference: got %v, want 10", got)
	}
	if got := measure.Mean([]float64{2, 8}); got < 3.999 || got > 4.001 {
		t.Errorf("mean: got %v, want 4", got)
	}
}

func TestCompareStopsAtAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := measure.Compare(1, time.Millisecond, measure.Side{Name: "side", Do: func() error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
