package rates_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An ether carries the messages of processes to each other, a few milliseconds late.
type ether struct {
	mu    sync.Mutex
	heard map[*antenna]func([]byte)
}

// An antenna is one process's connection to the ether.
type antenna struct {
	ether *ether
	cut   bool // guarded by ether.mu
}

func (a *antenna) Tell(_ string, message []byte) {
	e := a.ether
	message = append([]byte{}, message...)
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.cut {
		return
	}
	for to := range e.heard {
		time.AfterFunc(time.Duration(1+rand.IntN(5))*time.Millisecond, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if f := e.heard[to]; f != nil && !to.cut {
				f(message)
			}
		})
	}
}

func (a *antenna) Hear(_ string, f func([]byte)) (stop func()) {
	e := a.ether
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[a] = f
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.heard, a)
	}
}

func (a *antenna) set(cut bool) {
	a.ether.mu.Lock()
	defer a.ether.mu.Unlock()
	a.cut = cut
}

// A node is a process that shares its rates.
type node struct {
	*rates.Limiter
	antenna *antenna
	stop    func()
}

// nodes starts processes in a bubble of package synctest, at different times of a round.
func nodes(t *testing.T, n int) (all []*node) {
	e := &ether{heard: map[*antenna]func([]byte){}}
	for range n {
		one := &node{Limiter: rates.New(), antenna: &antenna{ether: e}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); one.Share(ctx, one.antenna) }()
		one.stop = func() { cancel(); <-ended }
		all = append(all, one)
		time.Sleep(37 * time.Millisecond)
	}
	time.Sleep(time.Second) // waits until they have heard of each other
	return all
}

func stop(all []*node) {
	for _, n := range all {
		n.stop()
	}
	time.Sleep(time.Second) // messages in flight
}

// A demand returns how many calls a second come to a process at some time.
type demand func(process int, at time.Duration) float64

// tries makes calls for a time, and returns how many calls all processes together let through in each step.
func tries(all []*node, call *wasmtools.Call, d demand, long, step time.Duration, then func(at time.Duration)) (made []int, refused int) {
	const tick = time.Millisecond
	due := make([]float64, len(all))
	for at := time.Duration(0); at < long; at += tick {
		if at%step == 0 {
			made = append(made, 0)
			if then != nil {
				then(at)
			}
		}
		for i, n := range all {
			for due[i] += d(i, at) * tick.Seconds(); due[i] >= 1; due[i]-- {
				if ticket, err := n.Begin(call); err == nil {
					made[len(made)-1]++
					ticket.End()
				} else {
					refused++
				}
			}
		}
		time.Sleep(tick)
	}
	return made, refused
}

// drain uses up all calls that may be made at once.
func drain(all []*node, call *wasmtools.Call) {
	for range 20 {
		for _, n := range all {
			taken(n.Limiter, call, 2000)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestSharedRate makes more calls to three processes than a rate allows, in many ways: in any three seconds, together they let through what the
// rate allows, give or take 10 %. If the burst is smaller than what is refilled in a round, they can't be that precise: they may let through up to
// a quarter less.
func TestSharedRate(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("shares a rate in 32 ways: not with -short")
	}
	of := func(calls ...float64) demand { return func(i int, _ time.Duration) float64 { return calls[i] } }
	demands := map[string]demand{
		"evenly":          of(2, 2, 2),
		"one only":        of(0, 3, 0),
		"unevenly":        of(5, 0.5, 0.05),
		"two":             of(0, 1, 1),
		"barely too much": of(0.5, 0.5, 0.2),
		"shifting": func(i int, at time.Duration) float64 {
			if int(at/time.Second)%3 == i {
				return 3
			}
			return 0
		},
		"shifting fast": func(i int, at time.Duration) float64 {
			if int(at/(130*time.Millisecond))%3 == i {
				return 4
			}
			return 0.2
		},
		"a wave": func(i int, at time.Duration) float64 { return []float64{2, 1.2, at.Seconds() / 4}[i] },
	}
	for _, rate := range []struct {
		calls string
		burst int
		least float64
	}{{"100/s", 0, 0.9}, {"100/s", 1, 0.75}, {"20/s", 5, 0.9}, {"1000/s", 100, 0.9}} {
		if rate.calls != "20/s" && testkit.Race(t) { // the other rates do the same, with many times as many calls
			continue
		}
		for name, d := range demands {
			t.Run(fmt.Sprint(rate.calls, " ", rate.burst, " ", name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := parse(t, rate.calls, rate.burst, 0)
					all := nodes(t, 3)
					call := &wasmtools.Call{Principal: principal(t, "ci", r, nil)}
					perSecond := float64(r.Calls) / r.Period.Seconds()
					drain(all, call)
					made, _ := tries(all, call, func(i int, at time.Duration) float64 { return d(i, at) * perSecond }, 10*time.Second, time.Second, nil)
					sum := func(from, to int) (n float64) {
						for _, m := range made[from:to] {
							n += float64(m)
						}
						return n
					}
					for from := 1; from+3 <= len(made); from++ {
						if got, want := sum(from, from+3), 3*perSecond; got < want*rate.least-1 || got > want*1.1+1 {
							t.Errorf("from second %d on %v calls, want %v: %v", from, got, want, made)
							break
						}
					}
					stop(all)
				})
			})
		}
	}
}

