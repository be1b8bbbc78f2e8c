package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// OpenOwn returns a space of a namespace in which each caller has values of its own, with that quota. At most callers may have some.
func OpenOwn(store state.Store, namespace string, quota state.Usage, callers int) *Space {
	s := Open(store, namespace, quota)
	s.space, s.own = nil, callers
	return s
}

// ownSpace returns the space of a caller. No namespace has an @, and no ID one or a slash.
func ownSpace(store state.Store, namespace string, id personal.ID) state.Space {
	return store.Space("kv/" + namespace + "@" + string(id))
}

// callersSpace has an entry for each caller who keeps something in a namespace: its quota bounds how many they are.
func callersSpace(store state.Store, namespace string) state.Space {
	return store.Space("kv-callers/" + namespace)
}

// madeSpace has an entry for each of the tokens that one caller has made and that keep something in a namespace. No namespace has an @.
func madeSpace(store state.Store, namespace string, root personal.ID) state.Space {
	return store.Space("kv-callers/" + namespace + "@" + string(root))
}

// maxMade is the most places in a namespace for the tokens that one caller has made, who also have a quarter of all places at most. A caller
// can make as many as there are places for all, and more: they must not take those of others.
const maxMade = 32

// indexSpace has an entry for each caller in each namespace.
func indexSpace(store state.Store) state.Space { return store.Space("kv-index") }

// An owner is a caller with values of its own in a namespace.
type owner struct {
	granted *Space
	id      personal.ID
	root    personal.ID // who answers for the caller: the caller itself, or who has made its token
}

// key returns the owner's key in the index.
func (o *owner) key() string { return indexPrefix(o.id) + o.granted.namespace }

func indexPrefix(id personal.ID) string { return string(id) + "/" }

// ofCaller makes the use one of the caller's own values.
func (u *use) ofCaller() error {
	p := capability.Principal(u.Call)
	id, err := personal.Of(p)
	root, ofRoot := personal.Root(p)
	if err = cmp.Or(err, ofRoot); err != nil {
		return answer.Failf(answer.NotGranted, "Values are kept for each caller apart, and this caller can have none: it did not show who it is, or has a token without a name.")
	}
	u.own, u.space = &owner{u.granted, id, root}, ownSpace(u.granted.store, u.granted.namespace, id)
	return nil
}

// register makes room for the values of a caller who has none yet. Nobody's values make room for another's.
func (o *owner) register(ctx context.Context) error {
	store := o.granted.store
	callers := callersSpace(store, o.granted.namespace)
	_, known, err := callers.Get(ctx, string(o.id), state.MaxValue)
	if err != nil || known {
		return err
	}
	if _, err := indexSpace(store).Set(ctx, o.key(), nil, state.Any, state.SetOptions{}); err != nil {
		return err
	}
	if err = o.take(ctx, callers); err != nil {
		_, _ = indexSpace(store).Delete(ctx, o.key(), state.Any) // an entry without values does no harm
	}
	return err
}

// take takes one of the places for callers, and one of those for the tokens that the same caller has made.
func (o *owner) take(ctx context.Context, callers state.Space) error {
	var root []byte // of a token that another one has made; erase goes by it
	made := madeSpace(o.granted.store, o.granted.namespace, o.root)
	if o.root != o.id {
		root = []byte(o.root)
		most := max(1, min(maxMade, o.granted.own/4))
		_, err := made.Set(ctx, string(o.id), nil, state.Absent, state.SetOptions{Quota: state.Usage{Entries: int64(most)}})
		if errors.Is(err, state.ErrQuota) {
			return answer.Failf("quota", "No further token that this token's maker has made can keep values: %d do. Have one of them revoked, or its values erased (toolsrv kv erase).", most)
		}
		if err != nil && !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
	_, err := callers.Set(ctx, string(o.id), root, state.Absent, state.SetOptions{Quota: state.Usage{Entries: int64(o.granted.own)}})
	if errors.Is(err, state.ErrConflict) { // another call was faster
		return nil
	}
	if err != nil && root != nil {
		_, _ = made.Delete(ctx, string(o.id), state.Any) // as above
	}
	if errors.Is(err, state.ErrQuota) {
		return answer.Failf("quota", "No further caller can keep values: %d do, as many as the operator allows (principals in the grant's kv).", o.granted.own)
	}
	return err
}

// A Kept is what one caller keeps in one namespace.
type Kept struct {
	Of        personal.ID
	Namespace string
	Usage     state.Usage
}

// List returns what callers keep of their own in a store, beginning after a place in the list, and at most that many. more is where to go on, or
// empty.
func List(ctx context.Context, store state.Store, after string, limit int) (all []Kept, more string, err error) {
	entries, others, err := indexSpace(store).List(ctx, "", after, limit)
	if err != nil {
		return nil, "", err
	}
	for _, key := range entries {
		k, err := kept(ctx, store, key)
		if err != nil {
			return nil, "", err
		}
		all = append(all, k)
		if others {
			more = key
		}
	}
	return all, more, nil
}

func kept(ctx context.Context, store state.Store, key string) (k Kept, err error) {
	id, namespace, ok := strings.Cut(key, "/")
	if !ok {
		return k, fmt.Errorf("the index of callers' values has an entry %q", key)
	}
	k = Kept{Of: personal.ID(id), Namespace: namespace}
	k.Usage, err = ownSpace(store, namespace, k.Of).Usage(ctx)
	return k, err
}

// Erase deletes all that a caller keeps of its own, and returns what that was. A call that runs can keep something again.
func Erase(ctx context.Context, store state.Store, id personal.ID) (all []Kept, err error) {
	for after, more := "", true; more; {
		var entries []string
		if entries, more, err = indexSpace(store).List(ctx, indexPrefix(id), after, 0); err != nil {
			return all, err
		}
		for _, key := range entries {
			after = key
			k, err := kept(ctx, store, key)
			if err == nil {
				err = erase(ctx, store, k)
			}
			if err != nil {
				return all, err
			}
			all = append(all, k)
		}
	}
	return all, nil
}

// erase deletes the values first, so that what is left after a failure is still found.
func erase(ctx context.Context, store state.Store, k Kept) error {
	values := ownSpace(store, k.Namespace, k.Of)
	for more := true; more; {
		var keys []string
		var err error
		if keys, more, err = values.List(ctx, "", "", 0); err != nil {
			return err
		}
		for _, key := range keys {
			if _, err := values.Delete(ctx, key, state.Any); err != nil {
				return err
			}
		}
	}
	callers := callersSpace(store, k.Namespace)
	entry, ok, err := callers.Get(ctx, string(k.Of), state.MaxValue)
	if err != nil {
		return err
	}
	if ok && len(entry.Value) > 0 {
		if _, err := madeSpace(store, k.Namespace, personal.ID(entry.Value)).Delete(ctx, string(k.Of), state.Any); err != nil {
			return err
		}
	}
	if _, err := callers.Delete(ctx, string(k.Of), state.Any); err != nil {
		return err
	}
	_, err = indexSpace(store).Delete(ctx, indexPrefix(k.Of)+k.Namespace, state.Any)
	return err
}
