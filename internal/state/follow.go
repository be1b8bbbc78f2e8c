package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// FollowAgain is the average pause before a space that could not be followed is tried again. Each pause is between half of it and one and a half
// times as long, so that processes that lose a store together don't all come back at once.
const FollowAgain = time.Second

// A Follower receives the entries of a space and their changes. Its functions are called one at a time.
type Follower struct {
	// Take receives an entry or a change. If Take or Whole returns an error, everything is read again from the start.
	Take func(e Event) error
	// Whole is called with all keys once every existing entry has been passed to Take: any other key that the caller knows has been deleted. It may be
	// nil.
	Whole func(keys map[string]bool) error
	// Failed is called with the error each time that following the space fails, and with nil each time that Whole was called. It may be nil: the store
	// itself logs that it is not available.
	Failed func(err error)
}

// Follow passes the entries under keys with a prefix, and then each change, to f until ctx ends. After an error it tries again.
func Follow(ctx context.Context, space Space, prefix string, f Follower) {
	for ctx.Err() == nil {
		err := f.take(ctx, space, prefix)
		if ctx.Err() != nil {
			return
		}
		if f.Failed != nil {
			f.Failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(FollowAgain/2 + rand.N(FollowAgain)):
		}
	}
}

// take passes all entries and then the changes to f, until an error.
func (f *Follower) take(ctx context.Context, space Space, prefix string) error {
	keys := map[string]bool{} // nil once all entries have been passed
	for e, err := range space.Watch(ctx, prefix) {
		switch {
		case err != nil:
		case e.Synced:
			if f.Whole != nil {
				err = f.Whole(keys)
			}
			if keys = nil; err == nil && f.Failed != nil {
				f.Failed(nil)
			}
		default:
			if keys != nil && !e.Deleted {
				keys[e.Key] = true
			}
			err = f.Take(e)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the watch has ended") // a watch ends only with an error
}
