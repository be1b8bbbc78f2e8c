package kv

import (
	"context"
	"errors"
	"strings"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// Each caller that keeps values in a namespace has one of its places. A place without values goes to a caller that needs one. The values themselves
// are in the caller's own space, which nobody else reads.
//
// This takes no lock, since everything is on disk. A goroutine that takes a place away marks the place's entry, looks for values, and then deletes
// the entry if it still has that mark. A goroutine that writes a value checks, before and after, that there is an unmarked entry. So at least one of
// the two sees the other.

// places are the places of a namespace.
type places struct {
	store     state.Store
	namespace string
}

// callers has an entry for each place, so its quota bounds the number of places. The value is who made the caller's token, if anybody did.
func (p places) callers() state.Space { return p.store.Space("kv-callers/" + p.namespace) }

// made has an entry for each place of a token that one caller has made. No namespace contains an @.
func (p places) made(root personal.ID) state.Space {
	return p.store.Space("kv-callers/" + p.namespace + "@" + string(root))
}

// index has an entry for each place in each namespace.
func (p places) index() state.Space { return indexSpace(p.store) }

// key returns a caller's key in the index.
func (p places) key(id personal.ID) string { return indexPrefix(id) + p.namespace }

// values returns the space with a caller's values.
func (p places) values(id personal.ID) state.Space { return ownSpace(p.store, p.namespace, id) }

// leaving is the mark: it begins the value of a place that is being taken away. No ID begins with it.
const leaving = "!"

// placeCost is the charge for looking at one place, in nanoseconds.
const placeCost = 3_000

// maxMade bounds the places in a namespace for the tokens that one caller has made. These tokens may also have at most a quarter of all places. A
// caller can make more tokens than there are places, and must not take the places of others with them.
const maxMade = 32

// hold makes sure that the owner has a place that nobody is taking away.
func (o *owner) hold(ctx context.Context) error {
	callers := o.places().callers()
	for {
		entry, has, err := callers.Get(ctx, string(o.id), state.MaxValue)
		if err != nil {
			return err
		}
		root, marked := strings.CutPrefix(string(entry.Value), leaving)
		switch {
		case !has:
			err = o.take(ctx)
		case marked:
			_, err = callers.Set(ctx, string(o.id), []byte(root), int64(entry.Version), state.SetOptions{})
		default:
			return nil
		}
		if err != nil && !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
}

// keep makes sure that a value which was just written has a place, and otherwise deletes the value, since it would be in no list.
func (o *owner) keep(ctx context.Context, key string, version uint64) error {
	ctx = context.WithoutCancel(ctx)
	err := o.hold(ctx)
	if err == nil {
		return nil
	}
	if _, failed := o.places().values(o.id).Delete(ctx, key, int64(version)); !errors.Is(failed, state.ErrConflict) {
		err = errors.Join(err, failed)
	}
	return err
}

// take takes one of the places for callers and, for a token that a caller has made, one of the places for such tokens.
func (o *owner) take(ctx context.Context) error {
	p := o.places()
	err := o.enter(ctx, p.index(), p.key(o.id), nil, 0)
	var root []byte
	if o.root != o.id && err == nil {
		root = []byte(o.root)
		most := max(1, min(maxMade, o.granted.own/4))
		if err = o.enter(ctx, p.made(o.root), string(o.id), nil, most); errors.Is(err, state.ErrQuota) {
			err = answer.Failf("quota", "%d tokens made from the same token keep values already, and no more can. Delete all values of one of them, or have that one revoked.", most)
		}
	}
	if err == nil {
		if err = o.enter(ctx, p.callers(), string(o.id), root, o.granted.own); errors.Is(err, state.ErrQuota) {
			err = answer.Failf("quota", "No more callers can keep values: %d do, which is as many as the operator allows (principals in the grant's kv).", o.granted.own)
		}
	}
	if err != nil {
		_ = p.forget(ctx, o.id, o.root) // an entry that is left does no harm
		return err
	}
	return p.note(ctx, o.id, o.root) // whoever took the place away before may have removed the note only now
}

// enter makes an entry, unless there is one. If the space is full, it first takes away a place without values.
func (o *owner) enter(ctx context.Context, space state.Space, key string, value []byte, most int) error {
	for {
		_, err := space.Set(ctx, key, value, state.Absent, state.SetOptions{Quota: state.Usage{Entries: int64(most)}})
		switch {
		case errors.Is(err, state.ErrConflict):
			return nil
		case !errors.Is(err, state.ErrQuota):
			return err
		}
		freed, failed := o.free(ctx, space)
		if failed != nil {
			return failed
		}
		if !freed {
			return err
		}
	}
}

// free looks through the callers that are the keys of a space, and takes away the place of the first one without values. It reports whether
// there was one.
func (o *owner) free(ctx context.Context, among state.Space) (freed bool, err error) {
	for after, more := "", true; more; {
		var ids []string
		if ids, more, err = among.List(ctx, "", after, 0); err != nil {
			return false, err
		}
		for _, id := range ids {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			o.looked++
			after = id
			freed, err := o.places().release(ctx, personal.ID(id), o.root)
			if freed || err != nil && !errors.Is(err, state.ErrUnavailable) { // one caller's values may be unavailable while many of them expire
				return freed, err
			}
		}
	}
	return false, nil
}

// release takes a place away, unless it has values, and reports whether it did. root is the caller that may have made this caller's token.
func (p places) release(ctx context.Context, id, root personal.ID) (bool, error) {
	callers := p.callers()
	entry, has, err := callers.Get(ctx, string(id), state.MaxValue)
	if err != nil {
		return false, err
	}
	if maker, marked := strings.CutPrefix(string(entry.Value), leaving); has {
		if empty, err := p.isEmpty(ctx, id); err != nil || !empty {
			return false, err
		}
		if root = personal.ID(maker); !marked {
			if entry.Version, err = callers.Set(ctx, string(id), []byte(leaving+maker), int64(entry.Version), state.SetOptions{}); err != nil {
				return false, unless(err, state.ErrConflict)
			}
		}
		if empty, err := p.isEmpty(ctx, id); err != nil || !empty {
			return false, err
		}
		if _, err := callers.Delete(ctx, string(id), int64(entry.Version)); err != nil {
			return false, unless(err, state.ErrConflict)
		}
	}
	return true, p.forget(ctx, id, root)
}

func (p places) isEmpty(ctx context.Context, id personal.ID) (bool, error) {
	keys, more, err := p.values(id).List(ctx, "", "", 1)
	return len(keys) == 0 && !more, err
}

// note adds a caller that has a place, or is about to take one, to the index.
func (p places) note(ctx context.Context, id, root personal.ID) error {
	_, err := p.index().Set(ctx, p.key(id), nil, state.Absent, state.SetOptions{})
	err = unless(err, state.ErrConflict)
	if root != "" && root != id && err == nil {
		_, err = p.made(root).Set(ctx, string(id), nil, state.Absent, state.SetOptions{})
		err = unless(err, state.ErrConflict)
	}
	return err
}

// forget undoes note, unless the caller has a place again.
func (p places) forget(ctx context.Context, id, root personal.ID) error {
	_, err := p.index().Delete(ctx, p.key(id), state.Any)
	if root != "" && root != id && err == nil {
		_, err = p.made(root).Delete(ctx, string(id), state.Any)
	}
	if err != nil {
		return err
	}
	if _, has, err := p.callers().Get(ctx, string(id), state.MaxValue); err != nil || !has {
		return err
	}
	return p.note(ctx, id, root)
}

// unless returns nil if the error is about an expected version.
func unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
