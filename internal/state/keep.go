package state

// A Keep is what the owner of data sees of a store: the server's own capabilities get the whole store, any other owner a space of its own.
type Keep struct {
	store Store
	owner string
}

// NewKeep returns an owner's part of a store.
func NewKeep(store Store, owner string) *Keep { return &Keep{store, owner} }

// Store returns the store.
func (k *Keep) Store() Store { return k.store }

// Space returns the owner's space, which nobody else uses.
func (k *Keep) Space() Space { return k.store.Space("own/" + k.owner) }
