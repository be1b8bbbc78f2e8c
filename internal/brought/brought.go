// Package brought stores the secrets that callers have set for themselves in the state.
package brought

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// Space is the name of the space with these secrets, and Form the newest format of its records.
const (
	Space = "secrets"
	Form  = 1
)

// ErrNowhere is returned if the server keeps no state.
var ErrNowhere = errors.New("the server keeps no state: set state.directory or state.url")

// A record is a secret in the state. It is not encrypted: see RATIONALE.md.
type record struct {
	Value string      `json:"value"`
	Root  personal.ID `json:"root"` // the principal who answers for the caller
	Set   time.Time   `json:"set"`
	By    string      `json:"by"`
}

// A Secret describes a caller's secret without its value.
type Secret struct {
	Of   personal.ID
	Name string
	Set  time.Time
	By   string // the name of whoever has set it
	// Version is the version of its entry in the state.
	Version uint64

	root personal.ID
	sum  [sha256.Size]byte // the SHA-256 of the value
}

// A Store has the secrets that callers have set. It is safe for concurrent use.
type Store struct {
	space   state.Space // nil if the server keeps no state
	secrets *secret.Store
	log     *slog.Logger
	unknown *trouble.Trouble

	mu    sync.Mutex // held while something is changed
	known map[string]Secret
	left  map[string]uint64 // the versions of unreadable records that have been logged
	lost  error             // why the secrets can't be read; nil if they have been read
}

// Open reads the secrets in st, which may be nil, and adds them to secrets. A secret that can't be read is left out and logged. If none can be read,
// all methods of the Store fail with the reason, and callers have no secrets.
func Open(ctx context.Context, st state.Store, secrets *secret.Store, logger *slog.Logger) *Store {
	s := &Store{secrets: secrets, log: logger, known: map[string]Secret{}, left: map[string]uint64{}}
	s.unknown = trouble.New(logger, slog.LevelError, "the secrets that callers have set can't be read", "the secrets that callers have set can be read again")
	if st == nil {
		return s
	}
	s.space = st.Space(Space)
	values := map[string]string{}
	for after, more := "", true; more; {
		var keys []string
		if keys, more, s.lost = s.space.List(ctx, "", after, 0); s.lost != nil {
			s.unknown.Set(s.lost)
			return s
		}
		for _, key := range keys {
			after = key
			entry, has, err := s.space.Get(ctx, key, state.MaxValue)
			if s.lost = err; err != nil {
				s.unknown.Set(err)
				return s
			}
			if one, value, err := read(entry); !has {
				continue
			} else if err != nil {
				s.leave(entry, err)
			} else {
				s.known[key], values[key] = one, value
			}
		}
	}
	secrets.BringAll(func(yield func(id, root personal.ID, name, value string)) {
		for key, one := range s.known {
			yield(one.Of, one.root, one.Name, values[key])
		}
	})
	return s
}

// read returns what an entry says.
func read(entry state.Entry) (one Secret, value string, err error) {
	var r record
	if err := state.Decode(entry.Value, Form, &r); err != nil {
		return one, "", err
	}
	id, name, _ := strings.Cut(entry.Key, "/")
	of, err := personal.Parse(id)
	if err == nil {
		err = secret.CheckName(name)
	}
	if err == nil && r.Value == "" {
		err = errors.New("it is empty")
	}
	return Secret{Of: of, Name: name, Set: r.Set, By: r.By, Version: entry.Version, root: r.Root, sum: sha256.Sum256([]byte(r.Value))}, r.Value, err
}

// leave logs a record that can't be read, once. s.mu is held.
func (s *Store) leave(entry state.Entry, why error) {
	if s.left[entry.Key] != entry.Version {
		s.left[entry.Key] = entry.Version
		s.log.Error("a secret that a caller has set is ignored", "key", entry.Key, "error", why)
	}
}

// keyOf returns the key of a secret. No ID has a slash.
func keyOf(id personal.ID, name string) string { return string(id) + "/" + name }

// usable returns why no secret can be stored, or nil. s.mu is held.
func (s *Store) usable() error {
	if s.space == nil {
		return ErrNowhere
	}
	return s.lost
}

// A Keeping makes a change, and also records it where that is required, such as in an audit. A nil Keeping only makes the change.
type Keeping func(ctx context.Context, change func(ctx context.Context) error) error

func (k Keeping) do(ctx context.Context, change func(ctx context.Context) error) error {
	if k == nil {
		return change(ctx)
	}
	return k(ctx, change)
}

