// Package turns hands out a bounded number of places. Keys wait for them in turn, so that a key with many requests does not keep others waiting.
package turns

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Places are safe for concurrent use.
type Places[K comparable] struct {
	waiters atomic.Int64
	mu      sync.Mutex
	free    int                   // 0 while anybody waits
	waiting map[K][]chan struct{} // closed when there is a place
	turns   []K                   // the keys of waiting
}

// New returns n places.
func New[K comparable](n int) *Places[K] {
	return &Places[K]{free: n, waiting: map[K][]chan struct{}{}}
}

// Try takes a place, which Leave gives back, if one is free.
func (p *Places[K]) Try() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return false
	}
	p.free--
	return true
}

// Enter takes a place, which Leave gives back, for a key, and waits for it until ctx is done. Then it takes none, and returns the cause.
func (p *Places[K]) Enter(ctx context.Context, key K) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(p.waiting[key]) == 0 {
		p.turns = append(p.turns, key)
	}
	p.waiting[key] = append(p.waiting[key], turn)
	p.waiters.Add(1)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !p.withdraw(key, turn) {
		p.Leave() // the place came at the same moment
	}
	return context.Cause(ctx)
}

// Leave passes a place on, or makes it free.
func (p *Places[K]) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.turns) == 0 {
		p.free++
		return
	}
	key := p.turns[0]
	p.turns = p.turns[1:]
	first, rest := p.waiting[key][0], p.waiting[key][1:]
	if len(rest) == 0 {
		delete(p.waiting, key)
	} else {
		p.waiting[key] = rest
		p.turns = append(p.turns, key)
	}
	p.waiters.Add(-1)
	close(first)
}

// Waiting returns how many wait for a place. It takes no lock.
func (p *Places[K]) Waiting() int { return int(p.waiters.Load()) }

// Free returns how many places nobody has.
func (p *Places[K]) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}

// withdraw ends a wait, and reports false if it already has its place.
func (p *Places[K]) withdraw(key K, turn chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting[key], turn)
	if i < 0 {
		return false
	}
	p.waiters.Add(-1)
	if p.waiting[key] = slices.Delete(p.waiting[key], i, i+1); len(p.waiting[key]) == 0 {
		delete(p.waiting, key)
		p.turns = slices.DeleteFunc(p.turns, func(k K) bool { return k == key })
	}
	return true
}