// TestSharedQuietly makes no more calls than a rate allows: none is refused, whichever process gets it.
func TestSharedQuietly(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]demand{
		"one only": func(i int, _ time.Duration) float64 { return []float64{9.5, 0, 0}[i] },
		"evenly":   func(int, time.Duration) float64 { return 3 },
		"shifting": func(i int, at time.Duration) float64 {
			if int(at/(700*time.Millisecond))%3 == i {
				return 9
			}
			return 0
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := nodes(t, 3)
			call := &wasmtools.Call{Principal: principal(t, "ci", parse(t, "10/s", 0, 0), nil)}
			if made, refused := tries(all, call, d, time.Minute, time.Second, nil); refused > 0 {
				t.Errorf("%s: %d calls are refused: %v", name, refused, made)
			}
			stop(all)
		})
	}
}

// TestSharedSlowly has a rate of one call an hour: each process may let one call through at first. Then they let fewer calls through to make up for
// that.
func TestSharedSlowly(t *testing.T) {
	t.Parallel()
	hours := 6
	if testkit.Race(t) { // hours with ten rounds a second each are too many for the race detector
		hours = 1
	}
	synctest.Test(t, func(t *testing.T) {
		all := nodes(t, 3)
		call := &wasmtools.Call{Principal: principal(t, "ci", parse(t, "1/h", 0, 0), nil)}
		n := 0
		for range hours * 60 {
			for _, one := range all {
				n += taken(one.Limiter, call, 1)
			}
			time.Sleep(time.Minute)
		}
		if n < hours-1 || n > hours+3 {
			t.Errorf("%d calls in %d hours", n, hours)
		}
		stop(all)
	})
}

// TestSharedBurst makes many calls at once on all processes: together they let through little more than a burst, and then make up for it.
func TestSharedBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := nodes(t, 3)
		call := &wasmtools.Call{Principal: principal(t, "ci", parse(t, "1000/h", 0, 0), nil)}
		n, rounds := 0, 300 // half a minute
		if testkit.Race(t) {
			rounds = 50
		}
		for range rounds {
			for _, one := range all {
				n += taken(one.Limiter, call, 2000)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n < 1000 || n > 1350 {
			t.Errorf("%d calls of a burst of 1000", n)
		}
		time.Sleep(time.Duration(n-1000+100) * 3600 * time.Millisecond)
		again := 0
		for _, one := range all {
			again += taken(one.Limiter, call, 2000)
		}
		if again < 90 || again > 110 {
			t.Errorf("%d calls were let through after 100 were refilled", again)
		}
		t.Logf("%d calls of a burst of 1000, then %d of 100", n, again)
		stop(all)
	})
}

// TestSharedFaults kills one of three processes, and cuts another one off for a while.
func TestSharedFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault, heal func(n *node)
		stays       bool // calls of the first process continue
		meanwhile   float64
	}{
		"dies":       {func(n *node) { n.stop() }, nil, false, 1},
		"is cut off": {func(n *node) { n.antenna.set(true) }, func(n *node) { n.antenna.set(false) }, true, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := nodes(t, 3)
			call := &wasmtools.Call{Principal: principal(t, "ci", parse(t, "100/s", 0, 0), nil)}
			broken := false
			made, _ := tries(all, call, func(i int, _ time.Duration) float64 {
				if i == 0 && broken && !test.stays {
					return 0
				}
				return 150
			}, 40*time.Second, time.Second, func(at time.Duration) {
				switch {
				case at == 10*time.Second:
					broken = true
					test.fault(all[0])
				case at == 25*time.Second && test.heal != nil:
					broken = false
					test.heal(all[0])
				}
			})
			check := func(from, to int, want float64) {
				t.Helper()
				n := 0
				for _, m := range made[from:to] {
					n += m
				}
				if got := float64(n) / float64(to-from); got < 0.9*want || got > 1.1*want {
					t.Errorf("one %s: from second %d to %d %v calls/s, want %v: %v", name, from, to, got, want, made)
				}
			}
			check(5, 10, 100)
			check(13, 25, 100*test.meanwhile)
			if test.heal != nil {
				check(28, 40, 100)
			}
			stop(all)
		})
	}
}

