package catalog

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A job runs on its own goroutine. It returns the rest of its work for the reconciler's goroutine.
type job func(ctx context.Context) (rest func())

// A queue holds jobs of one kind, and runs some at a time. The sources take turns. Within a source, jobs of folders that have been late less often
// come first, and then the cheap ones. The reconciler's goroutine owns the queue.
type queue struct {
	limit   int   // how many jobs run at a time at most, for one source and for all sources that are not slow
	room    int64 // how much the running jobs may weigh together; 0 means that there is no bound
	running int
	used    int64 // how much the running jobs weigh
	lanes   []*lane
	started int // how many jobs have been started
}

// A lane has the jobs of one source in a queue.
type lane struct {
	from    *feed
	running int
	stalled int    // how many of the running jobs take long and no longer take up a place
	last    int    // the number of the lane's last job among those that the queue has started
	tasks   []task // sorted, the next one last
	sorted  bool
}

// A folder is a top-level folder of a source, with all that is below it. Usually all of it belongs to one author.
type folder struct {
	late int // how many of its files have taken long
}

// A task is a job in a queue.
type task struct {
	of     *folder // nil: none
	cost   int64
	turn   int // jobs of equal cost run in the order of their turns
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

// stall notes that a running job of a source takes long. It no longer keeps jobs of other sources from running. The function that stall returns ends
// that.
func (l *queue) stall(from *feed) (end func()) {
	lane := l.lane(from)
	lane.stalled++
	return func() { lane.stalled-- }
}

// next returns the lane whose turn it is, or nil. It is the lane with the fewest running jobs. A slow source has one place of its own, apart from
// those that the others share.
func (l *queue) next() (next *lane) {
	shared := 0 // shared places that are taken
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
			continue // the running jobs must end first
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

// start starts as many jobs as may run. Each sends the rest of its work to do. The caller must receive from do until running is 0.
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

// queues hold the jobs that run concurrently with the reconciler's goroutine, which owns the queues. In no queue does a small file wait for a large
// one that has begun.
type queues struct {
	turn      int
	lists     queue // listings of the sources
	reads     queue // reads of small files
	longReads queue // reads of large files
	stalled   queue // reads of small files that take long
	// waits are compilations of modules that are not served yet. These jobs only wait for the engine, which decides their order.
	waits queue
	// describes are short runs of modules that describe themselves. A module that needs longer goes to longDescribes.
	describes     queue
	longDescribes queue
	// compiles are compilations of modules that are served already. Nobody waits for them: for a call, the engine compiles the module at once.
	compiles queue
}

// largeFile is the size in bytes of a file that takes milliseconds to read.
const largeFile = 1 << 20

// Loading files may take these fractions of the memory of all tools: one for all large files together, and one for all small files together
// that are loaded at the same time.
const (
	largeLoads = 3.0 / 8
	smallLoads = 1.0 / 8
)

// newQueues returns the queues for a number of processors and a number of bytes of memory of all tools.
func newQueues(processors int, memory int64) queues {
	return queues{
		lists:         queue{limit: 1},
		reads:         queue{limit: max(2, processors)},
		longReads:     queue{limit: max(2, processors/2), room: max(1, int64(largeLoads*float64(memory)))}, // each job holds a file in memory, and what is made of it
		stalled:       queue{limit: math.MaxInt},
		waits:         queue{limit: math.MaxInt},
		describes:     queue{limit: max(2, processors)},
		longDescribes: queue{limit: max(2, processors/2)}, // each job may take a processor; the rest is left to calls
	}
}

func (q *queues) all() []*queue {
	return []*queue{&q.lists, &q.reads, &q.longReads, &q.stalled, &q.waits, &q.describes, &q.longDescribes, &q.compiles}
}

// add adds a job to a queue, for a file of a given size in a folder of a source.
func (q *queues) add(l *queue, from *feed, of *folder, size int64, j job) {
	q.turn++
	l.add(from, task{of: of, cost: size, turn: q.turn, job: j})
}

// late notes that a file of a folder has taken long. The folder's other files then come after those of folders that have been late less often. So
// nobody can hold up everybody else with many files that each take a moment.
func (q *queues) late(of *folder) {
	of.late++
	for _, l := range q.all() {
		for _, lane := range l.lanes {
			lane.sorted = false
		}
	}
}

// read adds a job that reads a file of a given size and takes some memory meanwhile. The file counts as large if it takes more memory than a small
// file may.
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

// compiling reports whether modules are being compiled or are queued for it.
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
		q.compiles.limit = 64 // so that the engine has enough to choose from
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
