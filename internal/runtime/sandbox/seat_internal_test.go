package sandbox

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestSeats has more guests run forever than there are seats, so the others wait for one. A short call of another module goes on.
// Proves: A tool stops
func TestSeats(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "hostile/spin")
	seats := e.seats.Free()
	n := seats + 8
	tool := p.Tool("spin", 0, limits.Limits{Timeout: time.Hour, Concurrency: n})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := tool.Call(ctx, CallSpec{}); outcomeOf(err) != Cancelled {
				t.Errorf("got %v, want cancelled", err)
			}
		})
	}
	for end := time.Now().Add(testkit.Patience); e.seats.Waiting() < n-seats; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d of %d guests wait for one of %d seats", e.seats.Waiting(), n, seats)
			break
		}
	}
	answer(t, e)
	cancel()
	all.Wait()
	if e.seats.Free() != seats || e.seats.Waiting() != 0 {
		t.Errorf("in the end %d of %d seats are free, and %d guests wait", e.seats.Free(), seats, e.seats.Waiting())
	}
}

// TestSeatsOfParties has one party call a computing tool many times at once, and another party once at a time. Each call of the second party gets
// a larger share of the processors than each call of the first.
// Proves: Clients keep nobody out
func TestSeatsOfParties(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "hostile/spin")
	n := 4 * goruntime.GOMAXPROCS(0)
	tool := p.Tool("spin", 0, limits.Limits{Timeout: time.Hour, Fuel: 20_000_000, Concurrency: n + 1})
	ctx, cancel := context.WithCancel(t.Context())
	call := func(of party) bool {
		_, err := tool.Call(ctx, CallSpec{Principal: of})
		switch outcomeOf(err) {
		case ToolFuel:
			return true
		case Cancelled:
		default:
			t.Error(err)
		}
		return false
	}
	var all sync.WaitGroup
	var done atomic.Int64
	for range n {
		all.Go(func() {
			for call("flood") {
				done.Add(1)
			}
		})
	}
	testkit.Until(t, "the flood", func() bool { return done.Load() > 0 && e.seats.Waiting() > 0 })
	const calls = 20
	before := done.Load()
	for range calls {
		call("quiet")
	}
	others := float64(done.Load()-before) / float64(n)
	if t.Logf("while the quiet party made %d calls, each of the other's %d clients made %.1f", calls, n, others); others > calls/3 {
		t.Error("each of these clients made more than a third as many calls as the quiet party")
	}
	cancel()
	all.Wait()
}

type party string

func (p party) Party() string  { return string(p) }
func (p party) String() string { return string(p) }

// TestNoSeat has all seats taken. A guest that computes still ends by its limit, or with its caller, and a short call needs no seat.
// Proves: A tool stops
func TestNoSeat(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "hostile/spin")
	for e.seats.Try("", p.module) {
		defer e.seats.Leave("", p.module)
	}
	answer(t, e)
	if _, err := p.Tool("spin", 0, limits.Limits{Timeout: 20 * time.Millisecond}).Call(t.Context(), CallSpec{}); outcomeOf(err) != ToolTimeout {
		t.Errorf("got %v, want a timeout", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := p.Tool("spin", 0, limits.Limits{Timeout: time.Hour}).Call(ctx, CallSpec{}); outcomeOf(err) != Cancelled {
		t.Errorf("got %v, want cancelled", err)
	}
}

// TestSeatIsGivenBack has a guest wait for something after it has computed for a long time. While it waits, other guests have its seat.
// Proves: A tool stops
func TestSeatIsGivenBack(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "good/small")
	if _, err := p.Tool("small", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	limits := inForce(limits.Limits{})
	r := run{ctx: t.Context(), begun: time.Now(), deadline: time.Now().Add(time.Hour), limits: &limits}
	l := lease{module: p.module}
	if !l.begin(&r) {
		t.Fatal("the engine is closed")
	}
	defer l.end(&r)
	c, seats := &l.instance.call, e.seats.Free()
	seated := func(when string, want bool) {
		t.Helper()
		if taken := seats - e.seats.Free(); taken > 1 || want != (taken == 1) {
			t.Errorf("%s: %d seats are taken", when, taken)
		}
	}
	c.begin(&r)
	c.look(time.Now())
	seated("in its first turn", false)
	c.look(time.Now().Add(time.Minute))
	seated("afterwards", true)
	c.Wait(func(context.Context) { seated("while it waits", false) })
	seated("after it has waited", true)
	c.Nest(func(context.Context) { seated("while another guest runs", false) })
	seated("after it has run", true)
	c.end()
	seated("in the end", false)
	c.begin(&r)
	for range 3 {
		c.look(time.Now())
		c.meter.turn = c.meter.turn.Add(-turn / 2)
		c.Wait(func(context.Context) {})
	}
	seated("after a turn in parts", true)
}

// answer calls a tool that takes only a moment.
func answer(t *testing.T, e *Engine) {
	t.Helper()
	p, err := e.Load(testkit.Fixture(t, "wat/good/small"), abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Tool("small", 0, limits.Limits{Timeout: time.Hour}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil {
		t.Errorf("a short call of another module: %v", err)
	}
}

func outcomeOf(err error) Outcome {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Outcome
	}
	return OK
}
