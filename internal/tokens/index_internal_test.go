package tokens

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestIndexOfChanges makes random changes. After each, it compares the index, in which only some parts are new, with one that is made from all
// tokens.
func TestIndexOfChanges(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	s := Open(memory.New(), Options{})
	t.Cleanup(func() { _ = s.Close() })
	random := rand.New(rand.NewPCG(1, 2))
	ctx := t.Context()
	scopes := [][]string{{"a/*"}, {"*"}, {"a/b", "b/*"}, {}}
	networks := [][]netip.Prefix{nil, {netip.MustParsePrefix("10.0.0.0/8")}, {netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("192.168.0.0/16")}}
	done := map[string]int{}
	for step := range 2000 {
		s.mu.Lock()
		names := slices.Sorted(maps.Keys(s.known))
		principals := map[string]*wasmtools.Principal{}
		for name, one := range s.known {
			principals[name] = one.principal
		}
		s.mu.Unlock()
		spec := Spec{Name: fmt.Sprint("t", step), Scopes: scopes[random.IntN(len(scopes))], Networks: networks[random.IntN(len(networks))], Lifetime: time.Duration(1+random.IntN(100)) * time.Hour}
		what, err := "add", error(nil)
		if random.IntN(3) == 0 || len(names) < 3 {
			_, _, err = s.Add(ctx, spec)
		} else {
			name := names[random.IntN(len(names))]
			switch random.IntN(7) {
			case 0, 1:
				what = "attenuate"
				spec.Lifetime = 0
				if p := principals[name]; p != nil {
					_, _, err = s.Attenuate(ctx, p, spec)
				}
			case 2:
				what = "rotate"
				_, _, err = s.Rotate(ctx, name, time.Duration(random.IntN(3))*time.Hour, state.Any)
			case 3:
				what = "revoke"
				_, err = s.Revoke(ctx, name, state.Any)
			case 6:
				what = "elsewhere" // the tokens that it made are still listed, and are refused
				if _, err = s.space.Delete(ctx, keyName+name, state.Any); err == nil {
					err = s.refresh(ctx, name)
				}
			case 4:
				what = "scopes"
				_, err = s.SetScopes(ctx, name, spec.Scopes, state.Any)
			case 5:
				what = "rate"
				_, err = s.SetRate(ctx, name, wasmtools.Rate{Calls: 1 + random.IntN(9), Period: time.Second}, state.Any)
			}
		}
		if err == nil {
			done[what]++
		}
		s.mu.Lock()
		quick := s.index.Load()
		s.publishAll()
		whole := s.index.Load()
		s.index.Store(quick)
		s.mu.Unlock()
		for i := range whole.parts {
			if !maps.EqualFunc(quick.parts[i], whole.parts[i], func(a, b *entry) bool {
				return a.principal == b.principal && a.ends == b.ends && a.used == b.used && slices.Equal(a.networks, b.networks)
			}) {
				t.Fatalf("after step %d, %s, the part %d has %v, want %v", step, what, i, quick.parts[i], whole.parts[i])
			}
		}
		if !whole.next.IsZero() && (quick.next.IsZero() || quick.next.After(whole.next)) {
			t.Fatalf("after step %d, %s, the index says that the next token ends at %v, but one ends at %v", step, what, quick.next, whole.next)
		}
	}
	for _, what := range []string{"add", "attenuate", "rotate", "revoke", "scopes", "rate", "elsewhere"} {
		if done[what] < 20 {
			t.Errorf("only %d changes were of the kind %q: %v", done[what], what, done)
		}
	}
}

// BenchmarkTakeUp changes one of many tokens, and measures how long it takes to put the change in force.
func BenchmarkTakeUp(b *testing.B) {
	for _, n := range []int{1, 1000, 99_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := Open(nil, Options{})
			b.Cleanup(func() { _ = s.Close() })
			entry := func(i int) state.Entry {
				value, err := state.Encode(Form, record{ID: fmt.Sprintf("%010d", i), Digest: sha256.Sum256(fmt.Append(nil, i)), Scopes: []string{"math/*"}, Created: time.Now(), Expires: time.Now().Add(time.Hour)})
				if err != nil {
					b.Fatal(err)
				}
				return state.Entry{Value: value}
			}
			s.mu.Lock()
			for i := range n {
				s.put(fmt.Sprint("ci", i), entry(i))
			}
			s.settleAll("")
			s.publish()
			s.mu.Unlock()
			changed := entry(0)
			for b.Loop() {
				s.mu.Lock()
				s.put("ci0", changed)
				s.settleAll("ci0")
				s.publish()
				s.mu.Unlock()
			}
		})
	}
}
