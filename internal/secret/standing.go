package secret

import (
	"maps"
	"slices"
	"sync"
	"weak"
)

// A Register remembers the grants of one kind that tools hold. A grant that the next configuration has, too, stays in use, with its connections and
// the new values of its secrets. A grant that a configuration has removed is never used again, even if a later configuration grants the same, since
// earlier calls may still use it. The Register keeps no grant alive. The zero Register is usable.
type Register[T any, G interface {
	*T
	Equal(other any) bool
}] struct {
	mu     sync.Mutex
	grants map[string][]registered[T] // grants by tools and their needs; some may belong to configurations that were only checked
}

// A registered is a grant with its secrets.
type registered[T any] struct {
	grant weak.Pointer[T]
	view  *View
}

// Standing returns the grant of a tool in the configuration of view: an earlier grant if it allows the same, or else granted, whose View is view.
func (r *Register[T, G]) Standing(tool string, granted G, view *View) G {
	now := view.Newest()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, before := range r.grants[tool] {
		if old := G(before.grant.Value()); old != nil && before.view.precedes(now) && old.Equal(granted) {
			before.view.Extend(now)
			return old
		}
	}
	if r.grants == nil {
		r.grants = map[string][]registered[T]{}
	}
	r.grants[tool] = append(slices.DeleteFunc(r.grants[tool], registered[T].gone), registered[T]{weak.Make((*T)(granted)), view})
	return granted
}

// gone reports whether nobody holds the grant any more.
func (r registered[T]) gone() bool { return r.grant.Value() == nil }

// Forget forgets the grants that no tool has any more.
func (r *Register[T, G]) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.grants, func(tool string, all []registered[T]) bool {
		all = slices.DeleteFunc(all, registered[T].gone)
		r.grants[tool] = all
		return len(all) == 0
	})
}
