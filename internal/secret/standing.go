package secret

import (
	"maps"
	"sync"
	"weak"
)

// A Register has the grants of one kind that tools hold. A grant that is also in the next configuration goes on, with its connections
// and with the new values of its secrets. It keeps none alive. The zero Register is usable.
type Register[T any, G interface {
	*T
	Equal(other any) bool
}] struct {
	mu     sync.Mutex
	grants map[string]registered[T] // by tools and what they need
}

// A registered is a grant with its secrets.
type registered[T any] struct {
	grant weak.Pointer[T]
	view  *View
}

// Standing returns the grant that a tool has in the configuration of view: the one of before if that allows the same, or granted, which has
// view.
func (r *Register[T, G]) Standing(tool string, granted G, view *View) G {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.grants[tool]
	if old := G(before.grant.Value()); old != nil && old.Equal(granted) {
		before.view.Extend(view.last.Load())
		return old
	}
	if r.grants == nil {
		r.grants = map[string]registered[T]{}
	}
	r.grants[tool] = registered[T]{weak.Make((*T)(granted)), view}
	return granted
}

// Forget forgets the grants that no tool has any more.
func (r *Register[T, G]) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.grants, func(_ string, one registered[T]) bool { return one.grant.Value() == nil })
}
