package turns_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/toolsrv/toolsrv/internal/turns"
)

// TestTurns makes keys wait for a place: they take turns, whichever wants most.
// Proves: A tool stops
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := turns.New[string](1)
		var mu sync.Mutex
		var got []string
		wait := func(ctx context.Context, key string) {
			go func() {
				err := p.Enter(ctx, key, "")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					key += " " + err.Error()
				}
				got = append(got, key)
			}()
			synctest.Wait()
		}
		expect := func(want string, waiting int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if now := strings.Join(got, ", "); now != want || p.Waiting() != waiting {
				t.Errorf("got %q, and %d wait; want %q and %d", now, p.Waiting(), want, waiting)
			}
			got = nil
		}
		if !p.Try() || p.Try() {
			t.Error("there is not one place")
		}
		for range 3 {
			wait(t.Context(), "a")
		}
		gone, cancel := context.WithCancelCause(t.Context())
		wait(gone, "b")
		wait(t.Context(), "c")
		cancel(errors.New("gave up"))
		expect("b gave up", 4)
		for k, want := range []string{"a", "c", "a", "a"} {
			p.Leave()
			expect(want, 3-k)
		}
		p.Leave()
		wait(gone, "b")
		expect("b", 0) // it need not wait
		p.Leave()
		if p.Free() != 1 {
			t.Errorf("in the end %d places are free", p.Free())
		}
	})
}

// TestAll has many come and go: no more are inside than there are places, and none is lost.
// Proves: A tool stops
func TestAll(t *testing.T) {
	t.Parallel()
	const places = 3
	p := turns.New[int](places)
	var mu sync.Mutex
	inside := 0
	var all sync.WaitGroup
	for key := range 16 {
		all.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					go cancel()
				}
				if p.Enter(ctx, key%5, strconv.Itoa(key%3)) == nil {
					mu.Lock()
					if inside++; inside > places {
						t.Errorf("%d are inside", inside)
					}
					mu.Unlock()
					mu.Lock()
					inside--
					mu.Unlock()
					p.Leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if p.Free() != places || p.Waiting() != 0 {
		t.Errorf("in the end %d places are free, and %d wait", p.Free(), p.Waiting())
	}
}

// TestParties has a party wait with many requests for a key: others that wait for the same key, and other keys, have one turn each.
// Proves: Clients keep nobody out
func TestParties(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := turns.New[string](1)
		p.Try()
		var mu sync.Mutex
		var got []string
		wait := func(key, party string) {
			go func() {
				if p.Enter(t.Context(), key, party) == nil {
					mu.Lock()
					got = append(got, key+party)
					mu.Unlock()
				}
			}()
			synctest.Wait()
		}
		for range 4 {
			wait("a", "1")
		}
		wait("a", "2")
		wait("b", "3")
		wait("a", "2")
		for range 7 {
			p.Leave()
			synctest.Wait()
		}
		p.Leave()
		if now := strings.Join(got, " "); now != "a1 b3 a2 a1 a2 a1 a1" || p.Waiting() != 0 || p.Free() != 1 {
			t.Errorf("got %s; %d wait, and %d places are free", now, p.Waiting(), p.Free())
		}
	})
}
