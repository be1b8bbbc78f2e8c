// Package memory keeps state in memory until the store is closed. It is for tests, and for tools that are being tried out. It is the simple twin of
// the store on disk.
package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/internal/watch"
)

var (
	_ state.Store     = (*Store)(nil)
	_ state.Immediate = (*space)(nil)
)

// A Store is a state in memory. It is safe for concurrent use.
type Store struct {
	hub watch.Hub

	mu     sync.Mutex
	closed bool
	spaces map[string]*content
}

// content is what a space holds.
type content struct {
	entries map[string]state.Entry
	version uint64 // the last version that was assigned
}

// New returns an empty store.
func New() *Store { return &Store{spaces: map[string]*content{}} }

// Close implements state.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.spaces = true, nil
	s.hub.Close()
	return nil
}

// Space implements state.Store.
func (s *Store) Space(name string) state.Space { return &space{s, name} }

type space struct {
	store *Store
	name  string
}

// Immediate implements state.Immediate.
func (s *space) Immediate() {}

// with calls f with what the space holds, without expired entries.
func (s *space) with(ctx context.Context, f func(*content) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.closed {
		return fmt.Errorf("%w: it is closed", state.ErrUnavailable)
	}
	c := s.store.spaces[s.name]
	if c == nil {
		c = &content{entries: map[string]state.Entry{}}
		s.store.spaces[s.name] = c
	}
	now := time.Now()
	for key, e := range c.entries {
		if !e.Expires.IsZero() && !e.Expires.After(now) {
			delete(c.entries, key)
			s.store.hub.Changed(s.name, key)
		}
	}
	return f(c)
}

func (c *content) usage() (u state.Usage) {
	for key, e := range c.entries {
		u.Entries++
		u.Bytes += state.SizeOf(key, e.Value)
	}
	return u
}

// Get implements state.Space.
func (s *space) Get(ctx context.Context, key string, most int) (e state.Entry, ok bool, err error) {
	if err := state.CheckKey(key); err != nil {
		return e, false, err
	}
	err = s.with(ctx, func(c *content) error {
		stored := c.entries[key]
		if err := state.CheckSize(len(stored.Value), most); err != nil {
			return err
		}
		e, ok = stored, stored.Version != 0
		e.Value = slices.Clone(e.Value)
		return nil
	})
	return e, ok, err
}

// Set implements state.Space.
func (s *space) Set(ctx context.Context, key string, value []byte, expect int64, o state.SetOptions) (version uint64, err error) {
	if err := state.CheckSet(key, value, expect, o.TTL); err != nil {
		return 0, err
	}
	err = s.with(ctx, func(c *content) error {
		old, there := c.entries[key]
		if err := state.Conflict(old.Version, expect); err != nil {
			return err
		}
		before := c.usage()
		after := before
		if after.Bytes += state.SizeOf(key, value); there {
			after.Bytes -= state.SizeOf(key, old.Value)
		} else {
			after.Entries++
		}
		if err := o.Quota.Exceeds(before, after); err != nil {
			return err
		}
		c.version++
		version = c.version
		e := state.Entry{Key: key, Value: append([]byte{}, value...), Version: version}
		if o.TTL != 0 {
			e.Expires = time.UnixMilli(time.Now().Add(o.TTL).UnixMilli())
		}
		c.entries[key] = e
		return nil
	})
	if err == nil {
		s.store.hub.Changed(s.name, key)
	}
	return version, err
}

// Delete implements state.Space.
func (s *space) Delete(ctx context.Context, key string, expect int64) (deleted bool, err error) {
	if err := errors.Join(state.CheckKey(key), state.CheckExpect(expect)); err != nil {
		return false, err
	}
	err = s.with(ctx, func(c *content) error {
		old, there := c.entries[key]
		if err := state.Conflict(old.Version, expect); err != nil {
			return err
		}
		delete(c.entries, key)
		deleted = there
		return nil
	})
	if deleted {
		s.store.hub.Changed(s.name, key)
	}
	return deleted, err
}

// List implements state.Space.
func (s *space) List(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	if limit < 1 || limit > state.MaxPage {
		limit = state.MaxPage
	}
	err = s.with(ctx, func(c *content) error {
		for key := range c.entries {
			if strings.HasPrefix(key, prefix) && key > after {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if more = len(keys) > limit; more {
			keys = keys[:limit]
		}
		return nil
	})
	return keys, more, err
}

// Usage implements state.Space.
func (s *space) Usage(ctx context.Context) (u state.Usage, err error) {
	err = s.with(ctx, func(c *content) error {
		u = c.usage()
		return nil
	})
	return u, err
}

// Watch implements state.Space.
func (s *space) Watch(ctx context.Context, prefix string) iter.Seq2[state.Event, error] {
	return s.store.hub.Watch(ctx, s, s.name, prefix)
}
