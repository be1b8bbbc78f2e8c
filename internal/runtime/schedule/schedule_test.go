package schedule_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
)

// A log records when jobs begin and end.
type log struct {
	mu    sync.Mutex
	begun []string
	ended map[string]time.Duration
	start time.Time
}

func newLog() *log { return &log{ended: map[string]time.Duration{}, start: time.Now()} }

// job returns a job that is predicted to take a time, and takes that time plus late.
func (l *log) job(name string, order uint64, takes time.Duration, bytes int64, late time.Duration) *schedule.Job {
	return &schedule.Job{Order: order, Time: takes, Bytes: bytes, Cancel: func() {}, Run: func() {
		l.mu.Lock()
		l.begun = append(l.begun, name)
		l.mu.Unlock()
		time.Sleep(takes + late)
		l.mu.Lock()
		l.ended[name] = time.Since(l.start)
		l.mu.Unlock()
	}}
}

func (l *log) order() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.begun, " ")
}

func (l *log) end(t *testing.T, name string, most time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got, ok := l.ended[name]; !ok || got > most {
		t.Errorf("%s ended after %v (%t), want at most %v", name, got, ok, most)
	}
}

const (
	small = 10 * time.Millisecond
	large = 4 * time.Second
	mib   = 1 << 20
)

// TestCheapPassesCostly queues costly jobs, and then a cheap one, which does not wait for any of them, on any number of processors.
// Proves: Compiling is bounded
func TestCheapPassesCostly(t *testing.T) {
	t.Parallel()
	for _, processors := range []int{1, 2, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			s, l := schedule.New(processors, 1024*mib), newLog()
			for n := range uint64(50) {
				s.Add(l.job("costly", n, large, 100*mib, 0))
			}
			s.Add(l.job("cheap", 50, small, mib, 0))
			load := l.job("load", 51, small, 500*mib, 0)
			load.Load = true
			s.Add(load)
			synctest.Wait()
			if state := s.State(); state.Queued+state.Running != 52 || state.Running < 3 || state.Late > 0 {
				t.Errorf("got %+v, want 52 jobs, at least 3 of them running", state)
			}
			s.Close()
			<-s.Idle()
			if state := s.State(); state != (schedule.State{}) {
				t.Errorf("got %+v at the end", state)
			}
			l.end(t, "cheap", small)
			l.end(t, "load", small)
		})
	}
}

// TestCostlyIsNotStarved queues many cheap jobs, and then a costly one, which begins when the first cheap one ends.
func TestCostlyIsNotStarved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := schedule.New(2, 1024*mib), newLog()
		for n := range uint64(1000) {
			s.Add(l.job("cheap", n, small, mib, 0))
		}
		s.Add(l.job("costly", 1000, large, 100*mib, 0))
		time.Sleep(20 * large)
		s.Close()
		<-s.Idle()
		l.end(t, "costly", large+2*small)
		l.end(t, "cheap", 1000*small+small)
	})
}

// TestOrder checks the order within a lane: first jobs that somebody waits for, then cheaper ones, then earlier ones.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := schedule.New(1, 1024*mib), newLog()
		s.Add(l.job("first", 0, large, mib, 0))
		late, urgent := l.job("hurried", 9, 8*time.Second, mib, 0), l.job("urgent", 7, 3*time.Second, mib, 0)
		s.Hurry(urgent)
		for _, j := range []*schedule.Job{
			l.job("costliest", 1, 10*time.Second, mib, 0),
			l.job("third", 6, 600*time.Millisecond, mib, 0),
			l.job("second", 5, 700*time.Millisecond, mib, 0),
			late,
			urgent,
		} {
			s.Add(j)
		}
		s.Hurry(late)
		time.Sleep(time.Minute)
		s.Close()
		<-s.Idle()
		if got, want := l.order(), "first urgent hurried second third costliest"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestNobodyStarves queues many modules. Then clients wait for one of these after another, in random order. Each client waits only for the
// jobs of the other clients, not for everything that was queued before.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	const modules, clients, processors = 2000, 48, 2
	for _, test := range []struct {
		name  string
		takes func(n int) time.Duration
		most  time.Duration // the longest that a client may wait
	}{
		{"cheap", func(int) time.Duration { return 50 * time.Millisecond }, (clients + processors) * 50 * time.Millisecond / processors},
		// Only one costly job runs at a time. About three of the clients wait for long jobs, and none waits long behind short ones.
		{"costly, a few of them long", func(n int) time.Duration {
			if n%16 == 0 {
				return large
			}
			return 150 * time.Millisecond
		}, 12*large + clients*150*time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := schedule.New(processors, 1024*mib)
				done, jobs := make([]chan struct{}, modules), make([]*schedule.Job, modules)
				for n := range modules {
					done[n] = make(chan struct{})
					takes := test.takes(n)
					jobs[n] = &schedule.Job{Order: uint64(n), Time: takes, Bytes: mib, Cancel: func() {}, Run: func() {
						time.Sleep(takes)
						close(done[n])
					}}
					s.Add(jobs[n])
				}
				next := make(chan int, modules)
				for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(modules) {
					next <- n
				}
				close(next)
				var all sync.WaitGroup
				for range clients {
					all.Go(func() {
						for n := range next {
							began := time.Now()
							s.Hurry(jobs[n])
							<-done[n]
							if took := time.Since(began); took > test.most {
								t.Errorf("a client waits %v for module %d, want at most %v", took, n, test.most)
							}
						}
					})
				}
				all.Wait()
				s.Close()
				<-s.Idle()
			})
		})
	}
}