// told returns a message in the form in which a process sends it.
func told(from uint64, callers ...string) []byte {
	m := binary.BigEndian.AppendUint64([]byte{1}, from)
	for _, name := range callers {
		for _, text := range []string{name, wasmtools.OriginToken, ""} {
			m = append(binary.AppendUvarint(m, uint64(len(text))), text...)
		}
		m = binary.AppendUvarint(binary.AppendUvarint(m, uint64(time.Hour)), uint64(time.Second))
	}
	return m
}

// TestToldNonsense sends a process messages that no process would send: nobody but the principals in them is affected.
func TestToldNonsense(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := nodes(t, 2)
		here, evil := all[0], all[1].antenna
		call := &wasmtools.Call{Principal: principal(t, "ci", parse(t, "100/s", 0, 0), nil)}
		used := &wasmtools.Call{Principal: principal(t, "used", parse(t, "10/h", 10, 0), nil)}
		time.Sleep(time.Second)
		if got := taken(here.Limiter, used, 1); got != 1 {
			t.Fatal(got)
		}
		for _, m := range [][]byte{nil, {1}, {2}, make([]byte, 8), told(1)[:9], append(told(1), 0xff), append(told(1), 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80), []byte(strings.Repeat("\x01", 1<<20)), []byte(strings.Repeat("\xff", 1<<16)), told(2, "ci")[:20]} {
			evil.Tell("rates", m)
		}
		for i := range uint64(5000) { // processes
			evil.Tell("rates", told(i))
		}
		tells := 2000 // half a million principals
		if testkit.Race(t) {
			tells = 100
		}
		for i := range tells {
			var names []string
			for k := range 250 {
				names = append(names, fmt.Sprint(i*250+k))
			}
			evil.Tell("rates", told(7, names...))
		}
		time.Sleep(10 * time.Millisecond)
		if principals, _ := here.Known(); principals > rates.Most {
			t.Errorf("%d principals are known", principals)
		}
		if got := taken(here.Limiter, used, 20); got > 9 {
			t.Errorf("a principal whose rate was used has %d calls again, want 9 at most", got)
		}
		drain(all[:1], call)
		made, _ := tries([]*node{here}, call, func(int, time.Duration) float64 { return 200 }, 5*time.Second, time.Second, nil)
		for second, n := range made[1:] {
			if n < 85 || n > 115 {
				t.Errorf("in second %d another principal has %d calls, want 100", second+1, n)
			}
		}
		// Whoever has access to the state can keep a principal waiting, but only for as long as the false messages last.
		evil.Tell("rates", told(9, "ci", "ci", "ci"))
		time.Sleep(100 * time.Millisecond)
		if got := taken(here.Limiter, call, 1); got != 0 {
			t.Error("the calls in a message are not counted")
		}
		stop(all)
	})
}

// FuzzTold sends a process arbitrary messages.
func FuzzTold(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(told(1))
	f.Add(told(1, "ci", strings.Repeat("x", 128)))
	f.Add(append(told(1, "ci"), 0xff))
	f.Add(append(told(1), 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))
	e := &ether{heard: map[*antenna]func([]byte){}}
	n := &node{Limiter: rates.New(), antenna: &antenna{ether: e}}
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(cancel)
	go n.Share(ctx, n.antenna)
	hear := func() func([]byte) {
		for {
			e.mu.Lock()
			h := e.heard[n.antenna]
			e.mu.Unlock()
			if h != nil {
				return h
			}
			time.Sleep(time.Millisecond)
		}
	}()
	free := &wasmtools.Call{Principal: principal(f, "another one", parse(f, "1000000/s", 0, 0), nil)}
	f.Fuzz(func(t *testing.T, message []byte) {
		if strings.Contains(string(message), "another one") {
			t.Skip()
		}
		hear(message)
		if taken(n.Limiter, free, 1) != 1 {
			t.Error("another principal's call is refused")
		}
	})
}

// TestSharedAllocations checks that counting a call in one of several processes allocates nothing.
func TestSharedAllocations(t *testing.T) {
	e := &ether{heard: map[*antenna]func([]byte){}}
	n := &node{Limiter: rates.New(), antenna: &antenna{ether: e}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go n.Share(ctx, n.antenna)
	call := &wasmtools.Call{Principal: principal(t, "ci", parse(t, "1000000/s", 0, 10), nil)}
	time.Sleep(50 * time.Millisecond)
	taken(n.Limiter, call, 1)
	if got := testing.AllocsPerRun(1000, func() { taken(n.Limiter, call, 1) }); got >= 1 { // a round may send a message at the same time
		t.Errorf("%v allocations", got)
	}
}
