package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

var (
	_ state.Store     = (*Deferred)(nil)
	_ state.Immediate = (*deferred)(nil)
)

// A Deferred is the state in a default directory, which the configuration doesn't name. The directory and its file are made when something is first
// kept; until then the state is empty. If they can't be made or opened, each use returns that error, and later uses try again. It is safe for
// concurrent use.
type Deferred struct {
	directory string
	options   Options
	opened    chan struct{} // closed once the store is open, or can never be opened

	mu     sync.Mutex // also held while the file is opened, so that all callers wait until it is open
	store  *Store     // nil: not opened yet
	failed error      // error of the last attempt
	next   time.Time  // the time of the next attempt; zero means never, if failed is set
	closed bool
}

// Defer returns the state of a directory. The caller closes it.
func Defer(dir string, o Options) *Deferred {
	return &Deferred{directory: dir, options: o, opened: make(chan struct{})}
}

// Space implements state.Store.
func (d *Deferred) Space(name string) state.Space { return &deferred{d, name} }

// Close implements state.Store.
func (d *Deferred) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && d.store == nil {
		close(d.opened)
	}
	d.closed = true
	if d.store == nil {
		return nil // a state that could not be opened has nothing to lose
	}
	return d.store.Close()
}

// Opened returns the store, or nil while there is nothing in it or it can't be opened.
func (d *Deferred) Opened() *Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.store
}

// Broken returns why nothing can be kept or read, or nil. It knows only once something has been tried.
func (d *Deferred) Broken() error {
	d.mu.Lock()
	store, failed := d.store, d.failed
	d.mu.Unlock()
	if store != nil {
		return store.Broken()
	}
	return failed
}

// Figures tells what was written so far.
func (d *Deferred) Figures() Figures {
	if s := d.Opened(); s != nil {
		return s.Figures()
	}
	return Figures{}
}

// open returns the store. If there is none yet, it makes one if something is to be kept, and returns nil otherwise.
func (d *Deferred) open(keep bool) (*Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.store != nil:
		return d.store, nil
	case d.closed:
		return nil, fmt.Errorf("%w: it is closed", state.ErrUnavailable)
	case d.failed != nil && (d.next.IsZero() || time.Now().Before(d.next)):
		return nil, d.failed
	}
	if !keep {
		if _, err := os.Lstat(filepath.Join(d.directory, FileName)); errors.Is(err, fs.ErrNotExist) {
			d.failed = nil // there is nothing to read, so nothing has failed
			return nil, nil
		}
	}
	store, err := Open(d.directory, d.options)
	if err != nil {
		d.fail(err)
		return nil, d.failed
	}
	if d.options.Log != nil {
		d.options.Log.Info("state is open", slog.String("directory", d.directory))
	}
	d.store, d.failed = store, nil
	close(d.opened)
	return store, nil
}

// fail records and logs why the file could not be opened. A file that is damaged or belongs to another program is not tried again.
func (d *Deferred) fail(err error) {
	first := d.failed == nil
	d.failed, d.next = fmt.Errorf("%w: %w", state.ErrUnavailable, err), time.Time{}
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
		d.next = time.Now().Add(refusedFor)
	}
	if first && d.options.Log != nil {
		d.options.Log.Error("the state can't be used, so whatever needs it gets errors", slog.Any("error", err))
	}
}

// A deferred is a space of a Deferred.
type deferred struct {
	of   *Deferred
	name string
}

// Immediate implements state.Immediate.
func (s *deferred) Immediate() {}

// Get implements state.Space.
func (s *deferred) Get(ctx context.Context, key string, most int) (state.Entry, bool, error) {
	store, err := s.of.open(false)
	if store == nil {
		return state.Entry{}, false, errors.Join(state.CheckKey(key), err)
	}
	return store.Space(s.name).Get(ctx, key, most)
}

// Set implements state.Space.
func (s *deferred) Set(ctx context.Context, key string, value []byte, expect int64, o state.SetOptions) (uint64, error) {
	if err := state.CheckSet(key, value, expect, o.TTL); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	store, err := s.of.open(true)
	if err != nil {
		return 0, err
	}
	return store.Space(s.name).Set(ctx, key, value, expect, o)
}

// Delete implements state.Space.
func (s *deferred) Delete(ctx context.Context, key string, expect int64) (bool, error) {
	store, err := s.of.open(false)
	switch {
	case store != nil:
		return store.Space(s.name).Delete(ctx, key, expect)
	case err != nil:
		return false, err
	}
	if err := errors.Join(state.CheckKey(key), state.CheckExpect(expect)); err != nil {
		return false, err
	}
	return false, state.Conflict(0, expect)
}

// List implements state.Space.
func (s *deferred) List(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	store, err := s.of.open(false)
	if store == nil {
		return nil, false, err
	}
	return store.Space(s.name).List(ctx, prefix, after, limit)
}

// Usage implements state.Space.
func (s *deferred) Usage(ctx context.Context) (state.Usage, error) {
	store, err := s.of.open(false)
	if store == nil {
		return state.Usage{}, err
	}
	return store.Space(s.name).Usage(ctx)
}

// Watch implements state.Space. Whatever is kept after the file was made is reported as a change.
func (s *deferred) Watch(ctx context.Context, prefix string) iter.Seq2[state.Event, error] {
	return func(yield func(state.Event, error) bool) {
		store, err := s.of.open(false)
		if err != nil {
			yield(state.Event{}, err)
			return
		}
		synced := store == nil
		if synced {
			if !yield(state.Event{Synced: true}, nil) {
				return
			}
			select {
			case <-ctx.Done():
				yield(state.Event{}, context.Cause(ctx))
				return
			case <-s.of.opened:
			}
			if store, err = s.of.open(false); err != nil {
				yield(state.Event{}, err)
				return
			}
		}
		for event, err := range store.Space(s.name).Watch(ctx, prefix) {
			if synced && err == nil && event.Synced {
				continue
			}
			if !yield(event, err) {
				return
			}
		}
	}
}
