// Package turns hands out a bounded number of places, first to the parties that have the fewest, so that a party with many requests does not keep
// others waiting. The same holds for the keys that one party wants places for. Parties or keys with equally many places take turns.
package turns

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Places is a bounded number of places. It is safe for concurrent use.
type Places[P, K comparable] struct {
	waiters atomic.Int64
	mu      sync.Mutex
	most    int
	taken   []want[P, K] // full while anybody waits
	parties rota[P, *rota[K, line]]
}

// A want is the party that wants a place, and the key that it wants it for.
type want[P, K comparable] struct {
	party P
	key   K
}

// A rota has the members that wait, and their order.
type rota[K comparable, V any] struct {
	of    map[K]*member[K, V]
	turns []*member[K, V] // the same members in the order of their turns
}

// A member waits for places, and may have some already.
type member[K comparable, V any] struct {
	key  K
	held int
	of   V
}

// A line has the requests with the same want: each is a channel that is closed when it gets a place.
type line []chan struct{}

// New returns n places.
func New[P, K comparable](n int) *Places[P, K] {
	return &Places[P, K]{most: n, taken: make([]want[P, K], 0, n)}
}

// Try takes a place for a party and a key, if one is free. Leave gives it back.
func (p *Places[P, K]) Try(party P, key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.taken) == p.most {
		return false
	}
	p.take(want[P, K]{party, key})
	return true
}

// Enter takes a place as Try does, but waits for one. If ctx is done first, it takes none and returns the cause.
func (p *Places[P, K]) Enter(ctx context.Context, party P, key K) error {
	p.mu.Lock()
	if len(p.taken) < p.most {
		p.take(want[P, K]{party, key})
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	waiting := p.parties.of[party]
	if waiting == nil {
		waiting = p.parties.add(party, p.held(party), new(rota[K, line]))
	}
	of := waiting.of.of[key]
	if of == nil {
		of = waiting.of.add(key, p.heldFor(party, key), nil)
	}
	of.of = append(of.of, turn)
	p.waiters.Add(1)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !p.withdraw(party, key, turn) {
		p.Leave(party, key) // the request got a place at the same moment
	}
	return context.Cause(ctx)
}

// Leave gives back a place that was taken for a party and a key. If anybody waits, the next one gets it.
func (p *Places[P, K]) Leave(party P, key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(want[P, K]{party, key})
	if len(p.parties.turns) > 0 {
		p.admit(p.next())
	}
}

// Pass gives back a place as Leave does, but only if somebody waits and would get a place before another request for the same party and key.
// Otherwise it returns false, and the place is still taken.
func (p *Places[P, K]) Pass(party P, key K) bool {
	if p.Waiting() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.parties.turns) == 0 {
		return false
	}
	own := want[P, K]{party, key}
	p.release(own)
	next, nextKey := p.next()
	if party != next.key && p.held(party) < next.held || party == next.key && p.heldFor(party, key) < nextKey.held {
		p.take(own)
		return false
	}
	p.admit(next, nextKey)
	return true
}

// Waiting returns how many requests wait for a place. It takes no lock.
func (p *Places[P, K]) Waiting() int { return int(p.waiters.Load()) }

// Free returns how many places are free.
func (p *Places[P, K]) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most - len(p.taken)
}

// take takes a place that is free. p.mu is held.
func (p *Places[P, K]) take(of want[P, K]) {
	p.taken = append(p.taken, of)
	p.tell(of, 1)
}

// release makes a place free. p.mu is held.
func (p *Places[P, K]) release(of want[P, K]) {
	i := slices.Index(p.taken, of)
	last := len(p.taken) - 1
	p.taken[i] = p.taken[last]
	p.taken[last] = want[P, K]{}
	p.taken = p.taken[:last]
	p.tell(of, -1)
}

// tell updates the waiting members of a party and a key after they got n more places. p.mu is held.
func (p *Places[P, K]) tell(of want[P, K], n int) {
	if m := p.parties.of[of.party]; m != nil {
		m.held += n
		if k := m.of.of[of.key]; k != nil {
			k.held += n
		}
	}
}

// held returns how many places a party has. p.mu is held.
func (p *Places[P, K]) held(party P) (n int) {
	for i := range p.taken {
		if p.taken[i].party == party {
			n++
		}
	}
	return n
}

// heldFor returns how many places a party has for a key. p.mu is held.
func (p *Places[P, K]) heldFor(party P, key K) (n int) {
	for i := range p.taken {
		if p.taken[i] == (want[P, K]{party, key}) {
			n++
		}
	}
	return n
}

// next returns whose turn it is. Somebody must be waiting. p.mu is held.
func (p *Places[P, K]) next() (*member[P, *rota[K, line]], *member[K, line]) {
	party := p.parties.next()
	return party, party.of.next()
}

// admit gives a free place to the first request that waits for this key of this party. The caller holds p.mu.
func (p *Places[P, K]) admit(party *member[P, *rota[K, line]], of *member[K, line]) {
	turn := of.of[0]
	of.of = of.of[1:]
	p.parties.toBack(party)
	party.of.toBack(of)
	p.take(want[P, K]{party.key, of.key})
	p.tidy(party, of)
	p.waiters.Add(-1)
	close(turn)
}

// withdraw ends a wait. It returns false if the request already has its place.
func (p *Places[P, K]) withdraw(party P, key K, turn chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.parties.of[party]
	if m == nil {
		return false
	}
	of := m.of.of[key]
	if of == nil {
		return false
	}
	i := slices.Index(of.of, turn)
	if i < 0 {
		return false
	}
	of.of = slices.Delete(of.of, i, i+1)
	p.tidy(m, of)
	p.waiters.Add(-1)
	return true
}

// tidy removes members that no longer wait. p.mu is held.
func (p *Places[P, K]) tidy(party *member[P, *rota[K, line]], of *member[K, line]) {
	if len(of.of) == 0 {
		party.of.remove(of)
	}
	if len(party.of.turns) == 0 {
		p.parties.remove(party)
	}
}

// add adds a member, whose turn comes last.
func (r *rota[K, V]) add(key K, held int, of V) *member[K, V] {
	if r.of == nil {
		r.of = map[K]*member[K, V]{}
	}
	m := &member[K, V]{key, held, of}
	r.of[key] = m
	r.turns = append(r.turns, m)
	return m
}

// next returns the waiting member with the fewest places, and of several the one whose turn has been due longest. It looks at few members, since at
// most as many have a place as there are places.
func (r *rota[K, V]) next() *member[K, V] {
	next := r.turns[0]
	for _, m := range r.turns[1:] {
		if next.held == 0 {
			break
		}
		if m.held < next.held {
			next = m
		}
	}
	return next
}

// toBack gives a member the last turn.
func (r *rota[K, V]) toBack(m *member[K, V]) {
	i := slices.Index(r.turns, m)
	r.turns = append(slices.Delete(r.turns, i, i+1), m)
}

func (r *rota[K, V]) remove(m *member[K, V]) {
	delete(r.of, m.key)
	i := slices.Index(r.turns, m)
	r.turns = slices.Delete(r.turns, i, i+1)
}
