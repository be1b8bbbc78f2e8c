package state_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
)

// A follower records what Follow passes to it.
type follower struct {
	mu    sync.Mutex
	told  []string
	wrong map[string]error // the errors that it returns, by what it was told
}

func (f *follower) note(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, what)
	return f.wrong[what]
}

// taken returns what the follower was told since the last call of taken.
func (f *follower) taken() string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.told, ", ")
	f.told = nil
	return all
}

func (f *follower) fail(what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = map[string]error{what: err}
}

// of returns a Follower that passes everything to f.
func (f *follower) of() state.Follower {
	return state.Follower{
		Take: func(e state.Event) error {
			if e.Deleted {
				return f.note("-" + e.Key)
			}
			return f.note(e.Key + "=" + string(e.Value))
		},
		Whole:  func(keys map[string]bool) error { return f.note(fmt.Sprint("all of ", slices.Sorted(maps.Keys(keys)))) },
		Failed: func(err error) { _ = f.note(fmt.Sprint("failed: ", err)) },
	}
}

// TestFollow follows a space that changes. The follower fails for a time, and the space is closed in the end.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		space := store.Space("a")
		set := func(key, value string) {
			t.Helper()
			if _, err := space.Set(t.Context(), key, []byte(value), state.Any, state.SetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		f := &follower{}
		want := func(want string) {
			t.Helper()
			if got := f.taken(); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		}
		set("in/a", "1")
		set("in/b", "2")
		set("out", "3")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); state.Follow(ctx, space, "in/", f.of()) }()
		want("in/a=1, in/b=2, all of [in/a in/b], failed: <nil>")
		set("out", "4")
		set("in/c", "5")
		if _, err := space.Delete(t.Context(), "in/a", state.Any); err != nil {
			t.Fatal(err)
		}
		want("in/c=5, -in/a")

		f.fail("in/d=6", errors.New("too many"))
		set("in/d", "6")
		want("in/d=6, failed: too many")
		pauses := map[time.Duration]bool{}
		for range 20 {
			began := time.Now()
			for f.taken() == "" {
				time.Sleep(time.Millisecond)
			}
			pause := time.Since(began).Round(10 * time.Millisecond)
			if pauses[pause] = true; pause < state.FollowAgain/2 || pause > state.FollowAgain/2*3 {
				t.Errorf("it was tried again after %v", pause)
			}
		}
		if len(pauses) < 5 {
			t.Errorf("all attempts come after %v: servers would come all at once", pauses)
		}
		f.fail("all of [in/b in/c in/d]", errors.New("not now"))
		time.Sleep(state.FollowAgain * 2)
		if got := f.taken(); !strings.Contains(got, "in/b=2, in/c=5, in/d=6, all of [in/b in/c in/d], failed: not now") || strings.Contains(got, "nil") {
			t.Errorf("got %s", got)
		}
		f.fail("", nil)
		time.Sleep(state.FollowAgain * 2)
		want("in/b=2, in/c=5, in/d=6, all of [in/b in/c in/d], failed: <nil>")

		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if got := f.taken(); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, state.ErrUnavailable.Error()) {
			t.Errorf("the store is closed: got %s", got)
		}
		cancel()
		<-ended
		if got := f.taken(); got != "" {
			t.Errorf("it has ended, and reports %s", got)
		}
	})
}

// TestFollowEnded starts to follow with a context that is done: nothing happens.
func TestFollowEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &follower{}
	state.Follow(ctx, memory.New().Space("a"), "", f.of())
	if len(f.told) > 0 {
		t.Errorf("it was told %s", f.told)
	}
	// A Follower that wants only entries needs no other functions.
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	closed := memory.New()
	_ = closed.Close()
	for _, store := range []*memory.Store{memory.New(), closed} {
		state.Follow(ctx, store.Space("a"), "", state.Follower{Take: func(state.Event) error { return nil }})
	}
}
