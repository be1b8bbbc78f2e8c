package catalog

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A job does its part on a goroutine of its own and returns the rest, for the keeper's.
type job func(ctx context.Context) (rest func())

// work is what waits for workers, and how many there are. The keeper's goroutine owns it.
type work struct {
	most      int // loads at a time
	loads     []job
	compiles  []job // the engine has an order of its own; a load never waits for these
	loading   int
	compiling int
}

func (w *work) add(queue *[]job, j job) { *queue = append(*queue, j) }

// start gives to free workers what waits. Each hands its rest to do, which must be served until running is 0.
func (w *work) start(ctx context.Context, do chan<- func()) {
	for w.loading < w.most && len(w.loads) > 0 {
		begin(ctx, do, &w.loads, &w.loading)
	}
	// Some of these only wait for the engine, so that one that takes long does not hold up the next.
	for w.compiling < 2*w.most && len(w.compiles) > 0 {
		begin(ctx, do, &w.compiles, &w.compiling)
	}
}

func begin(ctx context.Context, do chan<- func(), queue *[]job, running *int) {
	j := (*queue)[0]
	*queue = (*queue)[1:]
	*running++
	go func() {
		rest := j(ctx)
		do <- func() {
			*running--
			rest()
		}
	}()
}

// idle reports whether no load is on its way.
func (w *work) idle() bool { return w.loading == 0 && len(w.loads) == 0 }

// running returns the number of workers at work.
func (w *work) running() int { return w.loading + w.compiling }

// sideBySide calls f for 0 to n-1 on as many goroutines as processors, but not more than 8, and returns when all calls have. Once ctx is
// done, no more begin.
func sideBySide(ctx context.Context, n int, f func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, n) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f(i)
			}
		})
	}
	workers.Wait()
}
