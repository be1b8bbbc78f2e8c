package sandbox

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// errFull is the error of a call that finds the queue full.
var errFull = errors.New("the queue is full")

// A gate lets a bounded number of calls in at a time, and a bounded number wait in the order of their coming.
type gate struct {
	mu      sync.Mutex
	free    int // places inside
	queue   int // places to wait
	waiting list.List
}

// try takes a place inside if one is free and nobody waits for it.
func (g *gate) try() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free == 0 {
		return false
	}
	g.free--
	return true
}

// enter takes a place inside, which leave gives back. It waits until ctx is done at most; it fails with errFull or
// with the cause of ctx, and holds no place then.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	if g.waiting.Len() >= g.queue {
		g.mu.Unlock()
		return errFull
	}
	turn := make(chan struct{})
	place := g.waiting.PushBack(turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	select {
	case <-turn: // the place came at the same moment: pass it on
		g.pass()
	default:
		g.waiting.Remove(place)
	}
	g.mu.Unlock()
	return context.Cause(ctx)
}

// leave gives a place back, to the call that has waited longest.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

// pass hands a place on. g.mu is held.
func (g *gate) pass() {
	first := g.waiting.Front()
	if first == nil {
		g.free++
		return
	}
	close(g.waiting.Remove(first).(chan struct{}))
}
