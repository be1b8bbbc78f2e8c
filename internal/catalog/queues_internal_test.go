package catalog

import (
	"context"
	"slices"
	"testing"
)

// TestQueueHasRoom checks that a queue runs as many jobs at a time as fit together, the cheap ones first. A job that fits beside no other runs alone.
// Proves: Limits hold, one by one and in sum
func TestQueueHasRoom(t *testing.T) {
	t.Parallel()
	q := queue{limit: 3, room: 10}
	do, end := make(chan func()), make(chan struct{})
	for turn, weight := range []int64{9, 20, 4, 6, 5} {
		q.add(nil, task{nil, weight, turn, weight, func(context.Context) func() {
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
	// If two jobs run at the same time, either of them may end first.
	if want := [][]int64{{9, 10, 4, 9, 20}, {9, 10, 6, 9, 20}, {9, 5, 6, 9, 20}}; !slices.ContainsFunc(want, func(w []int64) bool { return slices.Equal(w, used) }) || q.used != 0 {
		t.Errorf("the jobs that ran at the same time weighed %v, want one of %v", used, want)
	}
}

// TestQueueOfLateFolders checks that the more of a folder's files take long, the longer its jobs wait for those of other folders.
// Proves: Nothing stops the server
func TestQueueOfLateFolders(t *testing.T) {
	t.Parallel()
	q := newQueues(1, 1<<30)
	q.reads.limit = 1
	do := make(chan func())
	var order []string
	add := func(name string, of *folder, size int64, late bool) {
		q.read(nil, of, size, 1, func(context.Context) func() {
			return func() {
				order = append(order, name)
				if late {
					q.late(of)
				}
			}
		})
	}
	worst, bad, good := &folder{}, &folder{}, &folder{}
	for i := range 4 {
		add("worst", worst, int64(i), true)
	}
	for range 2 {
		add("bad", bad, 100, true)
		add("good", good, 1000, false)
		add("none", nil, 2000, false)
	}
	for q.start(t.Context(), do); q.running() > 0; q.start(t.Context(), do) {
		(<-do)()
	}
	if want := []string{"worst", "bad", "good", "good", "none", "none", "worst", "bad", "worst", "worst"}; !slices.Equal(order, want) {
		t.Errorf("got the order %v, want %v", order, want)
	}
}