// Set gives a caller a secret of its own. It replaces the secret of that name, which must have the version expect. root answers for the caller.
// The secret is durable and in force when Set returns. keeping is not called if nothing can or needs to be changed. Errors that wrap
// [secret.ErrUnfit], [secret.ErrTooMany] and [state.ErrConflict] are for the caller; none shows the value.
func (s *Store) Set(ctx context.Context, id, root personal.ID, name, value, by string, expect int64, keeping Keeping) (now Secret, err error) {
	if err := secret.CheckName(name); err != nil {
		return now, fmt.Errorf("it is %w: %w", secret.ErrUnfit, err)
	}
	if err := secret.CheckBrought(value); err != nil {
		return now, err
	}
	key := keyOf(id, name)
	if err := s.refresh(ctx); err != nil {
		return now, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.renew(ctx, key)
	before := s.known[key]
	if err := cmp.Or(s.usable(), err, state.Conflict(before.Version, expect)); err != nil {
		return now, err
	}
	if before.sum == sha256.Sum256([]byte(value)) {
		return before, nil
	}
	if err := s.secrets.Admit(root, len(value)); err != nil {
		return now, err
	}
	now = Secret{Of: id, Name: name, Set: time.Now().UTC(), By: by, root: root, sum: sha256.Sum256([]byte(value))}
	written, err := state.Encode(Form, record{value, root, now.Set, by})
	if err != nil {
		return now, err
	}
	return now, keeping.do(ctx, func(ctx context.Context) error {
		if now.Version, err = s.space.Set(ctx, key, written, state.Any, state.SetOptions{}); err != nil {
			return fmt.Errorf("keep the secret: %w", err)
		}
		s.known[key] = now
		s.secrets.Bring(id, root, name, value)
		return nil
	})
}

// Remove removes a secret if it has the version expect, and reports whether there was one.
func (s *Store) Remove(ctx context.Context, id personal.ID, name string, expect int64, keeping Keeping) (was Secret, ok bool, err error) {
	if err := s.refresh(ctx); err != nil {
		return was, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.renew(ctx, keyOf(id, name))
	was, ok = s.known[keyOf(id, name)]
	if err := cmp.Or(s.usable(), err, state.Conflict(was.Version, expect)); err != nil || !ok {
		return was, false, err
	}
	return was, true, keeping.do(ctx, func(ctx context.Context) error { return s.remove(ctx, was) })
}

// remove removes one secret. s.mu is held.
func (s *Store) remove(ctx context.Context, one Secret) error {
	if _, err := s.space.Delete(ctx, keyOf(one.Of, one.Name), state.Any); err != nil {
		return fmt.Errorf("remove the secret: %w", err)
	}
	delete(s.known, keyOf(one.Of, one.Name))
	s.secrets.Bring(one.Of, one.root, one.Name, "")
	return nil
}

// Forget removes all secrets of a caller, and of the callers for whom it answers.
func (s *Store) Forget(ctx context.Context, id personal.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.space == nil {
		return nil
	}
	if s.lost != nil {
		return s.lost
	}
	for _, one := range s.sorted() {
		if one.Of == id || one.root == id {
			if err := s.remove(ctx, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// Follow takes over what other processes set and remove, until ctx ends.
func (s *Store) Follow(ctx context.Context) {
	if s.space == nil {
		return
	}
	state.Follow(ctx, s.space, "", state.Follower{
		Take: func(e state.Event) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.take(ctx, e.Key)
		},
		Whole: func(keys map[string]bool) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lost = nil
			s.unknown.Set(nil)
			for key := range s.known {
				if keys[key] {
					continue
				}
				if err := s.take(ctx, key); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// refresh makes sure that later reads see all that was stored before the call, if other processes change the space, too.
func (s *Store) refresh(ctx context.Context) error {
	if shared, ok := s.space.(state.Shared); ok {
		if err := shared.Refresh(ctx); err != nil {
			return fmt.Errorf("ask for the secret: %w", err)
		}
	}
	return nil
}

// renew does what take does, if other processes change the space, too. s.mu is held.
func (s *Store) renew(ctx context.Context, key string) error {
	if _, ok := s.space.(state.Shared); ok {
		return s.take(ctx, key)
	}
	return nil
}

// take reads the current record of a key, and puts it in force. A record that can't be read is left out, as at a start, and the secret that it
// replaces is no longer in force. The error is the state's. s.mu is held.
func (s *Store) take(ctx context.Context, key string) error {
	before, had := s.known[key]
	entry, has, err := s.space.Get(ctx, key, state.MaxValue)
	if err != nil || had && has && entry.Version == before.Version {
		return err
	}
	now, value, err := read(entry)
	if has && err == nil {
		delete(s.left, key)
		s.known[key] = now
		s.secrets.Bring(now.Of, now.root, now.Name, value)
		return nil
	}
	if has {
		s.leave(entry, err)
	} else {
		delete(s.left, key)
	}
	if had {
		delete(s.known, key)
		s.secrets.Bring(before.Of, before.root, before.Name, "")
	}
	return nil
}

// List describes all secrets, sorted by caller and name.
func (s *Store) List() ([]Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	return s.sorted(), nil
}

func (s *Store) sorted() (all []Secret) {
	for _, one := range s.known {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Secret) int { return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Name, b.Name)) })
	return all
}
