package counters_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/metrics/counters"
)

// TestBounded counts more keys than can have counters of their own, from several goroutines.
func TestBounded(t *testing.T) {
	t.Parallel()
	const most, keys, each, goroutines = 10, 30, 100, 4
	m := counters.New[string, atomic.Uint64](most, "rest")
	for i := range most {
		m.Of(fmt.Sprint(i)) // so that these keys get counters of their own
	}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				for i := range keys {
					m.Of(fmt.Sprint(i)).Add(1)
				}
				m.Of("0").Add(1)
				m.Of("0").Add(1)
			}
		})
	}
	all.Wait()
	got := map[string]uint64{}
	for key, n := range m.All() {
		got[key] = n.Load()
	}
	want := map[string]uint64{"0": 3 * each * goroutines, "rest": (keys - most) * each * goroutines}
	for i := 1; i < most; i++ {
		want[fmt.Sprint(i)] = each * goroutines
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