// TestLongComesAtLast has somebody wait for a long job, while shorter jobs that others wait for arrive faster than they can be done.
func TestLongComesAtLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes, every = 200 * time.Millisecond, 150 * time.Millisecond
		s, l := schedule.New(1, 1024*mib), newLog()
		long := l.job("long", 0, large, mib, 0)
		s.Add(l.job("first", 1, takes, mib, 0))
		s.Add(long)
		s.Hurry(long)
		for n := range uint64(400) {
			j := l.job("short", 2+n, takes, mib, 0)
			s.Hurry(j)
			s.Add(j)
			time.Sleep(every)
		}
		s.Close()
		<-s.Idle()
		l.end(t, "long", 20*time.Second)
	})
}

// TestBytes runs costly jobs that take memory. Together they stay within the bound, and a job above it runs alone.
// Proves: Compiling is bounded
func TestBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 1024 * mib
		s := schedule.New(16, most)
		var mu sync.Mutex
		taken, running := int64(0), 0
		random := rand.New(rand.NewPCG(1, 2))
		done := 0
		for n := range uint64(300) {
			bytes := random.Int64N(2 * most)
			s.Add(&schedule.Job{Order: n, Time: large, Bytes: bytes, Run: func() {
				mu.Lock()
				taken, running = taken+bytes, running+1
				if taken > most && running > 1 {
					t.Errorf("%d jobs take %d bytes, the bound is %d", running, taken, most)
				}
				mu.Unlock()
				time.Sleep(time.Duration(1 + bytes%int64(large)))
				mu.Lock()
				taken, running, done = taken-bytes, running-1, done+1
				mu.Unlock()
			}})
		}
		time.Sleep(time.Hour)
		s.Close()
		<-s.Idle()
		if done != 300 {
			t.Errorf("%d of 300 jobs have run", done)
		}
	})
}

// TestOverrun has jobs take longer than predicted. A second later, others begin in place of two of them, but of no more.
// Proves: Compiling is bounded
func TestOverrun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := schedule.New(1, 1024*mib), newLog()
		for n := range uint64(2) {
			s.Add(l.job("late", n, small, mib, time.Minute))
		}
		time.Sleep(small)
		s.Add(l.job("cheap", 2, small, mib, 0))
		time.Sleep(2 * time.Second)
		l.end(t, "cheap", time.Second+3*small)
		for n := range uint64(4) {
			s.Add(l.job("late", 3+n, small, mib, time.Minute))
		}
		s.Add(l.job("held up", 9, small, mib, 0))
		time.Sleep(30 * time.Second)
		if got := l.order(); strings.Contains(got, "held") || strings.Count(got, "late") != 4 {
			t.Errorf("got %q, want four late ones: two places, and two that overran", got)
		}
		time.Sleep(5 * time.Minute)
		s.Close()
		<-s.Idle()
		l.end(t, "held up", 5*time.Minute)
	})
}

// TestClose closes a scheduler. It must cancel jobs that have not begun, refuse further ones, and report when the rest have ended.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := schedule.New(1, mib), newLog()
		s.Add(l.job("running", 0, large, mib, 0))
		cancelled := 0
		waiting := l.job("waiting", 1, large, mib, 0)
		waiting.Cancel = func() { cancelled++ }
		s.Add(waiting)
		synctest.Wait()
		s.Close()
		s.Close()
		if cancelled != 1 {
			t.Errorf("the job that waits was cancelled %d times, want once", cancelled)
		}
		if s.Add(waiting); cancelled != 2 {
			t.Error("a closed scheduler keeps a job")
		}
		select {
		case <-s.Idle():
			t.Error("it is idle while a job runs")
		default:
		}
		<-s.Idle()
		if got := l.order(); got != "running" {
			t.Errorf("got %q, want what ran when it was closed", got)
		}
		none := schedule.New(1, mib)
		none.Close()
		<-none.Idle()
	})
}

// BenchmarkSchedule runs 10,000 jobs that are queued together. Somebody waits for half of them.
func BenchmarkSchedule(b *testing.B) {
	for b.Loop() {
		s := schedule.New(2, 1024*mib)
		var all sync.WaitGroup
		for n := range uint64(10_000) {
			all.Add(1)
			j := &schedule.Job{Order: n, Time: small, Run: all.Done}
			if s.Add(j); n%2 == 0 {
				s.Hurry(j)
			}
		}
		all.Wait()
		s.Close()
	}
}
