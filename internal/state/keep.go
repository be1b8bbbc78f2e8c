package state

// A Keep is a store for one who keeps something: the whole of it for the server's own capabilities, and one space for those of others.
type Keep struct {
	store Store
	owner string
}

// NewKeep returns the part of a store that an owner has.
func NewKeep(store Store, owner string) *Keep { return &Keep{store, owner} }

// Store returns the store.
func (k *Keep) Store() Store { return k.store }

// Space returns the owner's space, which is no other one's.
func (k *Keep) Space() Space { return k.store.Space("own/" + k.owner) }
