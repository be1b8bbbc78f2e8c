package secret

import (
	"maps"
	"slices"
	"sync"
	"weak"
)

// A Register has the grants of one kind that tools hold. A grant that is also in the next configuration stays in use, with its connections
// and with the new values of its secrets. One that a configuration took away does not, though a later one grants the same: calls of before
// still run under it. It keeps none alive. The zero Register is usable.
type Register[T any, G interface {
	*T
	Equal(other any) bool
}] struct {
	mu     sync.Mutex
	grants map[string][]registered[T] // by tools and what they need: some may be of configurations that were only looked at
}

// A registered is a grant with its secrets.
type registered[T any] struct {
	grant weak.Pointer[T]
	view  *View
}

// Standing returns the grant that a tool has in the configuration of view: the one of before if that allows the same, or granted, which has
// view.
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
