// Package schedule runs jobs that nothing can interrupt, so that cheap ones never wait for dear ones.
//
// Jobs say beforehand what they will take, and run in lanes by it: what only loads something that was made before, what
// takes a moment, and what takes longer. Each lane has places of its own. Dear jobs together stay within a number of
// bytes.
//
// A prediction may be wrong: a job that takes a second longer than foreseen goes on, while another begins in its place.
package schedule

import (
	"cmp"
	"math/bits"
	"sync"
	"time"
)

// A Job is run once.
type Job struct {
	// Run does the work. Cancel is called instead where the scheduler is closed before. Neither may panic.
	Run, Cancel func()
	// Order breaks ties between jobs that are alike: the lower one comes first.
	Order uint64
	// Time and Bytes are what the job is predicted to take.
	Time  time.Duration
	Bytes int64
	// Load is set where the job only loads what was made before.
	Load bool

	// Scheduler.mu guards these.
	urgent bool
	lane   *lane // it counts there; nil: it doesn't run, or takes longer than foreseen
}

// before tells which job of a lane comes first: what somebody waits for, then the cheaper by a factor of two, then by Order.
func (j *Job) before(other *Job) bool {
	if j.urgent != other.urgent {
		return j.urgent
	}
	return cmp.Or(cmp.Compare(j.class(), other.class()), cmp.Compare(j.Order, other.Order)) < 0
}

func (j *Job) class() int { return bits.Len64(uint64(max(j.Time, cheapTime))) }

const (
	// cheapTime and cheapBytes are the most that a job of the lane for cheap ones is predicted to take: so long a
	// call may wait without anybody's noticing.
	cheapTime  = 100 * time.Millisecond
	cheapBytes = 32 << 20
	// overrun is by how much a job may exceed its prediction before another begins in its place.
	overrun = time.Second
	// maxOverruns is for how many such jobs others begin. It bounds memory and threads.
	maxOverruns = 2
)

// A lane holds jobs that are alike.
type lane struct {
	bytes   int64 // of jobs that run together; one runs even if it is larger
	queue   []*Job
	running int
	taken   int64 // bytes of those that run, or have overrun
}

// A Scheduler begins jobs as there is room. It is safe for concurrent use.
type Scheduler struct {
	overrun time.Duration

	mu       sync.Mutex
	loads    lane
	cheap    lane
	dear     lane
	most     int // places of loads
	shared   int // places of cheap and dear jobs together
	running  int // of all lanes
	overruns int
	closed   bool
	idle     chan struct{} // closed when closed and nothing runs
}

// New returns a scheduler for so many processors. bytes bounds what dear jobs take together, and what loads take.
//
// Where there are three processors or more, cheap and dear jobs leave one of them to others.
func New(processors int, bytes int64) *Scheduler {
	shared := max(2, processors-1)
	return &Scheduler{
		overrun: overrun,
		most:    max(2, processors),
		shared:  shared,
		loads:   lane{bytes: bytes},
		cheap:   lane{bytes: int64(shared+maxOverruns) * cheapBytes},
		dear:    lane{bytes: bytes},
		idle:    make(chan struct{}),
	}
}

// Add queues a job.
func (s *Scheduler) Add(j *Job) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		l := s.laneOf(j)
		l.queue = append(l.queue, j)
		s.begin()
	}
	s.mu.Unlock()
	if closed {
		j.Cancel()
	}
}

// Hurry makes a job one that somebody waits for, before or after it was added.
func (s *Scheduler) Hurry(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.urgent = true
}

// Close cancels what was not begun, and does not wait for what was. Closing twice is fine.
func (s *Scheduler) Close() {
	var queued []*Job
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, l := range s.lanes() {
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

// Idle is closed when the scheduler is closed and no job runs.
func (s *Scheduler) Idle() <-chan struct{} { return s.idle }

// A State is how many jobs there are.
type State struct {
	Queued, Running int
	// Late is how many of those that run take longer than was foreseen.
	Late int
}

// State tells how many jobs there are.
func (s *Scheduler) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Running: s.running, Late: s.overruns}
	for _, l := range s.lanes() {
		state.Queued += len(l.queue)
	}
	return state
}

func (s *Scheduler) lanes() [3]*lane { return [...]*lane{&s.loads, &s.cheap, &s.dear} }

func (s *Scheduler) laneOf(j *Job) *lane {
	switch {
	case j.Load:
		return &s.loads
	case j.Time <= cheapTime && j.Bytes <= cheapBytes:
		return &s.cheap
	}
	return &s.dear
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

// next takes the job whose turn it is from the lane's queue; nil: none may begin. s.mu is held.
func (s *Scheduler) next(l *lane) *Job {
	if s.closed || len(l.queue) == 0 || l.running >= s.places(l) {
		return nil
	}
	first := 0
	for i, j := range l.queue {
		if j.before(l.queue[first]) {
			first = i
		}
	}
	j := l.queue[first]
	if l.taken > 0 && l.taken+j.Bytes > l.bytes {
		return nil
	}
	last := len(l.queue) - 1
	l.queue[first], l.queue[last] = l.queue[last], nil
	l.queue = l.queue[:last]
	return j
}

// places returns how many places a lane has now: one of those for cheap and dear jobs is kept for each kind that there is.
func (s *Scheduler) places(l *lane) int {
	switch l {
	case &s.cheap:
		kept := s.dear.running
		if len(s.dear.queue) > 0 {
			kept = max(kept, 1)
		}
		return s.shared - kept
	case &s.dear:
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

// late gives the place of a job that takes longer than was foreseen to another.
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
