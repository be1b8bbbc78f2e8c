package sandbox

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// inQueue returns how many calls wait.
func inQueue(g *gate) int {
	_, waiting := g.state()
	return waiting
}

// enqueue makes a call wait, and returns when it has its place in the queue.
func enqueue(ctx context.Context, g *gate, entered chan<- int, number int) {
	before := inQueue(g)
	go func() {
		if g.enter(ctx) == nil {
			entered <- number
		} else {
			entered <- -number
		}
	}()
	for inQueue(g) == before {
		runtime.Gosched()
	}
}

// TestGateOrder is an internal test, because only the queue knows when a call has taken its place in it.
func TestGateOrder(t *testing.T) {
	t.Parallel()
	const calls = 10
	g := newGate(1, calls)
	if err := g.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	entered := make(chan int)
	gaveUp, giveUp := context.WithCancel(t.Context())
	for number := 1; number <= calls; number++ {
		ctx := t.Context()
		if number == 4 {
			ctx = gaveUp
		}
		enqueue(ctx, g, entered, number)
	}
	if err := g.enter(t.Context()); !errors.Is(err, errFull) {
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

// TestGateRace makes calls give up just when their turn comes: no place may get lost or be taken twice.
func TestGateRace(t *testing.T) {
	t.Parallel()
	g := newGate(1, 1)
	for range 1000 {
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		entered := make(chan int)
		enqueue(ctx, g, entered, 1)
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
