// Package turns hands out a bounded number of places. Keys wait for them in turn, so that a key with many requests does not keep others waiting,
// and so do the parties that wait for one key.
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
	free    int // 0 while anybody waits
	waiting rota[K, *rota[string, *line]]
}

// A rota is what takes turns. The first has its turn next.
type rota[K comparable, V any] struct {
	of    map[K]V
	turns []K // the keys of it
}

// A line is the requests of one party for one key, each of which has a channel that is closed when there is a place.
type line struct{ requests []chan struct{} }

// New returns n places.
func New[K comparable](n int) *Places[K] { return &Places[K]{free: n} }

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

// Enter takes a place, which Leave gives back, for a party that wants it for a key, and waits for it until ctx is done. Then it takes none, and returns
// the cause.
func (p *Places[K]) Enter(ctx context.Context, key K, party string) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	parties := p.waiting.get(key, func() *rota[string, *line] { return new(rota[string, *line]) })
	of := parties.get(party, func() *line { return new(line) })
	of.requests = append(of.requests, turn)
	p.waiters.Add(1)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !p.withdraw(key, party, turn) {
		p.Leave() // the place came at the same moment
	}
	return context.Cause(ctx)
}

// Leave passes a place on, or makes it free.
func (p *Places[K]) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting.turns) == 0 {
		p.free++
		return
	}
	key, parties := p.waiting.next()
	party, of := parties.next()
	turn := of.requests[0]
	of.requests = of.requests[1:]
	p.tidy(key, parties, party, of)
	p.waiters.Add(-1)
	close(turn)
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
func (p *Places[K]) withdraw(key K, party string, turn chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	parties, ok := p.waiting.of[key]
	if !ok {
		return false
	}
	of, ok := parties.of[party]
	if !ok {
		return false
	}
	i := slices.Index(of.requests, turn)
	if i < 0 {
		return false
	}
	of.requests = slices.Delete(of.requests, i, i+1)
	p.tidy(key, parties, party, of)
	p.waiters.Add(-1)
	return true
}

// tidy takes out of the turns who waits no longer. p.mu is held.
func (p *Places[K]) tidy(key K, parties *rota[string, *line], party string, of *line) {
	if len(of.requests) == 0 {
		parties.remove(party)
	}
	if len(parties.turns) == 0 {
		p.waiting.remove(key)
	}
}

// get returns what a key has, which is made where there is none, and has its turn last then.
func (r *rota[K, V]) get(key K, produce func() V) V {
	v, ok := r.of[key]
	if !ok {
		if r.of == nil {
			r.of = map[K]V{}
		}
		v = produce()
		r.of[key] = v
		r.turns = append(r.turns, key)
	}
	return v
}

// next returns whose turn it is, who has the last one then.
func (r *rota[K, V]) next() (K, V) {
	key := r.turns[0]
	r.turns = append(r.turns[1:], key)
	return key, r.of[key]
}

func (r *rota[K, V]) remove(key K) {
	delete(r.of, key)
	r.turns = slices.DeleteFunc(r.turns, func(k K) bool { return k == key })
}
