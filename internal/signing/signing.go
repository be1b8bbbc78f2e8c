// Package signing signs what a server gives to clients and later gets back, such as session ids, so that all servers with the same state accept it.
// The keys are in the state.
//
// A key signs for a week, and is kept for another week, after which its signatures are no longer valid. What is signed contains no time, so the
// servers' clocks may differ: only the server that makes the next key looks at its clock.
package signing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

const (
	// Space is the name of the space with the keys.
	Space = "signing"
	// Form is the format of its record.
	Form byte = 1
	// record is the key of the one record.
	record = "keys"
	// maxRecord is the largest size of the record in bytes.
	maxRecord = 4 << 10

	// Period is how long a key signs.
	Period = 7 * 24 * time.Hour
	// known is how many keys are kept at most.
	known = 2
	// settle is how long a key must be known before it signs, so that the other servers know it, too.
	settle = time.Minute
	// lookEvery is how often the keys are read again even if nothing has changed.
	lookEvery = time.Hour
)

// Size is the size of a signature in bytes.
const Size = 16

// Keys has the keys of one state. It is safe for concurrent use.
type Keys struct {
	own    *key // this process's own key, for when the state can't be read
	shared atomic.Pointer[[]*key]
	space  state.Space      // nil if the keys are this process's own
	alone  *trouble.Trouble // logs that the keys can't be read or made
}

// A key is identified by its number.
type key struct {
	Number uint32    `json:"number"` // 0 only for a process's own key
	Secret []byte    `json:"secret"`
	Made   time.Time `json:"made"`
	since  time.Time // when this process first read it; zero if it signs at once
}

// New returns Keys with a key of this process alone.
func New() *Keys {
	k := &Keys{own: newKey(0)}
	k.shared.Store(&[]*key{})
	return k
}

// Open returns the keys in a store, and makes the first one if there is none. If that fails, or st is nil, there is only a key of this process, until
// Follow finds others.
func Open(ctx context.Context, store state.Store, log *slog.Logger) *Keys {
	k := New()
	if store == nil {
		return k
	}
	k.space = store.Space(Space)
	k.alone = trouble.New(log, slog.LevelError, "MCP sessions that begin here are known only to this server", "MCP sessions that begin here are known to the other servers again")
	k.note(k.take(ctx))
	return k
}

func newKey(number uint32) *key {
	k := &key{Number: number, Secret: make([]byte, sha256.Size), Made: time.Now().UTC()}
	_, _ = rand.Read(k.Secret) // which never fails
	return k
}

// Follow reads new keys of other processes, and makes the next key when it is time, until ctx ends.
func (k *Keys) Follow(ctx context.Context) {
	for k.space != nil && ctx.Err() == nil {
		k.followFor(ctx, lookEvery)
	}
}

// followFor follows changes for a while. When it begins again, it reads the keys even if nothing has changed.
func (k *Keys) followFor(ctx context.Context, while time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, while)
	defer cancel()
	state.Follow(ctx, k.space, record, state.Follower{
		Take:   func(state.Event) error { return k.take(ctx) },
		Whole:  func(map[string]bool) error { return k.take(ctx) },
		Failed: k.note,
	})
}

// note logs whether the keys can be read and made. It does not log that the state is away, which is logged elsewhere.
func (k *Keys) note(err error) {
	if !errors.Is(err, state.ErrUnavailable) {
		k.alone.Set(err)
	}
}

// take reads the keys of the state, and makes one if it is time.
func (k *Keys) take(ctx context.Context) error {
	for {
		all, version, err := k.read(ctx)
		if err != nil {
			return err
		}
		if len(all) > 0 && time.Since(all[0].Made) < Period {
			k.learn(all)
			return nil
		}
		next := uint32(1)
		if len(all) > 0 {
			k.learn(all)
			next = max(1, all[0].Number+1)
		}
		all = append([]*key{newKey(next)}, all...)
		if err = k.write(ctx, all[:min(known, len(all))], version); err == nil || errors.Is(err, state.ErrConflict) {
			continue // another process has changed the record: read it again
		}
		if len(all) > 1 && errors.Is(err, state.ErrUnavailable) {
			return nil // the present keys stay in use: the state can be read, but not be written now
		}
		return err
	}
}

// read returns the keys of the state, the newest first, and their version.
func (k *Keys) read(ctx context.Context) ([]*key, int64, error) {
	entry, ok, err := k.space.Get(ctx, record, maxRecord)
	if err != nil || !ok {
		return nil, state.Absent, err
	}
	var all []*key
	if err := state.Decode(entry.Value, Form, &all); err != nil {
		return nil, 0, fmt.Errorf("the record %q of %q: %w", record, Space, err)
	}
	for _, one := range all {
		if one == nil || one.Number == 0 || len(one.Secret) != sha256.Size {
			return nil, 0, fmt.Errorf("the record %q of %q has a key in another format: delete it, so that a new one is made", record, Space)
		}
	}
	return all[:min(known, len(all))], int64(entry.Version), nil
}

func (k *Keys) write(ctx context.Context, all []*key, version int64) error {
	value, err := state.Encode(Form, all)
	if err != nil {
		return err
	}
	_, err = k.space.Set(ctx, record, value, version, state.SetOptions{})
	return err
}

// learn puts keys in force for signing and checking.
func (k *Keys) learn(all []*key) {
	before := *k.shared.Load()
	for i, one := range all {
		at := slices.IndexFunc(before, func(b *key) bool { return b.Number == one.Number && hmac.Equal(b.Secret, one.Secret) })
		switch {
		case at >= 0:
			all[i] = before[at]
		case i == 0 && len(all) > 1:
			one.since = time.Now()
		}
	}
	k.shared.Store(&all)
}

// Sign signs a text, and returns the number of the key and the signature. The text must say what it is for, so that a signature for one purpose can't
// be used for another.
func (k *Keys) Sign(text []byte) (number uint32, signature [Size]byte) {
	with := k.own
	switch all := *k.shared.Load(); {
	case len(all) == 0:
	case len(all) > 1 && !all[0].since.IsZero() && time.Since(all[0].since) < settle:
		with = all[1]
	default:
		with = all[0]
	}
	return with.Number, with.sign(text)
}

// Check reports whether a signature of a text was made by the key with a number. It takes as long for a wrong signature as for a right one.
func (k *Keys) Check(number uint32, text []byte, signature [Size]byte) bool {
	with := k.own
	if number != 0 {
		all := *k.shared.Load()
		at := slices.IndexFunc(all, func(one *key) bool { return one.Number == number })
		if at < 0 {
			return false
		}
		with = all[at]
	}
	is := with.sign(text)
	return hmac.Equal(is[:], signature[:])
}

func (k *key) sign(text []byte) (signature [Size]byte) {
	h := hmac.New(sha256.New, k.Secret)
	_, _ = h.Write(text)
	copy(signature[:], h.Sum(nil))
	return signature
}
