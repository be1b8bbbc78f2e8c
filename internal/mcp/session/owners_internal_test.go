package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOwners makes random changes, and compares each victim with that of a search through all sessions.
func TestOwners(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	o := owners{of: map[owner]*owned{}}
	var all []*session      // all sessions, the last used at the end
	last := map[owner]int{} // step in which an owner last began, used or lost a session
	for step := range 50_000 {
		switch n := len(all); {
		case n == 0 || n < 60 && random.IntN(3) == 0:
			x := &session{owner: owner{name: fmt.Sprint(random.IntN(12))}, busy: random.IntN(2)}
			if random.IntN(2) == 0 {
				x.stream = &stream{}
			}
			o.add(x)
			all, last[x.owner] = append(all, x), step
		case random.IntN(2) == 0:
			i := random.IntN(n)
			o.remove(all[i])
			last[all[i].owner] = step
			all = slices.Delete(all, i, i+1)
		default:
			i := random.IntN(n)
			x := all[i]
			x.busy = random.IntN(2)
			o.touch(x)
			all, last[x.owner] = append(slices.Delete(all, i, i+1), x), step
		}
		if got, want := o.victim(), search(all, last); got != want {
			t.Fatalf("step %d, %d sessions: got %+v, want %+v", step, len(all), got, want)
		}
		counted := 0
		for _, own := range o.all() {
			counted += own.Len()
		}
		if counted != len(all) {
			t.Fatalf("step %d: got %d sessions, want %d", step, counted, len(all))
		}
	}
}

// search returns the victim among sessions, those used last at the end.
func search(all []*session, last map[owner]int) *session {
	count, most := map[owner]int{}, 0
	for _, x := range all {
		count[x.owner]++
		most = max(most, count[x.owner])
	}
	var who []owner
	for o, n := range count {
		if n == most {
			who = append(who, o)
		}
	}
	slices.SortFunc(who, func(a, b owner) int { return last[a] - last[b] })
	for _, o := range who {
		for _, withStream := range []bool{false, true} {
			for _, x := range all {
				if x.owner == o && x.busy == 0 && (x.stream != nil) == withStream {
					return x
				}
			}
		}
	}
	return nil
}

// TestVictimIsFoundSoon checks that the search ends soon, even if many owners have only busy sessions.
func TestVictimIsFoundSoon(t *testing.T) {
	t.Parallel()
	o := owners{of: map[owner]*owned{}}
	idle := &session{owner: owner{name: "idle"}}
	for i := range 2 * mostLooks {
		o.add(&session{owner: owner{name: fmt.Sprint(i)}, busy: 1})
	}
	o.add(idle)
	if got := o.victim(); got != nil {
		t.Errorf("got %+v after more than %d busy ones, want none", got, mostLooks)
	}
	o.add(&session{owner: owner{name: "idle"}, busy: 1})
	if got := o.victim(); got != idle {
		t.Errorf("got %+v, want the idle one of the owner with the most", got)
	}
}

// BenchmarkVictim puts aside one session for each new session, while n owners have one session each.
func BenchmarkVictim(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := owners{of: map[owner]*owned{}}
			names := make([]owner, 2*n)
			for i := range names {
				names[i].name = fmt.Sprint(i)
			}
			for i := range n {
				o.add(&session{owner: names[i]})
			}
			b.ResetTimer()
			for i := range b.N {
				o.remove(o.victim())
				o.add(&session{owner: names[(n+i)%len(names)]})
			}
		})
	}
}
