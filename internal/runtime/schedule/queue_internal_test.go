package schedule

import (
	"math/bits"
	"testing"
	"time"
)

// TestQueueIsNotScanned queues many jobs, and somebody waits for half of them. Each is compared with a few others, not with all: comparing
// all takes minutes.
func TestQueueIsNotScanned(t *testing.T) {
	t.Parallel()
	const many = 100_000
	s := New(1, 1<<30)
	s.overrun = time.Hour
	begin := make(chan struct{})
	for _, takes := range []time.Duration{time.Hour, 0} { // fill the place for costly jobs and the place for cheap ones
		s.Add(&Job{Time: takes, Run: func() { <-begin }, Cancel: func() {}})
	}
	done := make(chan struct{}, many)
	for n := range uint64(many) {
		j := &Job{Order: n * 2_654_435_761 % many, Time: time.Duration(n%7) * 20 * time.Millisecond, Run: func() { done <- struct{}{} }, Cancel: func() {}}
		if s.Add(j); n%2 == 0 {
			s.Hurry(j)
		}
	}
	if got := s.State().Queued; got != many {
		t.Fatalf("%d jobs are queued, want %d", got, many)
	}
	close(begin)
	late := time.After(time.Minute)
	for range many {
		select {
		case <-done:
		case <-late:
			t.Fatalf("after a minute %d jobs have been done", len(done))
		}
	}
	s.Close()
	<-s.Idle()
	compared := s.cheap.compared + s.costly.compared
	t.Logf("%.1f comparisons a job", float64(compared)/many)
	if most := 4 * many * bits.Len(many); compared > most {
		t.Errorf("%d comparisons for %d jobs, want at most %d", compared, many, most)
	}
}
