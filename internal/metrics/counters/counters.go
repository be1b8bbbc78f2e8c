// Package counters has a map of counters with a bounded number of keys.
package counters

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
)

// A Map has a V of each K, up to a number of them. Further keys share one more. To find one takes no lock and no memory. It is safe for concurrent
// use, as far as V is.
type Map[K comparable, V any] struct {
	most int
	rest K
	has  atomic.Pointer[map[K]*V]
	mu   sync.Mutex // of whoever adds
}

// New returns a map for that many keys. Those beyond are counted as rest.
func New[K comparable, V any](most int, rest K) *Map[K, V] {
	m := &Map[K, V]{most: most, rest: rest}
	m.has.Store(&map[K]*V{})
	return m
}

// Of returns the value of a key, which is zero at first.
func (m *Map[K, V]) Of(key K) *V {
	if v, ok := (*m.has.Load())[key]; ok {
		return v
	}
	return m.add(key)
}

func (m *Map[K, V]) add(key K) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := *m.has.Load()
	if len(before) >= m.most {
		key = m.rest
	}
	if v, ok := before[key]; ok {
		return v
	}
	v := new(V)
	next := maps.Clone(before)
	next[key] = v
	m.has.Store(&next)
	return v
}

// All returns all values by their keys, in no order.
func (m *Map[K, V]) All() iter.Seq2[K, *V] { return maps.All(*m.has.Load()) }
