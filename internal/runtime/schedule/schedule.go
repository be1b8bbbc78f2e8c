// Package schedule runs jobs that can't be interrupted, so that cheap ones never wait for costly ones.
//
// Each job comes with a prediction of its cost, which puts it into one of three lanes: jobs that only load finished code, jobs that take a moment,
// and jobs that take longer. Each lane has places of its own. Costly jobs together stay within a number of bytes.
//
// Predictions may be wrong: when a job has taken a second longer than predicted, another begins in its place.
package schedule

import (
	"cmp"
	"container/heap"
	"math/bits"
	"sync"
	"time"
)

// A Job is run once.
type Job struct {
	// Run does the work. If the scheduler is closed first, Cancel is called instead. Neither may panic.
	Run, Cancel func()
	// Order breaks ties between jobs that nobody waits for: lower numbers come first.
	Order uint64
	// Time and Bytes are the job's predicted cost.
	Time  time.Duration
	Bytes int64
	// Load says that the job only loads what was made before.
	Load bool

	// Scheduler.mu guards these.
	turn   time.Time // its turn, if somebody waits for it; zero means nobody does
	queued *lane     // the lane in whose queue it is, with its index there; nil: none
	place  int
	lane   *lane // the lane in which it has a place; nil: it does not run, or takes longer than predicted
}

// before reports whether j comes before another job of its lane. First come jobs that somebody waits for, by turn. Then cheaper ones, if the
// difference is a factor of two, and then Order decides.
func (j *Job) before(other *Job) bool {
	switch urgent := !j.turn.IsZero(); {
	case urgent != !other.turn.IsZero():
		return urgent
	case urgent && !j.turn.Equal(other.turn):
		return j.turn.Before(other.turn)
	}
	return cmp.Or(cmp.Compare(j.class(), other.class()), cmp.Compare(j.Order, other.Order)) < 0
}

// hurry gives a job its turn. The job that has waited longest comes first, but a job that is cheaper by some time counts as having waited that
// much longer. A turn is never put off, so each job's turn comes, however many others come.
func (j *Job) hurry() {
	if j.turn.IsZero() {
		j.turn = time.Now().Add(max(j.Time, cheapTime))
	}
}

func (j *Job) class() int { return bits.Len64(uint64(max(j.Time, cheapTime))) }

const (
	// cheapTime and cheapBytes bound the predicted cost of a cheap job: a call may wait that long without anybody noticing.
	cheapTime  = 100 * time.Millisecond
	cheapBytes = 32 << 20
	// overrun is by how much a job may exceed its prediction before another begins in its place.
	overrun = time.Second
	// maxOverruns is how many such jobs may be replaced at a time. It bounds memory and threads.
	maxOverruns = 2
)

// A lane holds jobs of one kind.
type lane struct {
	bytes    int64  // bound for the bytes of the jobs that run at a time; a larger job runs alone
	queue    []*Job // a heap, as in package container/heap: the job whose turn it is comes first
	compared int    // how often two jobs were compared
	running  int
	taken    int64 // bytes of running jobs, including overdue ones
}

// Len implements heap.Interface.
func (l *lane) Len() int { return len(l.queue) }

// Less implements heap.Interface.
func (l *lane) Less(i, k int) bool {
	l.compared++
	return l.queue[i].before(l.queue[k])
}

// Swap implements heap.Interface.
func (l *lane) Swap(i, k int) {
	q := l.queue
	q[i], q[k] = q[k], q[i]
	q[i].place, q[k].place = i, k
}

// Push implements heap.Interface.
func (l *lane) Push(x any) {
	j := x.(*Job)
	j.place = len(l.queue)
	l.queue = append(l.queue, j)
}

// Pop implements heap.Interface.
func (l *lane) Pop() any {
	last := len(l.queue) - 1
	j := l.queue[last]
	l.queue[last] = nil
	l.queue = l.queue[:last]
	return j
}

// A Scheduler begins jobs when there is room. It is safe for concurrent use.
type Scheduler struct {
	overrun time.Duration

	mu       sync.Mutex
	loads    lane
	cheap    lane
	costly   lane
	most     int // places for loads
	shared   int // places that cheap and costly jobs share
	running  int // of all lanes
	overruns int
	closed   bool
	idle     chan struct{} // closed once the scheduler is closed and nothing runs
}

