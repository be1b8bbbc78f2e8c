package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// FollowAgain is how long it takes on average until a space is followed again that could not be. It is between half of that and half more, so that
// processes that lose a store together don't all come back at once.
const FollowAgain = time.Second

// A Follower takes up what a space has. Its functions are called one after the other.
type Follower struct {
	// Take takes up an entry that there is, or a change. After an error of it or of Whole, all that there is is taken up anew.
	Take func(e Event) error
	// Whole is called once all that there is was taken up, with its keys: what else is known is gone by now. Nil does nothing.
	Whole func(keys map[string]bool) error
	// Failed is called with why the space can't be followed, each time that it is tried, and with nil each time that Whole was called. Nil does nothing:
	// the store itself tells the log that it is not available.
	Failed func(err error)
}

// Follow has f take up what there is in a space under keys with a prefix, and what changes there, until ctx ends. After an error it tries again.
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

// take takes up all that there is, and changes, until that fails.
func (f *Follower) take(ctx context.Context, space Space, prefix string) error {
	keys := map[string]bool{} // nil: all were taken up
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
	return errors.New("the watch has ended") // which it does with an error only
}
