package sandbox

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// errFull is the error where the queue is full.
var errFull = errors.New("the queue is full")

// A gate lets a bounded number of calls in at a time. A bounded number of others wait, in the order in which they came.
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

// enter takes a place inside, which leave gives back. It waits until ctx is done at most. Its error is errFull or the cause of ctx;
// it has no place then.
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
	case <-turn: // the place came at the same moment, and is passed on
		g.pass()
	default:
		g.waiting.Remove(place)
	}
	g.mu.Unlock()
	return context.Cause(ctx)
}

// leave gives a place to the call that has waited longest, or makes it free.
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
