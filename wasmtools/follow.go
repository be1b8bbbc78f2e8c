package wasmtools

import (
	"slices"
	"sync/atomic"
)

// A follower derives a value from each generation. Followers are told apart by their addresses.
type follower struct {
	table *RouteTable
	make  func(g *Generation, before any) any
	last  atomic.Pointer[made] // after the end
}

// A made is the value that a follower has made from a generation.
type made struct {
	by    *follower
	value any
}

// Follow calls make with the current generation, and with each later one before that is published, and keeps the result with the
// generation. make must not return nil. before is its previous result, or nil. Calls come one at a time, in order; make must not change the table.
// Changes of the table wait for make, requests don't.
//
// The returned function of returns the value that was made from a generation. For nil, or for a generation of another table, it returns the
// value made from the current one. The function end ends the calls of make; from then on, of returns the value that was made last. Both
// functions are safe for concurrent use, and end can be called twice.
func (r *RouteTable) Follow(make func(g *Generation, before any) any) (of func(g *Generation) any, end func()) {
	f := &follower{table: r, make: make}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followers = append(r.followers, f)
	g := *r.Current()
	g.made = r.makeAll(&g, g.made)
	r.current.Store(&g)
	return f.of, f.end
}

// makeAll returns the values that the followers make from a generation. r.mu is held.
func (r *RouteTable) makeAll(g *Generation, before []made) []made {
	all := make([]made, len(r.followers))
	for i, f := range r.followers {
		all[i] = made{f, f.make(g, madeBy(f, before))}
	}
	return all
}

func madeBy(f *follower, all []made) any {
	for i := range all {
		if all[i].by == f {
			return all[i].value
		}
	}
	return nil
}

func (f *follower) of(g *Generation) any {
	if last := f.last.Load(); last != nil {
		return last.value
	}
	if g != nil {
		if value := madeBy(f, g.made); value != nil {
			return value
		}
	}
	if value := madeBy(f, f.table.Current().made); value != nil {
		return value
	}
	return f.last.Load().value // the follower was ended in between
}

func (f *follower) end() {
	r := f.table
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.last.Load() != nil {
		return
	}
	f.last.Store(&made{f, madeBy(f, r.Current().made)})
	r.followers = slices.DeleteFunc(r.followers, func(one *follower) bool { return one == f })
	g := *r.Current()
	g.made = slices.DeleteFunc(slices.Clone(g.made), func(m made) bool { return m.by == f })
	r.current.Store(&g)
}
