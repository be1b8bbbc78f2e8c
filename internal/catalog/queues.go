package catalog

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A job does its part on a goroutine of its own, and returns the rest for the reconciler's goroutine.
type job func(ctx context.Context) (rest func())

// A queue holds jobs of one kind, and runs some at a time, the cheap ones first. The reconciler's goroutine owns it.
type queue struct {
	limit   int   // how many run at a time at most
	room    int64 // the total weight that may run; 0: any
	running int
	used    int64  // what they weigh
	tasks   []task // sorted up to the last sort, the first one last
	sorted  bool
}

// A task is a job in a queue.
type task struct {
	cost   int64
	turn   int // of equal cost, the first to come runs first
	weight int64
	job    job
}

func (l *queue) add(t task) {
	l.tasks = append(l.tasks, t)
	l.sorted = false
}

// start starts as many jobs as may run. Each sends its rest to do, which must be received from until running is 0.
func (l *queue) start(ctx context.Context, do chan<- func()) {
	if !l.sorted {
		slices.SortFunc(l.tasks, func(a, b task) int { return cmp.Or(cmp.Compare(b.cost, a.cost), b.turn-a.turn) })
		l.sorted = true
	}
	for l.running < l.limit && len(l.tasks) > 0 {
		last := len(l.tasks) - 1
		j, weight := l.tasks[last].job, l.tasks[last].weight
		if l.running > 0 && l.room > 0 && l.used+weight > l.room {
			return // the running ones end, and no other is cheaper
		}
		l.tasks[last] = task{}
		l.tasks = l.tasks[:last]
		l.running++
		l.used += weight
		go func() {
			rest := j(ctx)
			do <- func() {
				l.running--
				l.used -= weight
				rest()
			}
		}()
	}
}

// queues hold the jobs that run beside the reconciler's goroutine, which owns them. In no queue does a small file wait for a
// large one that has begun.
type queues struct {
	turn      int
	lists     queue // of the source
	reads     queue // of small files
	longReads queue // of large ones
	stalled   queue // of small ones that take long
	// waits are compilations of modules that are not served yet. They only wait for the engine, which has its own order.
	waits queue
	// describes run modules for a moment. A module that needs longer goes to longDescribes.
	describes     queue
	longDescribes queue
	// compiles are compilations of modules that are served already. Nobody waits for them: a call has the engine compile its
	// module at once.
	compiles queue
}

// largeFile is the size in bytes of a file that takes milliseconds to read.
const largeFile = 1 << 20

// What loading files may take of the memory of all tools, as parts of it: large files in sum, and each of the small ones that are loaded at a
// time in sum.
const (
	largeLoads = 3.0 / 8
	smallLoads = 1.0 / 8
)

// newQueues returns the queues for a number of processors, and for that many bytes of memory of all tools.
func newQueues(processors int, memory int64) queues {
	return queues{
		lists:         queue{limit: 1},
		reads:         queue{limit: max(2, processors)},
		longReads:     queue{limit: max(2, processors/2), room: max(1, int64(largeLoads*float64(memory)))}, // each holds a file in memory, and what is made of it
		stalled:       queue{limit: math.MaxInt},
		waits:         queue{limit: math.MaxInt},
		describes:     queue{limit: max(2, processors)},
		longDescribes: queue{limit: max(2, processors/2)}, // these may take a processor each; the rest is left to calls
	}
}

func (q *queues) all() []*queue {
	return []*queue{&q.lists, &q.reads, &q.longReads, &q.stalled, &q.waits, &q.describes, &q.longDescribes, &q.compiles}
}

// add adds a job for a file of a size to a queue.
func (q *queues) add(l *queue, size int64, j job) {
	q.turn++
	l.add(task{cost: size, turn: q.turn, job: j})
}

// read adds the job of reading a file of a size, which takes that many bytes of memory meanwhile. It is one of a large file where it takes more
// than each of the small ones may.
func (q *queues) read(size, weight int64, j job) {
	if size < largeFile && weight <= q.smallRoom() {
		q.add(&q.reads, size, j)
		return
	}
	q.turn++
	q.longReads.add(task{size, q.turn, weight, j})
}

// smallRoom returns how many bytes of memory loading a small file may take.
func (q *queues) smallRoom() int64 {
	return max(1, int64(float64(q.longReads.room)/largeLoads*smallLoads)/int64(q.reads.limit))
}

// reading reports whether small files are still to be read.
func (q *queues) reading() bool { return q.reads.running > 0 || len(q.reads.tasks) > 0 }

// compiling reports whether modules are compiled, or are to be.
func (q *queues) compiling() bool {
	return q.waits.running > 0 || len(q.waits.tasks) > 0 || q.compiles.running > 0 || len(q.compiles.tasks) > 0
}

func (q *queues) start(ctx context.Context, do chan<- func()) {
	// Files that are not served yet come first, and so does a new version of one that is.
	switch {
	case q.reading():
		q.compiles.limit = 0
	case q.waits.running > 0:
		q.compiles.limit = 2
	default:
		q.compiles.limit = 64 // enough for the engine to choose from
	}
	for _, l := range q.all() {
		l.start(ctx, do)
	}
}

// running returns how many jobs run.
func (q *queues) running() (n int) {
	for _, l := range q.all() {
		n += l.running
	}
	return n
}
