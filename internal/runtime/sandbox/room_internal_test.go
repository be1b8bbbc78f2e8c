package sandbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// grows has a guest that logs a line while it starts, and then takes 4 pages more. Its call returns the first byte of its memory.
func grows(t *testing.T) []byte {
	t.Helper()
	const was, is = "\x0a\x17\x02\x0a\x00\x41\x01\x41\x00\x41\x01\x10\x00\x0b", "\x0a\x1c\x02\x0f\x00\x41\x01\x41\x00\x41\x01\x10\x00\x41\x04\x40\x00\x1a\x0b"
	module := bytes.Replace(logs, []byte(was), []byte(is), 1)
	if len(module) != len(logs)+5 {
		t.Fatal("the module has changed")
	}
	return module
}

// unlike returns n programs of a module whose first byte of memory is 1. They share nothing, since the byte after that is different in each.
func unlike(t *testing.T, e *Engine, module []byte, n int) []*Program {
	t.Helper()
	all := make([]*Program, n)
	for k := range all {
		all[k] = loadInternal(t, e, append(bytes.Clone(module), "\x0b\x08\x01\x00\x41\x00\x0b\x021"+string(rune('A'+k))...))
	}
	return all
}

// answers calls a tool, and expects a result.
func answers(t *testing.T, p *Program, l limits.Limits) {
	t.Helper()
	if out, err := p.Tool("x", 0, l).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Errorf("got %s, %v, want 1", out, err)
	}
}

const (
	grownInstance = 5*pageSize + instanceSize
	smallSnapshot = 4 << 10 // only one page of the snapshot is not zero
)

// TestStartsTakeTurns has two starts hold all the room there is, and then want more. One of them gives up what it has, and begins again when
// the other is done.
// Proves: Limits hold, one by one and in sum
func TestStartsTakeTurns(t *testing.T) {
	t.Parallel()
	const limit = grownInstance + smallSnapshot + pageSize // also enough for two instances that have not grown
	var met sync.WaitGroup
	var lines atomic.Int32
	met.Add(2)
	e, _ := poolEngine(t, Config{Memory: limit, Logger: slog.New(hook{slog.DiscardHandler, func() {
		if lines.Add(1) <= 2 {
			met.Done()
			met.Wait()
		}
	}})}, "hostile/hoard")
	var calls sync.WaitGroup
	begun := time.Now()
	for _, p := range unlike(t, e, grows(t), 2) {
		calls.Go(func() { answers(t, p, limits.Limits{Timeout: 10 * time.Minute}) })
	}
	calls.Wait()
	// If the starts had waited for each other, they would have waited for a quarter of the time limit.
	if took := time.Since(begun); took > 2*time.Minute || lines.Load() < 3 {
		t.Errorf("took %v and %d starts, want at least 3: one start had to give way and begin again", took, lines.Load())
	}
}

// TestStartsKnowThePeak has a start take at once what an earlier start of the same code needed in the end.
// Proves: Limits hold, one by one and in sum
func TestStartsKnowThePeak(t *testing.T) {
	t.Parallel()
	const limit = grownInstance + smallSnapshot
	var lines atomic.Int32
	e, _ := poolEngine(t, Config{Memory: limit, Logger: slog.New(hook{slog.DiscardHandler, func() { lines.Add(1) }})}, "hostile/hoard")
	p := unlike(t, e, grows(t), 1)[0]
	answers(t, p, limits.Limits{})
	if n := lines.Load(); n != 1 {
		t.Fatalf("it took %d starts, with room for all that a start takes", n)
	}
	e.reclaim(nil, account.Memory, limit)
	e.account.Add(account.Memory, pageSize) // there is room for a start until it grows
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		_, err := p.Tool("x", 0, limits.Limits{Timeout: time.Minute}).Call(ctx, CallSpec{})
		called <- err
	}()
	awaitWait(t, e)
	if held := e.account.Held(account.Memory); held != pageSize {
		t.Errorf("a call that waits holds %d bytes", held-pageSize)
	}
	cancel()
	if err := <-called; err == nil {
		t.Error("a caller that has gone is answered")
	}
	e.account.Give(account.Memory, pageSize)
	answers(t, p, limits.Limits{})
	if n := lines.Load(); n != 2 {
		t.Errorf("it took %d starts, want one more", n-1)
	}
}

