package sandbox

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// inQueue returns how many calls wait.
func inQueue(g *gate) int {
	_, waiting := g.state()
	return waiting
}

// enqueue adds a waiting call of a party, and returns when the call has its place in the queue.
func enqueue(ctx context.Context, g *gate, party string, entered chan<- int, number int) {
	before := inQueue(g)
	go func() {
		if g.enter(ctx, party) == nil {
			entered <- number
		} else {
			entered <- -number
		}
	}()
	for inQueue(g) == before {
		runtime.Gosched()
	}
}

// TestGateOrder is an internal test, because only the gate knows when a call has taken its place in the queue.
func TestGateOrder(t *testing.T) {
	t.Parallel()
	const calls = 10
	g := newGate(1, calls)
	if err := g.enter(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	entered := make(chan int)
	gaveUp, giveUp := context.WithCancel(t.Context())
	for number := 1; number <= calls; number++ {
		ctx := t.Context()
		if number == 4 {
			ctx = gaveUp
		}
		enqueue(ctx, g, "", entered, number)
	}
	if err := g.enter(t.Context(), ""); !errors.Is(err, errFull) {
		t.Errorf("call %d: got %v, want errFull", calls+1, err)
	}
	giveUp()
	if number := <-entered; number != -4 {
		t.Errorf("call %d returned, want call 4 to have given up", number)
	}
	for number := 1; number <= calls; number++ {
		if number == 4 {
			continue
		}
		g.leave()
		if got := <-entered; got != number {
			t.Errorf("call %d entered, want call %d", got, number)
		}
	}
	g.leave()
	if free, waiting := g.state(); free != 1 || waiting != 0 {
		t.Errorf("%d places are free and %d wait, want 1 and 0", free, waiting)
	}
}

// TestGateRace has calls give up just when their turn comes. No place may get lost or be taken twice.
func TestGateRace(t *testing.T) {
	t.Parallel()
	g := newGate(1, 1)
	for range 1000 {
		if err := g.enter(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		entered := make(chan int)
		enqueue(ctx, g, "", entered, 1)
		go cancel()
		g.leave()
		if <-entered == 1 {
			g.leave()
		}
	}
	if free, waiting := g.state(); free != 1 || waiting != 0 {
		t.Errorf("%d places are free and %d wait, want 1 and 0", free, waiting)
	}
}

// TestGateTurns has parties wait with different numbers of calls. They take turns and, if the queue is full, the party with the most
// calls must give way.
func TestGateTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 6)
		if err := g.enter(t.Context(), "flood"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got []string
		wait := func(ctx context.Context, party string, calls ...string) {
			for _, call := range calls {
				go func() {
					err := g.enter(ctx, party)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						call += ": " + err.Error()
					}
					got = append(got, call)
				}()
				synctest.Wait()
			}
		}
		expect := func(want string, waiting int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if now := strings.Join(got, ", "); now != want || inQueue(g) != waiting {
				t.Errorf("got %q, and %d wait; want %q and %d", now, inQueue(g), want, waiting)
			}
			got = nil
		}
		wait(t.Context(), "flood", "f1", "f2", "f3", "f4", "f5", "f6")
		expect("", 6)
		wait(t.Context(), "flood", "f7")
		expect("f7: the queue is full", 6)
		wait(t.Context(), "a", "a1")
		expect("f6: the queue is full", 6)
		gone, cancel := context.WithCancelCause(t.Context())
		wait(gone, "b", "b1")
		expect("f5: the queue is full", 6)
		wait(t.Context(), "a", "a2") // with this call, the parties have 4, 2 and 1
		expect("f4: the queue is full", 6)
		wait(t.Context(), "a", "a3") // they have 3, 2 and 1: in place of f3, a3 would only make party a the largest
		expect("a3: the queue is full", 6)
		cancel(errors.New("gave up"))
		expect("b1: gave up", 5)
		wait(t.Context(), "c", "c1")
		for n, want := range []string{"f1", "a1", "c1", "f2", "a2", "f3"} {
			g.leave()
			expect(want, 5-n)
		}
		g.leave()
		if free, _ := g.state(); free != 1 || len(g.lines)+g.turns.Len()+len(g.ranks) != 0 {
			t.Errorf("in the end %d places are free, and %d lines are left", free, len(g.lines))
		}
	})
}

// TestGateManyParties has more parties than there are places to wait. The places bound what the gate holds, and no place gets lost.
func TestGateManyParties(t *testing.T) {
	t.Parallel()
	const places, queue = 3, 16
	g := newGate(places, queue)
	var all sync.WaitGroup
	var inside, most, most2 atomic.Int64
	for n := range 64 {
		all.Go(func() {
			for k := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if k%3 == 0 {
					go cancel()
				}
				if g.enter(ctx, strconv.Itoa((n*k)%40)) == nil {
					if now := inside.Add(1); now > places {
						most.Store(now)
					}
					runtime.Gosched()
					inside.Add(-1)
					g.leave()
				}
				if waiting := int64(inQueue(g)); waiting > queue {
					most2.Store(waiting)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if free, waiting := g.state(); free != places || waiting != 0 || len(g.lines)+g.turns.Len()+len(g.ranks) != 0 || most.Load() > 0 || most2.Load() > 0 {
		t.Errorf("in the end %d places are free, %d wait, %d lines are left; %d were inside, and %d waited", free, waiting, len(g.lines), most.Load(), most2.Load())
	}
}
