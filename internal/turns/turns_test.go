package turns_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/toolsrv/toolsrv/internal/turns"
)

// TestTurns makes keys wait for a place: they take turns, however many each wants.
// Proves: A tool stops
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := turns.New[string, string](1)
		var mu sync.Mutex
		var got []string
		wait := func(ctx context.Context, key string) {
			go func() {
				err := p.Enter(ctx, "", key)
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
		if !p.Try("", "x") || p.Try("", "x") {
			t.Error("there is not exactly one place")
		}
		for range 3 {
			wait(t.Context(), "a")
		}
		gone, cancel := context.WithCancelCause(t.Context())
		wait(gone, "b")
		wait(t.Context(), "c")
		cancel(errors.New("gave up"))
		expect("b gave up", 4)
		last := "x"
		for k, want := range []string{"a", "c", "a", "a"} {
			p.Leave("", last)
			expect(want, 3-k)
			last = want
		}
		p.Leave("", last)
		wait(gone, "b")
		expect("b", 0) // the request need not wait
		p.Leave("", "b")
		if p.Free() != 1 {
			t.Errorf("in the end %d places are free", p.Free())
		}
	})
}

// TestAll lets many goroutines enter and leave: no more of them are inside than there are places, and no place is lost.
// Proves: A tool stops
func TestAll(t *testing.T) {
	t.Parallel()
	const places = 3
	p := turns.New[string, int](places)
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
				party, key := strconv.Itoa(key%3), key%5
				if p.Enter(ctx, party, key) == nil {
					mu.Lock()
					if inside++; inside > places {
						t.Errorf("%d are inside", inside)
					}
					mu.Unlock()
					mu.Lock()
					inside--
					mu.Unlock()
					if n%4 != 0 || !p.Pass(party, key) {
						p.Leave(party, key)
					}
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

// TestParties lets a party want many places for several keys: others get as many as it has, and its keys share its places. The party with the fewest
// places keeps them.
// Proves: Clients keep nobody out
func TestParties(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		places int
		wants  string // parties and keys, in the order in which they come; the first ones find a place free
		passes string // the holders that pass their place on if others wait
		want   string // the holders of places in the end
	}{
		{"one party and key", 2, "1a 1a 1a 1a", "1a", "1a 1a"},
		{"a party takes its turn", 1, "1a 1a 2a", "1a", "1a"},
		{"and the next one its own", 1, "1a 1a 1a 2a", "1a 1a", "2a"},
		{"a party keeps its only place", 2, "1a 2a 1a 1a 1a", "2a 2a 2a", "1a 2a"},
		{"the other party has the remaining places", 4, "1a 1a 1a 1a 1a 1a 2a", "1a 1a 1a 2a 1a", "1a 1a 1a 2a"},
		{"half and half", 4, "1a 1a 1a 1a 2a 2a 2a 1a", "1a 1a 1a 1a 2a 2a 1a", "1a 1a 2a 2a"},
		{"three and two places", 2, "1a 2a 1a 3a", "2a", "1a 3a"},
		{"many keys are one party", 2, "1a 1b 1c 1d 1e 2a", "1a 1b 2a 2a", "1c 2a"},
		{"keys of a party", 2, "1a 1a 1a 1a 1b", "1a 1a 1b 1b", "1a 1b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := turns.New[string, string](test.places)
				ctx, cancel := context.WithCancel(t.Context())
				var mu sync.Mutex
				var has []string
				enter := func(who string) {
					go func() {
						if p.Enter(ctx, who[:1], who[1:]) == nil {
							mu.Lock()
							has = append(has, who)
							mu.Unlock()
						}
					}()
					synctest.Wait()
				}
				for who := range strings.FieldsSeq(test.wants) {
					enter(who)
				}
				for who := range strings.FieldsSeq(test.passes) {
					mu.Lock()
					i := slices.Index(has, who)
					if i < 0 {
						t.Fatalf("%s has no place: the places belong to %q", who, has)
					}
					if has = slices.Delete(has, i, i+1); !p.Pass(who[:1], who[1:]) {
						has = append(has, who)
						mu.Unlock()
						continue
					}
					mu.Unlock()
					enter(who)
				}
				mu.Lock()
				slices.Sort(has)
				if got := strings.Join(has, " "); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
				mu.Unlock()
				cancel()
				synctest.Wait()
				for _, who := range has {
					p.Leave(who[:1], who[1:])
				}
				if p.Waiting() != 0 || p.Free() != test.places {
					t.Errorf("in the end %d wait, and %d places are free", p.Waiting(), p.Free())
				}
			})
		})
	}
}

// BenchmarkTurns measures taking a free place, and one that has to be waited for.
func BenchmarkTurns(b *testing.B) {
	type caller struct {
		origin, realm, name string
		network             [32]byte
	}
	who := caller{"issued", "", "ci", [32]byte{}}
	b.Run("free", func(b *testing.B) {
		p := turns.New[caller, string](2)
		b.ReportAllocs()
		for b.Loop() {
			p.Try(who, "digest")
			p.Leave(who, "digest")
		}
	})
	for _, parties := range []int{1, 100} {
		b.Run(strconv.Itoa(parties)+" parties", func(b *testing.B) {
			p := turns.New[string, string](4)
			b.ReportAllocs()
			var all sync.WaitGroup
			for n := range 100 {
				party := strconv.Itoa(n % parties)
				all.Go(func() {
					for range b.N / 100 {
						if p.Enter(b.Context(), party, "a") != nil {
							return
						}
						p.Leave(party, "a")
					}
				})
			}
			all.Wait()
		})
	}
}
