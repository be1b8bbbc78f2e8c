package catalog

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A job does its part on a goroutine of its own and returns the rest, for the keeper's.
type job func(ctx context.Context) (rest func())

// A lane is jobs of one kind that wait for one another, the cheap ones first. The keeper's goroutine owns it.
type lane struct {
	most    int // at a time
	running int
	queue   []task // sorted up to the last sort, the first one last
	sorted  bool
}

// A task is a job in a lane.
type task struct {
	cost int64
	turn int // of equal cost, the first to come is the first to go
	job  job
}

func (l *lane) add(cost int64, turn int, j job) {
	l.queue = append(l.queue, task{cost, turn, j})
	l.sorted = false
}

// start begins as many jobs as may run. Each hands its rest to do, which must be served until running is 0.
func (l *lane) start(ctx context.Context, do chan<- func()) {
	if !l.sorted {
		slices.SortFunc(l.queue, func(a, b task) int { return cmp.Or(cmp.Compare(b.cost, a.cost), b.turn-a.turn) })
		l.sorted = true
	}
	for l.running < l.most && len(l.queue) > 0 {
		last := len(l.queue) - 1
		j := l.queue[last].job
		l.queue[last] = task{}
		l.queue = l.queue[:last]
		l.running++
		go func() {
			rest := j(ctx)
			do <- func() {
				l.running--
				rest()
			}
		}()
	}
}

// work is what is to be done beside the keeper's goroutine, which owns it. In no lane does a small file wait for a large
// one that has begun.
type work struct {
	turn      int
	reads     lane // of small files
	longReads lane // of large ones
	// waits only wait for the engine, which has an order of its own, so there is no need for another.
	waits lane
	// describes run modules for a moment. Who needs longer goes to longDescribes.
	describes     lane
	longDescribes lane
	// compiles are of modules that are listed already, which nobody waits for: a call has the engine compile its module at
	// once.
	compiles lane
}

// largeFile is from how many bytes on a file is a large one: reading it takes milliseconds.
const largeFile = 1 << 20

// newWork returns lanes for so many processors.
func newWork(processors int) work {
	return work{
		reads:         lane{most: max(2, processors)},
		longReads:     lane{most: max(2, processors/2)}, // each holds a file, and what is made of it
		waits:         lane{most: math.MaxInt},
		describes:     lane{most: max(2, processors)},
		longDescribes: lane{most: max(2, processors/2)}, // these may take a processor each; the rest is left to calls
		compiles:      lane{most: 64},                   // enough for the engine to choose from
	}
}

func (w *work) lanes() []*lane {
	return []*lane{&w.reads, &w.longReads, &w.waits, &w.describes, &w.longDescribes, &w.compiles}
}

// add gives a lane a job for a file of that size.
func (w *work) add(l *lane, size int64, j job) {
	w.turn++
	l.add(size, w.turn, j)
}

// read gives the lane for a file of that size a job.
func (w *work) read(size int64, j job) {
	l := &w.reads
	if size >= largeFile {
		l = &w.longReads
	}
	w.add(l, size, j)
}

// reading reports whether small files are still to be read.
func (w *work) reading() bool { return w.reads.running > 0 || len(w.reads.queue) > 0 }

func (w *work) start(ctx context.Context, do chan<- func()) {
	for _, l := range w.lanes() {
		if l == &w.compiles && w.reading() {
			continue // what is to be listed comes before what is
		}
		l.start(ctx, do)
	}
}

// running returns the number of jobs at work.
func (w *work) running() (n int) {
	for _, l := range w.lanes() {
		n += l.running
	}
	return n
}
