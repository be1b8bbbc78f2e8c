package catalog

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A job does its part on a goroutine of its own, and returns the rest for the reconciler's goroutine.
type job func(ctx context.Context) (rest func())

// A queue holds jobs of one kind, and runs some at a time: in turn those of each source, and of one source the cheap ones first, after those of
// folders that have taken less long. The reconciler's goroutine owns it.
type queue struct {
	limit   int   // how many run at a time at most, of one source and of all that are not slow
	room    int64 // the total weight that may run; 0 means any
	running int
	used    int64 // what they weigh
	lanes   []*lane
	started int // how many jobs have been
}

// A lane has the jobs of one source in a queue.
type lane struct {
	from    *feed
	running int
	stalled int    // how many of them take long, and keep no others from running
	last    int    // which of the queue's jobs its last one was
	tasks   []task // sorted up to the last sort, the first one last
	sorted  bool
}

// A folder is one at the top of a source, with all below it: most often an author's.
type folder struct {
	late int // how many of its files have taken long
}

// A task is a job in a queue.
type task struct {
	of     *folder // nil: none
	cost   int64
	turn   int // of equal cost, the first to come runs first
	weight int64
	job    job
}

// waiting returns how many jobs have not begun.
func (l *queue) waiting() (n int) {
	for _, lane := range l.lanes {
		n += len(lane.tasks)
	}
	return n
}

// lane returns the jobs of a source.
func (l *queue) lane(from *feed) *lane {
	for _, lane := range l.lanes {
		if lane.from == from {
			return lane
		}
	}
	l.lanes = append(l.lanes, &lane{from: from})
	return l.lanes[len(l.lanes)-1]
}

func (l *queue) add(from *feed, t task) {
	lane := l.lane(from)
	lane.tasks = append(lane.tasks, t)
	lane.sorted = false
}

// stall notes that a running job of a source takes long. It keeps no job of another source from running any longer. The result ends that.
func (l *queue) stall(from *feed) (end func()) {
	lane := l.lane(from)
	lane.stalled++
	return func() { lane.stalled-- }
}

// next returns the lane whose turn it is, or nil: that of the source with the fewest running jobs. A slow source has one place of its own, beside
// those that the others share.
func (l *queue) next() (next *lane) {
	shared := 0 // places that are taken
	for _, one := range l.lanes {
		if !one.from.isSlow() {
			shared += one.running - one.stalled
		}
	}
	for _, one := range l.lanes {
		free := shared < l.limit
		if one.from.isSlow() {
			free = one.running == one.stalled
		}
		if len(one.tasks) == 0 || !free || one.running >= l.limit {
			continue
		}
		one.sort()
		if l.running > 0 && l.room > 0 && l.used+one.tasks[len(one.tasks)-1].weight > l.room {
			continue // the running ones end
		}
		if next == nil || cmp.Or(cmp.Compare(one.running, next.running), cmp.Compare(one.last, next.last)) < 0 {
			next = one
		}
	}
	return next
}

func (t *task) late() int {
	if t.of == nil {
		return 0
	}
	return t.of.late
}

func (l *lane) sort() {
	if !l.sorted {
		slices.SortFunc(l.tasks, func(a, b task) int {
			return cmp.Or(b.late()-a.late(), cmp.Compare(b.cost, a.cost), b.turn-a.turn)
		})
		l.sorted = true
	}
}

// start starts as many jobs as may run. Each sends its rest to do, which must be received from until running is 0.
func (l *queue) start(ctx context.Context, do chan<- func()) {
	for lane := l.next(); lane != nil; lane = l.next() {
		last := len(lane.tasks) - 1
		j, weight := lane.tasks[last].job, lane.tasks[last].weight
		lane.tasks[last] = task{}
		lane.tasks = lane.tasks[:last]
		l.running++
		l.used += weight
		l.started++
		lane.running, lane.last = lane.running+1, l.started
		go func() {
			rest := j(ctx)
			do <- func() {
				l.running--
				lane.running--
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

// add adds a job for a file of a size, in a folder of a source, to a queue.
func (q *queues) add(l *queue, from *feed, of *folder, size int64, j job) {
	q.turn++
	l.add(from, task{of: of, cost: size, turn: q.turn, job: j})
}

// late notes that a file of a folder has taken long. The others in it wait for those of folders of which fewer have: so nobody can hold up all
// others with many files that each take a moment.
func (q *queues) late(of *folder) {
	of.late++
	for _, l := range q.all() {
		for _, lane := range l.lanes {
			lane.sorted = false
		}
	}
}

// read adds the job of reading a file of a size, which takes that many bytes of memory meanwhile. It is one of a large file where it takes more
// than each of the small ones may.
func (q *queues) read(from *feed, of *folder, size, weight int64, j job) {
	if size < largeFile && weight <= q.smallRoom() {
		q.add(&q.reads, from, of, size, j)
		return
	}
	q.turn++
	q.longReads.add(from, task{of, size, q.turn, weight, j})
}

// smallRoom returns how many bytes of memory loading a small file may take.
func (q *queues) smallRoom() int64 {
	return max(1, int64(float64(q.longReads.room)/largeLoads*smallLoads)/int64(q.reads.limit))
}

// reading reports whether small files are still to be read.
func (q *queues) reading() bool { return q.reads.running > 0 || q.reads.waiting() > 0 }

// compiling reports whether modules are compiled, or are to be.
func (q *queues) compiling() bool {
	return q.waits.running > 0 || q.waits.waiting() > 0 || q.compiles.running > 0 || q.compiles.waiting() > 0
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