// New returns a scheduler for a number of processors. The costly jobs that run together may use that many bytes, and so may the loads.
//
// With three processors or more, cheap and costly jobs leave one of them free.
func New(processors int, bytes int64) *Scheduler {
	shared := max(2, processors-1)
	return &Scheduler{
		overrun: overrun,
		most:    max(2, processors),
		shared:  shared,
		loads:   lane{bytes: bytes},
		cheap:   lane{bytes: int64(shared+maxOverruns) * cheapBytes},
		costly:  lane{bytes: bytes},
		idle:    make(chan struct{}),
	}
}

// Add queues a job.
func (s *Scheduler) Add(j *Job) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		j.queued = s.laneOf(j)
		heap.Push(j.queued, j)
		s.begin()
	}
	s.mu.Unlock()
	if closed {
		j.Cancel()
	}
}

// Hurry says that somebody waits for a job, which need not have been added yet.
func (s *Scheduler) Hurry(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.hurry()
	if j.queued != nil {
		heap.Fix(j.queued, j.place)
	}
}

// Close cancels the jobs that have not begun, and does not wait for those that have. It can be called twice.
func (s *Scheduler) Close() {
	var queued []*Job
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, l := range s.lanes() {
			for _, j := range l.queue {
				j.queued = nil
			}
			queued = append(queued, l.queue...)
			l.queue = nil
		}
		if s.running == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	for _, j := range queued {
		j.Cancel()
	}
}

// Idle returns a channel that is closed once the scheduler is closed and no job runs.
func (s *Scheduler) Idle() <-chan struct{} { return s.idle }

// A State says how many jobs there are.
type State struct {
	Queued, Running int
	// Late is how many of the running jobs take longer than predicted, and have been replaced.
	Late int
}

// State returns how many jobs there are.
func (s *Scheduler) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Running: s.running, Late: s.overruns}
	for _, l := range s.lanes() {
		state.Queued += len(l.queue)
	}
	return state
}

func (s *Scheduler) lanes() [3]*lane { return [...]*lane{&s.loads, &s.cheap, &s.costly} }

func (s *Scheduler) laneOf(j *Job) *lane {
	switch {
	case j.Load:
		return &s.loads
	case j.Time <= cheapTime && j.Bytes <= cheapBytes:
		return &s.cheap
	}
	return &s.costly
}

// begin starts jobs as long as there is room. s.mu is held.
func (s *Scheduler) begin() {
	for _, l := range s.lanes() {
		for {
			j := s.next(l)
			if j == nil {
				break
			}
			j.lane = l
			l.running++
			l.taken += j.Bytes
			s.running++
			go s.run(j, l)
		}
	}
}

// next takes the job whose turn it is from the lane's queue. It returns nil if none may begin. s.mu is held.
func (s *Scheduler) next(l *lane) *Job {
	if s.closed || len(l.queue) == 0 || l.running >= s.places(l) {
		return nil
	}
	if l.taken > 0 && l.taken+l.queue[0].Bytes > l.bytes {
		return nil
	}
	j := heap.Pop(l).(*Job)
	j.queued = nil
	return j
}

// places returns how many places a lane has now. Of the shared places, one is reserved for cheap jobs, and one for costly jobs if there are any.
func (s *Scheduler) places(l *lane) int {
	switch l {
	case &s.cheap:
		kept := s.costly.running
		if len(s.costly.queue) > 0 {
			kept = max(kept, 1)
		}
		return s.shared - kept
	case &s.costly:
		return min(s.shared-1, s.shared-s.cheap.running)
	}
	return s.most
}

func (s *Scheduler) run(j *Job, l *lane) {
	timer := time.AfterFunc(j.Time+s.overrun, func() { s.late(j) })
	j.Run()
	timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.lane == nil {
		s.overruns--
	} else {
		j.lane = nil
		l.running--
	}
	l.taken -= j.Bytes
	s.running--
	if s.closed && s.running == 0 {
		close(s.idle)
	}
	s.begin()
}

// late gives the place of a job that takes longer than predicted to another job.
func (s *Scheduler) late(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.lane == nil || s.overruns >= maxOverruns {
		return
	}
	j.lane.running--
	j.lane = nil
	s.overruns++
	s.begin()
}
