package kv

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// OpenOwn returns the space of a namespace in which each caller has its own values, each with the given quota. callers is how many callers may have
// values.
func OpenOwn(store state.Store, namespace string, quota state.Usage, callers int) *Space {
	s := Open(store, namespace, quota)
	s.space, s.own = nil, callers
	return s
}

// ownSpace returns the name of a caller's space. No namespace contains an @, and no ID contains an @ or a slash.
func ownSpace(store state.Store, namespace string, id personal.ID) state.Space {
	return store.Space("kv/" + namespace + "@" + string(id))
}

// indexSpace is the space with an entry for each caller in each namespace.
func indexSpace(store state.Store) state.Space { return store.Space("kv-index") }

// An owner is a caller with values of its own in a namespace.
type owner struct {
	granted *Space
	id      personal.ID
	root    personal.ID // whoever is responsible for the caller: the caller itself, or the one that made its token
	looked  int         // how many places were looked at to find one for this owner
}

func (o *owner) places() places { return places{o.granted.store, o.granted.namespace} }

func indexPrefix(id personal.ID) string { return string(id) + "/" }

// ofCaller restricts the use to the caller's own values.
func (u *use) ofCaller() error {
	p := capability.Principal(u.Call)
	id, err := personal.Of(p)
	root, ofRoot := personal.Root(p)
	if err = cmp.Or(err, ofRoot); err != nil {
		return answer.Failf(answer.NotGranted, "Values are kept for each caller separately, and this caller can't have any: it has no credentials, or its token has no name.")
	}
	u.own, u.space = &owner{granted: u.granted, id: id, root: root}, ownSpace(u.granted.store, u.granted.namespace, id)
	return nil
}

// A Kept is the values of one caller in one namespace.
type Kept struct {
	Of        personal.ID
	Namespace string
	Usage     state.Usage
}

// List returns callers' own values in a store: at most a number of entries, after a position in the list. more is the position for the next call, or
// empty. Callers without values are left out.
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
		if k.Usage.Entries > 0 {
			all = append(all, k)
		}
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

// Erase deletes all of a caller's own values, and returns what it has deleted. A running call may write values again.
func Erase(ctx context.Context, store state.Store, id personal.ID) (all []Kept, err error) {
	if err := refresh(ctx, indexSpace(store)); err != nil {
		return nil, err
	}
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
			if k.Usage.Entries > 0 {
				all = append(all, k)
			}
		}
	}
	return all, nil
}

// refresh makes sure that space has what was just written at another server.
func refresh(ctx context.Context, space state.Space) error {
	if shared, ok := space.(state.Shared); ok {
		return shared.Refresh(ctx)
	}
	return nil
}

// erase deletes the values before the entry, so that what is left after a failure is still found.
func erase(ctx context.Context, store state.Store, k Kept) error {
	p := places{store, k.Namespace}
	values := p.values(k.Of)
	if err := refresh(ctx, values); err != nil {
		return err
	}
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
	_, err := p.release(ctx, k.Of, "")
	return err
}
