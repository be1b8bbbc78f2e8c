package signing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
)

// A signed is a text with its signature.
type signed struct {
	number    uint32
	signature [signing.Size]byte
}

func sign(k *signing.Keys) signed {
	number, signature := k.Sign([]byte("text"))
	return signed{number, signature}
}

func (s signed) isTakenBy(k *signing.Keys) bool {
	return k.Check(s.number, []byte("text"), s.signature)
}

func open(t *testing.T, store state.Store) (*signing.Keys, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return signing.Open(t.Context(), store, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// TestKeys checks that signatures with the keys of a state are accepted by all processes with that state, and by no others.
func TestKeys(t *testing.T) {
	t.Parallel()
	store := memory.New()
	one, log := open(t, store)
	two, _ := open(t, store)
	other, _ := open(t, memory.New())
	alone := signing.New()
	s := sign(one)
	if !s.isTakenBy(one) || !s.isTakenBy(two) || log.Len() > 0 {
		t.Errorf("a signature is not accepted: %s", log)
	}
	if s.isTakenBy(other) || s.isTakenBy(alone) || sign(alone).isTakenBy(one) || sign(alone).isTakenBy(signing.New()) {
		t.Error("a signature by other keys is accepted")
	}
	for i := range s.signature {
		forged := s
		forged.signature[i] ^= 1
		if forged.isTakenBy(one) {
			t.Errorf("a signature with byte %d changed is accepted", i)
		}
	}
	for _, number := range []uint32{0, s.number + 1, 1<<32 - 1} {
		if (signed{number, s.signature}).isTakenBy(one) {
			t.Errorf("a signature by key %d is accepted", number)
		}
	}
	if one.Check(s.number, []byte("texT"), s.signature) || one.Check(s.number, nil, s.signature) {
		t.Error("another text is accepted")
	}
}

// TestFirst starts many processes at the same time: all have the same key.
func TestFirst(t *testing.T) {
	t.Parallel()
	store := memory.New()
	all := make([]*signing.Keys, 20)
	var opening sync.WaitGroup
	for i := range all {
		opening.Go(func() { all[i] = signing.Open(t.Context(), store, slog.New(slog.DiscardHandler)) })
	}
	opening.Wait()
	for i, k := range all {
		if !sign(k).isTakenBy(all[(i+1)%len(all)]) {
			t.Errorf("process %d has another key", i)
		}
	}
}

// TestNextKey follows a key: it signs for a week, and is kept for another one. At all times, each of two processes accepts the other's signatures.
func TestNextKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := memory.New()
		one, _ := open(t, store)
		two, _ := open(t, store)
		var following sync.WaitGroup
		for _, k := range []*signing.Keys{one, two} {
			following.Go(func() { k.Follow(ctx) })
		}
		type dated struct {
			signed
			at time.Duration
		}
		var all []dated
		numbers := map[uint32]bool{}
		const step = 30 * time.Second
		for at := time.Duration(0); at < 3*signing.Period; at += step {
			if first := sign(one); !first.isTakenBy(two) || !sign(two).isTakenBy(one) {
				t.Fatalf("after %v one process does not accept what the other has signed", at)
			} else if at%time.Hour == 0 {
				numbers[first.number] = true
				all = append(all, dated{first, at})
				for _, s := range all {
					age := at - s.at
					switch is := s.isTakenBy(one); {
					case !is && age < signing.Period-2*time.Hour:
						t.Fatalf("after %v, a signature from %v ago is not accepted", at, age)
					case is && age > 2*signing.Period+2*time.Hour:
						t.Fatalf("after %v, a signature from %v ago is accepted", at, age)
					}
				}
			}
			time.Sleep(step)
			synctest.Wait()
		}
		if len(numbers) != 3 {
			t.Errorf("in three weeks %d keys have signed", len(numbers))
		}
		cancel()
		following.Wait()
	})
}

// TestBadRecord opens malformed records: they are not changed, and the process signs with a key of its own.
func TestBadRecord(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"nothing":                     "",
		"a record of a newer version": "\x02{}",
		"no JSON":                     "\x01[",
		"no key":                      "\x01[null]",
		"a short key":                 `` + "\x01" + `[{"number":1,"secret":"AAAA","made":"2026-01-01T00:00:00Z"}]`,
		"a zero":                      "\x01" + `[{"number":0,"secret":"` + strings.Repeat("A", 43) + `=","made":"2026-01-01T00:00:00Z"}]`,
		"too large":                   "\x01[" + strings.Repeat(" ", 5000) + "]",
	} {
		store := memory.New()
		space := store.Space(signing.Space)
		if _, err := space.Set(t.Context(), "keys", []byte(record), state.Absent, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		k, log := open(t, store)
		if s := sign(k); s.number != 0 || !s.isTakenBy(k) || !strings.Contains(log.String(), "known only to this server") {
			t.Errorf("%s: signs with %d; the log has %q", name, s.number, log)
		}
		if e, ok, err := space.Get(t.Context(), "keys", state.MaxValue); err != nil || !ok || string(e.Value) != record {
			t.Errorf("%s: the record is %q, %t, %v now", name, e.Value, ok, err)
		}
	}
}

// An away is a store that can't be used until it is back.
type away struct {
	state.Store
	back chan struct{}
}

func (a away) Space(name string) state.Space { return awaySpace{a.Store.Space(name), a} }

type awaySpace struct {
	state.Space
	away away
}

func (a awaySpace) Get(ctx context.Context, key string, most int) (state.Entry, bool, error) {
	select {
	case <-a.away.back:
		return a.Space.Get(ctx, key, most)
	default:
		return state.Entry{}, false, fmt.Errorf("%w: away", state.ErrUnavailable)
	}
}

// TestAway begins while the state is away: it logs nothing that the state has logged already, and uses a key of its own until the state is back. It
// still accepts what it has signed meanwhile.
func TestAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		there, _ := open(t, store)
		a := away{store, make(chan struct{})}
		k, log := open(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { k.Follow(ctx) })
		time.Sleep(time.Minute)
		before := sign(k)
		close(a.back)
		time.Sleep(2 * time.Second)
		if !sign(there).isTakenBy(k) || !sign(k).isTakenBy(there) || !before.isTakenBy(k) || before.isTakenBy(there) {
			t.Error("the keys are not those of the state")
		}
		if log.Len() > 0 {
			t.Errorf("the log has %s", log)
		}
		cancel()
		following.Wait()
	})
}

// A full is a store that can only be read.
type full struct{ state.Store }

func (f full) Space(name string) state.Space { return fullSpace{f.Store.Space(name)} }

type fullSpace struct{ state.Space }

func (fullSpace) Set(context.Context, string, []byte, int64, state.SetOptions) (uint64, error) {
	return 0, errors.Join(state.ErrUnavailable)
}

// TestReadOnly has a state that can't be written when the next key is due: the last key stays in use.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		there, _ := open(t, store)
		time.Sleep(2 * signing.Period)
		k, log := open(t, full{store})
		if s := sign(k); s.number == 0 || !s.isTakenBy(there) || log.Len() > 0 {
			t.Errorf("signs with key %d; the log has %q", s.number, log)
		}
	})
}
