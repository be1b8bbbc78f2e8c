package wasmtools

import (
	"slices"
	"sync/atomic"
)

// A Derived is what a part of the program makes of each generation of a table, such as a router. It is made before the generation is
// published, and published with it: a request that has a generation has all that was made of it, and nothing of another one. It is safe
// for concurrent use.
type Derived[T any] struct {
	table *RouteTable
	maker *maker
	last  atomic.Pointer[T] // after Close
}

// A maker makes one thing of each generation. Its address tells it from others.
type maker struct {
	make func(g *Generation, before any) any
}

// A made is what a maker made of a generation.
type made struct {
	by    *maker
	value any
}

// Derive has make called with the current generation and with each later one, and keeps with it what make returns, which must not be
// nil. before is what it returned last, or nil. Calls come one at a time, in order; make must not change the table. Changes of the
// table wait for make, requests don't.
func Derive[T any](r *RouteTable, make func(g *Generation, before *T) *T) *Derived[T] {
	m := &maker{make: func(g *Generation, before any) any {
		old, _ := before.(*T)
		return make(g, old)
	}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makers = append(r.makers, m)
	r.addMade()
	return &Derived[T]{table: r, maker: m}
}

// addMade publishes the current generation again, with what its makers make of it. r.mu is held.
func (r *RouteTable) addMade() {
	g := *r.Current()
	g.made = r.makeAll(&g, g.made)
	r.current.Store(&g)
}

// makeAll returns what the makers make of a generation. r.mu is held.
func (r *RouteTable) makeAll(g *Generation, before []made) []made {
	all := make([]made, len(r.makers))
	for i, m := range r.makers {
		all[i] = made{m, m.make(g, madeBy(m, before))}
	}
	return all
}

func madeBy(m *maker, all []made) any {
	for i := range all {
		if all[i].by == m {
			return all[i].value
		}
	}
	return nil
}

// Of returns what was made of a generation. For nil, or a generation of another table, it returns the current one's.
func (d *Derived[T]) Of(g *Generation) *T {
	if last := d.last.Load(); last != nil {
		return last
	}
	if g != nil {
		if value, ok := madeBy(d.maker, g.made).(*T); ok {
			return value
		}
	}
	if value, ok := madeBy(d.maker, d.table.Current().made).(*T); ok {
		return value
	}
	return d.last.Load() // it was closed in between
}

// Current returns what was made of the current generation.
func (d *Derived[T]) Current() *T { return d.Of(nil) }

// A Change is what differs between two generations.
type Change int

const (
	// SameTools says that the tools are the same, while their switches may differ.
	SameTools Change = iota
	// SamePaths says that some tools were replaced by others with the same paths.
	SamePaths
	// OtherPaths says that there are paths that were not there, or are not there any more. So it is with the first generation.
	OtherPaths
)

// MadeOfTools returns what is made of each tool of a generation, in the order of its routes, and what has changed. It keeps what was made of
// tools that before had already: made has that, in the order of before's routes. Where the tools are the same, it returns made itself.
// before may be nil.
func MadeOfTools[T any](g, before *Generation, made []T, of func(*Tool) T) ([]T, Change) {
	var old []Route
	if before != nil {
		old = before.routes
	}
	if before != nil && slices.EqualFunc(g.routes, old, func(a, b Route) bool { return a.Tool == b.Tool }) {
		return made, SameTools
	}
	next := make([]T, len(g.routes))
	change := OtherPaths
	if before != nil && slices.EqualFunc(g.routes, old, func(a, b Route) bool { return a.Path == b.Path }) {
		change = SamePaths
	}
	n := 0
	for i, route := range g.routes { // both are sorted by path
		for n < len(old) && old[n].Path < route.Path {
			n++
		}
		if n < len(old) && old[n].Tool == route.Tool {
			next[i] = made[n]
		} else {
			next[i] = of(route.Tool)
		}
	}
	return next, change
}

// Close ends the calls of make. Of returns what was made last from then on. A second Close does nothing.
func (d *Derived[T]) Close() {
	r := d.table
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.last.Load() != nil {
		return
	}
	d.last.Store(madeBy(d.maker, r.Current().made).(*T))
	r.makers = slices.DeleteFunc(r.makers, func(m *maker) bool { return m == d.maker })
	g := *r.Current()
	g.made = slices.DeleteFunc(slices.Clone(g.made), func(m made) bool { return m.by == d.maker })
	r.current.Store(&g)
}
