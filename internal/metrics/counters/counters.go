// Package counters has a map of counters with a bounded number of keys.
package counters

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
)

// A Map has a V for each K, up to a number of keys. All further keys share one more V. Finding a V takes no lock and no allocation. A Map is safe for
// concurrent use, as far as V is.
type Map[K comparable, V any] struct {
	most int
	rest K
	has  atomic.Pointer[map[K]*counter[K, V]]
	last atomic.Pointer[counter[K, V]] // the counter that was found last: it is usually wanted again, and comparing keys is faster than hashing them
	mu   sync.Mutex                    // held while a key is added
}

// A counter is a V with its key.
type counter[K comparable, V any] struct {
	key   K
	value V
}

// New returns a map for that many keys. All further keys are counted as rest.
func New[K comparable, V any](most int, rest K) *Map[K, V] {
	m := &Map[K, V]{most: most, rest: rest}
	m.has.Store(&map[K]*counter[K, V]{})
	return m
}

// Of returns the value of a key, which is zero at first.
func (m *Map[K, V]) Of(key K) *V {
	if c := m.last.Load(); c != nil && c.key == key {
		return &c.value
	}
	c, ok := (*m.has.Load())[key]
	if !ok {
		c = m.add(key)
	}
	m.last.Store(c)
	return &c.value
}

func (m *Map[K, V]) add(key K) *counter[K, V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := *m.has.Load()
	if len(before) >= m.most {
		key = m.rest
	}
	if c, ok := before[key]; ok {
		return c
	}
	c := &counter[K, V]{key: key}
	next := maps.Clone(before)
	next[key] = c
	m.has.Store(&next)
	return c
}

// All returns all values by their keys, in no order.
func (m *Map[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for key, c := range *m.has.Load() {
			if !yield(key, &c.value) {
				return
			}
		}
	}
}
