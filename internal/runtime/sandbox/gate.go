package sandbox

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// errFull is the error where the queue is full.
var errFull = errors.New("the queue is full")

// A gate lets a bounded number of calls in at a time. A bounded number of others wait, in the order in which they came. A call that need
// not wait takes no lock: every call of a tool comes through its gate, on all processors.
type gate struct {
	free    atomic.Int64 // places inside
	waiters atomic.Int64 // calls in waiting; changed under mu
	mu      sync.Mutex
	queue   int // places to wait
	waiting list.List
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

// enter takes a place inside, which leave gives back. It waits until ctx is done at most. Its error is errFull or the cause of ctx;
// it has no place then.
func (g *gate) enter(ctx context.Context) error {
	if g.try() {
		return nil
	}
	g.mu.Lock()
	if g.waiting.Len() >= g.queue {
		g.mu.Unlock()
		return errFull
	}
	turn := make(chan struct{})
	place := g.waiting.PushBack(turn)
	g.waiters.Add(1)
	g.admit() // a call that left before this one was counted has made its place free
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	select {
	case <-turn: // the place came at the same moment, and is passed on
		g.pass()
	default:
		g.remove(place)
	}
	g.mu.Unlock()
	return context.Cause(ctx)
}

// leave gives a place to the call that has waited longest, or makes it free.
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

// admit gives free places to those who wait. g.mu is held.
func (g *gate) admit() {
	for first := g.waiting.Front(); first != nil && g.try(); first = g.waiting.Front() {
		close(g.remove(first))
	}
}

// pass hands a place on. g.mu is held.
func (g *gate) pass() {
	if first := g.waiting.Front(); first != nil {
		close(g.remove(first))
		return
	}
	g.free.Add(1)
}

// remove ends a wait. g.mu is held.
func (g *gate) remove(place *list.Element) (turn chan struct{}) {
	g.waiters.Add(-1)
	return g.waiting.Remove(place).(chan struct{})
}

// newGate returns a gate with that many places inside and in the queue.
func newGate(free, queue int) *gate {
	g := &gate{queue: queue}
	g.free.Store(int64(free))
	return g
}

// state returns how many places are free, and how many calls wait.
func (g *gate) state() (free, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int(g.free.Load()), g.waiting.Len()
}