// TestWaitingHoldsNothing has calls of several modules wait for room that only their own snapshots hold.
// Proves: Limits hold, one by one and in sum
func TestWaitingHoldsNothing(t *testing.T) {
	t.Parallel()
	const limit = 2 << 20
	e, _ := poolEngine(t, Config{Memory: limit}, "hostile/hoard")
	all := unlike(t, e, logs, 6)
	for _, p := range all {
		full(t, p)
		answers(t, p, limits.Limits{})
		if !p.module.enter() { // stands for a call that waits, as one of each module will
			t.Fatal("the engine is closed")
		}
		defer p.module.leave()
	}
	e.sweep(time.Now().Add(time.Hour), time.Time{})
	held := e.account.Held(account.Memory)
	if held != int64(len(all))*fullSnapshot {
		t.Fatalf("%d bytes are held, want %d snapshots", held, len(all))
	}
	others := limit - held - fullInstance/2
	e.account.Add(account.Memory, others)
	begun := time.Now()
	var calls sync.WaitGroup
	for _, p := range all {
		calls.Go(func() { answers(t, p, limits.Limits{Timeout: 10 * time.Minute}) })
	}
	calls.Wait()
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
	e.account.Give(account.Memory, others)
}

// TestManyStartsFewRooms starts many modules of one engine at once, with room for three. None is refused, whatever size they grow to, and nothing is
// held in the end.
// Proves: Limits hold, one by one and in sum
func TestManyStartsFewRooms(t *testing.T) {
	t.Parallel()
	const limit = 3 * (44*pageSize + instanceSize)
	e, _ := poolEngine(t, Config{Memory: limit}, "good/engine")
	var calls sync.WaitGroup
	most := watch(e, account.Memory, func() {
		for k := range byte(24) {
			p := loadInternal(t, e, scripted(t, "engine", 'a'+k, k, k%4, 0))
			for range 2 {
				calls.Go(func() {
					if got := peek(t, p, 112); got[0] != 'a'+k || got[1] != k {
						t.Errorf("tool %d: got % x", k, got)
					}
				})
			}
		}
		calls.Wait()
	})
	if most > limit {
		t.Errorf("at one time %d bytes were held; the limit is %d", most, limit)
	}
	if e.account.Wanted() {
		t.Error("a claim is said to wait, although no call runs")
	}
}

// TestSecondCallHasItsTurn has a second call of a module wait behind the first, while others use the reserve without a pause. It runs once
// the first is done.
// Proves: Limits hold, one by one and in sum
func TestSecondCallHasItsTurn(t *testing.T) {
	t.Parallel()
	const limit = 8 * fullInstance
	e, _ := poolEngine(t, Config{Memory: limit}, "hostile/hoard")
	p := loadInternal(t, e, logs)
	full(t, p)
	const all = limit - fullInstance/2 // others use the reserve, too
	e.account.Add(account.Memory, all)
	served := make(chan error)
	for range 2 {
		go func() {
			_, err := p.Tool("x", 0, limits.Limits{Timeout: time.Hour}).Call(t.Context(), CallSpec{})
			served <- err
		}()
	}
	for waiting := 0; waiting < 2; waiting = e.account.Use(account.Memory).Waiting {
		time.Sleep(time.Millisecond)
	}
	const given = fullInstance * 13 / 10 // now a call and its snapshot have room, but only with the reserve
	e.account.Give(account.Memory, given)
	for range 2 {
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("a call is not served, although there is room in the reserve and no other call of its module runs")
		}
	}
	e.account.Give(account.Memory, all-given)
}

// TestRoomForTheHost takes room for the host's own work. The room comes out of what tools may use, and the host waits for it.
// Proves: Limits hold, one by one and in sum
func TestRoomForTheHost(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	e, _ := poolEngine(t, Config{Memory: limit}, "hostile/hoard")
	if _, err := e.Room(t.Context(), limit+1); !errors.Is(err, ErrTooMuch) {
		t.Errorf("more room than there is: got %v", err)
	}
	first, err := e.Room(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Room(gone, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("while there is no room: got %v", err)
	}
	time.AfterFunc(time.Millisecond, first)
	second, err := e.Room(t.Context(), limit/2)
	if err != nil {
		t.Fatal(err)
	}
	if held := e.account.Held(account.Memory); held != limit/2 {
		t.Errorf("%d bytes are held, want %d", held, limit/2)
	}
	second()
	if held := e.account.Held(account.Memory); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}
