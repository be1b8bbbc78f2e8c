package catalog

import (
	"context"
	"slices"
	"testing"
)

// TestQueueHasRoom runs jobs as far as they fit together, the cheap ones first, and one that fits beside nothing alone.
// Proves: Limits hold, one by one and in sum
func TestQueueHasRoom(t *testing.T) {
	t.Parallel()
	q := queue{limit: 3, room: 10}
	do, end := make(chan func()), make(chan struct{})
	for turn, weight := range []int64{9, 20, 4, 6, 5} {
		q.add(nil, task{weight, turn, weight, func(context.Context) func() {
			<-end
			return func() {}
		}})
	}
	var used []int64
	for {
		q.start(t.Context(), do)
		if q.running == 0 {
			break
		}
		used = append(used, q.used)
		end <- struct{}{}
		(<-do)()
	}
	// Which of two that run ends first is not known.
	if want := [][]int64{{9, 10, 4, 9, 20}, {9, 10, 6, 9, 20}, {9, 5, 6, 9, 20}}; !slices.ContainsFunc(want, func(w []int64) bool { return slices.Equal(w, used) }) || q.used != 0 {
		t.Errorf("those that ran side by side weighed %v, want one of %v", used, want)
	}
}
