package sandbox

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// errFull is returned if the queue is full.
var errFull = errors.New("the queue is full")

// A gate lets a bounded number of calls in at a time. A bounded number of others wait, each in the line of its party, in the order in which they
// came. The lines take turns, so a party with many calls delays only its own. If the queue is full, a party with fewer waiting calls takes the
// place of the last call in the longest line. A call that need not wait takes no lock, since every call of a tool passes through its gate, on
// all processors.
type gate struct {
	free    atomic.Int64 // places inside
	waiters atomic.Int64 // waiting calls; changed under mu
	mu      sync.Mutex
	queue   int              // places to wait
	lines   map[string]*line // lines that have a call, by their party
	turns   list.List        // the same lines, in the order of their turns
	ranks   []*list.List     // the same lines, by how many calls they have
}

// A line is the waiting calls of one party.
type line struct {
	party      string
	calls      list.List     // of *waiter
	turn, rank *list.Element // the line's elements in the gate's turns and ranks
	ranked     int           // the index of its rank in ranks
}

// A waiter is a call that waits.
type waiter struct {
	line   *line
	place  *list.Element // in the line
	turn   chan struct{} // closed when the wait is over
	pushed bool          // another call has taken its place in the queue
}

// try takes a place inside if one is free.
func (g *gate) try() bool {
	for {
		free := g.free.Load()
		if free <= 0 {
			return false
		}
		if g.free.CompareAndSwap(free, free-1) {
			return true
		}
	}
}

// enter takes a place inside for a party, which leave gives back. It waits until ctx is done at the latest. If it returns an error, which is
// errFull or the cause of ctx, it has taken no place.
func (g *gate) enter(ctx context.Context, party string) error {
	if g.try() {
		return nil
	}
	g.mu.Lock()
	if int(g.waiters.Load()) >= g.queue && !g.push(party) {
		g.mu.Unlock()
		return errFull
	}
	w := g.add(party)
	g.admit() // a call may have freed its place before this one was counted
	g.mu.Unlock()
	select {
	case <-w.turn:
		return w.outcome()
	case <-ctx.Done():
	}
	g.mu.Lock()
	select {
	case <-w.turn:
		if !w.pushed { // the place came at the same moment, and is passed on
			g.pass()
		}
	default:
		g.remove(w)
	}
	g.mu.Unlock()
	return context.Cause(ctx)
}

// outcome returns nil, or the reason why the wait failed. The wait must be over.
func (w *waiter) outcome() error {
	if w.pushed {
		return errFull
	}
	return nil
}

// leave gives the place to the call whose turn it is, or frees it.
func (g *gate) leave() {
	if g.waiters.Load() == 0 {
		g.free.Add(1)
		if g.waiters.Load() == 0 {
			return
		}
		g.mu.Lock()
		g.admit()
		g.mu.Unlock()
		return
	}
	g.mu.Lock()
	g.pass()
	g.mu.Unlock()
}

// admit gives free places to waiting calls. g.mu is held.
func (g *gate) admit() {
	for g.turns.Len() > 0 && g.try() {
		g.next()
	}
}

// pass hands a place on, or frees it. g.mu is held.
func (g *gate) pass() {
	if g.turns.Len() > 0 {
		g.next()
		return
	}
	g.free.Add(1)
}

// next ends the wait of the call whose turn it is. g.mu is held.
func (g *gate) next() {
	of := g.turns.Front().Value.(*line)
	w := of.calls.Front().Value.(*waiter)
	g.turns.MoveToBack(of.turn)
	g.remove(w)
	close(w.turn)
}

// push makes room in the queue for a call of a party, if another party has at least two more calls there. g.mu is held.
func (g *gate) push(party string) bool {
	most, own := len(g.ranks)-1, 0
	if of := g.lines[party]; of != nil {
		own = of.calls.Len()
	}
	if most < own+2 {
		return false
	}
	longest := g.ranks[most].Front().Value.(*line)
	w := longest.calls.Back().Value.(*waiter)
	w.pushed = true
	g.remove(w)
	close(w.turn)
	return true
}

// add adds a waiting call. g.mu is held.
func (g *gate) add(party string) *waiter {
	of := g.lines[party]
	if of == nil {
		if g.lines == nil {
			g.lines = map[string]*line{}
		}
		of = &line{party: party}
		of.turn = g.turns.PushBack(of)
		g.lines[party] = of
	}
	w := &waiter{line: of, turn: make(chan struct{})}
	w.place = of.calls.PushBack(w)
	g.waiters.Add(1)
	g.rank(of)
	return w
}

// remove ends a wait. g.mu is held.
func (g *gate) remove(w *waiter) {
	of := w.line
	of.calls.Remove(w.place)
	g.waiters.Add(-1)
	g.rank(of)
	if of.calls.Len() == 0 {
		g.turns.Remove(of.turn)
		delete(g.lines, of.party)
	}
}

// rank moves a line to the rank for its number of calls. The last rank is never empty, so that the longest line is found at once. g.mu is held.
func (g *gate) rank(of *line) {
	if of.ranked > 0 {
		g.ranks[of.ranked].Remove(of.rank)
	}
	of.ranked = of.calls.Len()
	for len(g.ranks) <= of.ranked {
		g.ranks = append(g.ranks, list.New())
	}
	if of.ranked > 0 {
		of.rank = g.ranks[of.ranked].PushBack(of)
	}
	for len(g.ranks) > 0 && g.ranks[len(g.ranks)-1].Len() == 0 {
		g.ranks = g.ranks[:len(g.ranks)-1]
	}
}

// newGate returns a gate with free places inside, and queue places to wait.
func newGate(free, queue int) *gate {
	g := &gate{queue: queue}
	g.free.Store(int64(free))
	return g
}

// state returns how many places are free, and how many calls wait.
func (g *gate) state() (free, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int(g.free.Load()), int(g.waiters.Load())
}
