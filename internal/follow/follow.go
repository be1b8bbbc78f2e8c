// Package follow keeps what is derived from each generation of a route table, such as a router.
package follow

import (
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Derived is a value that is made from each generation of a table. It is made before the generation is published, and published with it: a request
// sees one generation and the value that was made from it, never another's. A Derived is safe for concurrent use.
type Derived[T any] struct {
	made func(g *wasmtools.Generation) any
	end  func()
}

// Derive calls make with the current generation and with each later one, and keeps the result with it. make must not return nil. before is what make
// returned last, or nil. Calls come one at a time, in order; make must not change the table. Changes of the table wait for make; requests don't.
func Derive[T any](r *wasmtools.RouteTable, make func(g *wasmtools.Generation, before *T) *T) *Derived[T] {
	made, end := r.Follow(func(g *wasmtools.Generation, before any) any {
		old, _ := before.(*T)
		return make(g, old)
	})
	return &Derived[T]{made, end}
}

// Of returns what was made from a generation. For nil, or a generation of another table, it returns what was made from the current one.
func (d *Derived[T]) Of(g *wasmtools.Generation) *T { return d.made(g).(*T) }

// Current returns what was made from the current generation.
func (d *Derived[T]) Current() *T { return d.Of(nil) }

// Close ends the calls of make. From then on, Of returns what was made last. A second Close does nothing.
func (d *Derived[T]) Close() { d.end() }

// A Change says how two generations differ.
type Change int

const (
	// SameTools says that the tools are the same, while their switches may differ.
	SameTools Change = iota
	// SamePaths says that some tools were replaced, but the paths are the same.
	SamePaths
	// OtherPaths says that paths were added or removed. The first generation is such a change, too.
	OtherPaths
)

// MadeOfTools returns what make returns for each tool of a generation, in the order of its routes, and what has changed since the generation before.
// made has the results for before, in the order of its routes; those of tools that both generations have are used again. If all tools are the same,
// it returns made itself. before may be nil.
func MadeOfTools[T any](g, before *wasmtools.Generation, made []T, of func(*wasmtools.Tool) T) ([]T, Change) {
	routes := g.Routes()
	var old []wasmtools.Route
	if before != nil {
		old = before.Routes()
	}
	if before != nil && slices.EqualFunc(routes, old, func(a, b wasmtools.Route) bool { return a.Tool == b.Tool }) {
		return made, SameTools
	}
	next := make([]T, len(routes))
	change := OtherPaths
	if before != nil && slices.EqualFunc(routes, old, func(a, b wasmtools.Route) bool { return a.Path == b.Path }) {
		change = SamePaths
	}
	n := 0
	for i, route := range routes { // both are sorted by path
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
