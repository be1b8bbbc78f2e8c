package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// occupy starts n calls that end with the test, or at their time limit, and returns them.
func occupy(t *testing.T, tool *sandbox.Tool, n int) *sync.WaitGroup {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			_, err := tool.Call(ctx, sandbox.CallSpec{})
			for e := (*sandbox.Error)(nil); errors.As(err, &e) && e.Outcome == sandbox.Overloaded; { // one of the test's own calls got the place first: try again
				_, err = tool.Call(ctx, sandbox.CallSpec{})
			}
		})
	}
	t.Cleanup(func() { cancel(); calls.Wait() })
	return &calls
}

// Proves: Limits hold, one by one and in sum
func TestInput(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/echo"))
	tool := p.Tool("echo", 0, limits.Limits{Input: 10})
	if out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`"12345678"`)}); err != nil || string(out) != `"12345678"` {
		t.Errorf("got %s, %v, want the input", out, err)
	}
	_, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`"123456789"`)})
	wantError(t, err, sandbox.InputTooLarge, "has 11 bytes; its limit is 10 bytes")
	tool = p.Tool("echo", 0, limits.Limits{Output: 9})
	_, err = tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`"12345678"`)})
	wantError(t, err, sandbox.ToolBadOutput, "limit of 9 bytes")
}

// TestOutputIsTheCallers changes the output of one call, which must not change the output of another.
func TestOutputIsTheCallers(t *testing.T) {
	t.Parallel()
	tool := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/echo")).Tool("echo", 0, limits.Limits{})
	input := []byte(`"first"`)
	first, err := tool.Call(t.Context(), sandbox.CallSpec{Input: input})
	if err != nil {
		t.Fatal(err)
	}
	copy(input, `"xxxxx"`)
	if _, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`"other"`)}); err != nil {
		t.Fatal(err)
	}
	if string(first) != `"first"` {
		t.Errorf("got %s, want %q", first, "first")
	}
}

// TestNothingLeaks calls tools that count their calls in memory, in a global and in a table, while other calls of them break.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/echo"))
	tool := p.Tool("count", 2, limits.Limits{})
	for range 5 {
		if out, err := tool.Call(t.Context(), sandbox.CallSpec{}); err != nil || string(out) != "1" {
			t.Fatalf("got %s, %v, want 1", out, err)
		}
	}
}

// TestDeadline has a guest ask how long it may still run, by the tool's limit or by an earlier deadline of its caller.
func TestDeadline(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/hostile/deadline"))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	tool := p.Tool("deadline", 0, limits.Limits{Timeout: 10 * time.Minute})
	ask := func(ctx context.Context) time.Duration {
		t.Helper()
		out, err := tool.Call(ctx, sandbox.CallSpec{})
		if err != nil {
			t.Fatal(err)
		}
		ms, err := strconv.ParseInt(string(out), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ms) * time.Millisecond
	}
	if left := ask(t.Context()); left > 10*time.Minute || left < 9*time.Minute {
		t.Errorf("got %v, want what is left of the tool's 10 minutes", left)
	}
	for limit, most := range map[time.Duration]time.Duration{5 * time.Minute: 5 * time.Minute, time.Hour: 10 * time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if left := ask(ctx); left > most || left < most-time.Minute {
			t.Errorf("caller with a limit of %v: got %v, want what is left of %v", limit, left, most)
		}
		cancel()
	}
}

// Proves: Limits hold, one by one and in sum
func TestQueue(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/spin"))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		tool := p.Tool("sleep", 4, limits.Limits{Concurrency: 1, Queue: -1, Timeout: time.Minute})
		occupy(t, tool, 1)
		testkit.Until(t, "a refusal", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_, err := tool.Call(ctx, sandbox.CallSpec{})
			var e *sandbox.Error
			return errors.As(err, &e) && e.Outcome == sandbox.Overloaded && strings.Contains(e.Message, "busy: too many calls are waiting already. Try again later.")
		})
	})
	t.Run("timeout counts", func(t *testing.T) {
		t.Parallel()
		tool := p.Tool("sleep", 4, limits.Limits{Concurrency: 1, Queue: 250, Timeout: 300 * time.Millisecond})
		begun := time.Now()
		occupy(t, tool, 250).Wait() // the calls would take 75 s if waiting did not count towards their time limit
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("250 calls with a limit of 300 ms took %v", took)
		}
	})
	t.Run("cancelled while waiting", func(t *testing.T) {
		t.Parallel()
		tool := p.Tool("sleep", 4, limits.Limits{Concurrency: 1, Queue: 1, Timeout: time.Minute})
		occupy(t, tool, 1)
		var err error
		testkit.Until(t, "a place in the queue", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = tool.Call(ctx, sandbox.CallSpec{})
			return strings.Contains(err.Error(), "waited for its turn")
		})
		wantError(t, err, sandbox.Cancelled, "The caller gave up while the call waited for its turn.")
	})
	t.Run("another tool does not wait", func(t *testing.T) {
		t.Parallel()
		occupy(t, p.Tool("sleep", 4, limits.Limits{Concurrency: 1, Timeout: time.Minute}), 2)
		_, err := p.Tool("sleep", 4, limits.Limits{Concurrency: 1, Timeout: 100 * time.Millisecond}).Call(t.Context(), sandbox.CallSpec{})
		wantError(t, err, sandbox.ToolTimeout, "ran longer than its limit of 100ms")
	})
}

// Proves: A tool stops
func TestCancel(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/hostile/spin"))
	for _, index := range []int32{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := p.Tool("x", index, limits.Limits{Timeout: time.Minute}).Call(ctx, sandbox.CallSpec{})
			wantError(t, err, sandbox.Cancelled, "The caller gave up")
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Tool("x", 0, limits.Limits{}).Call(ctx, sandbox.CallSpec{})
	wantError(t, err, sandbox.Cancelled, "The caller gave up")
}

// TestEngineCloses closes the engine at once while calls run, sleep and wait.
func TestEngineCloses(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/spin"))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, index := range []int32{0, 4} {
		tool := p.Tool("x", index, limits.Limits{Timeout: time.Minute, Concurrency: 1})
		for range 2 {
			go func() {
				_, err := tool.Call(t.Context(), sandbox.CallSpec{})
				errs <- err
			}()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.Close(ctx) }()
	for range 4 {
		wantError(t, <-errs, sandbox.Cancelled, "shutting down")
	}
	if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
}

// TestLateCall calls a tool whose program is closed, as a request might that looked the tool up earlier.
func TestLateCall(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p, err := e.Load(testkit.Fixture(t, "wat/good/echo"), abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	tool := p.Tool("echo", 0, limits.Limits{})
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`1`)}); err != nil || string(out) != "1" {
			t.Errorf("got %s, %v, want 1", out, err)
		}
	}
}

// TestHammer loads, calls and closes one module from many goroutines, while some other calls break.
func TestHammer(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: t.TempDir()})
	good, bad := testkit.Fixture(t, "wat/good/echo"), testkit.Fixture(t, "wat/hostile/traps")
	shared := sandboxtest.Load(t, e, good).Tool("shared", 0, limits.Limits{Timeout: time.Minute, Concurrency: 2, Queue: 1000})
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 20 {
				p, err := e.Load(good, abi1.Modules()...)
				if err != nil {
					t.Error(err)
					return
				}
				own := p.Tool("own", 0, limits.Limits{Timeout: time.Minute})
				if i%3 == 0 {
					p.Close()
				}
				input := fmt.Appendf(nil, `{"worker": %d, "call": %d}`, worker, i)
				for _, tool := range []*sandbox.Tool{own, shared} {
					if out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: input}); err != nil || !bytes.Equal(out, input) {
						t.Errorf("got %s, %v, want %s", out, err, input)
					}
				}
				p.Close()
				if p, err = e.Load(bad, abi1.Modules()...); err != nil {
					t.Error(err)
					return
				}
				if _, err := p.Tool("bad", int32(i%15), limits.Limits{}).Call(t.Context(), sandbox.CallSpec{}); err == nil {
					t.Error("a trap gives no error")
				}
				p.Close()
			}
		})
	}
	wait.Wait()
}

func TestLimitsDefaults(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/echo"))
	l := p.Tool("x", 0, limits.Limits{Timeout: -1, Memory: -1}).Limits()
	if l.Timeout != 5*time.Second || l.Memory != 64<<20 || l.Input != 1<<20 || l.Output != 4<<20 || l.LogLines != 100 || l.Concurrency < 4 || l.Queue != 64 {
		t.Errorf("got %+v", l)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	for _, c := range []struct {
		fixture           string
		ready, run, reset bool // what takes time
		limits            limits.Limits
	}{
		{"good/small", true, true, true, limits.Limits{}},
		{"good/echo", true, true, false, limits.Limits{}},                                         // sets a table
		{"good/fresh", true, true, false, limits.Limits{}},                                        // the instance is never reset in place
		{"hostile/spin", true, true, false, limits.Limits{Timeout: 50 * time.Millisecond}},        // the instance is closed
		{"hostile/start_spin", true, false, false, limits.Limits{Timeout: 50 * time.Millisecond}}, // the call's time ends before its run begins
	} {
		p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/"+c.fixture))
		if err := p.Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
		tool := p.Tool(c.fixture, 0, c.limits)
		begun := time.Now()
		var got sandbox.Times
		_, _ = tool.Call(t.Context(), sandbox.CallSpec{Input: []byte("{}"), Times: &got})
		if whole := time.Since(begun); got.Ready+got.Run+got.Reset > whole {
			t.Errorf("%s: the phases %+v are longer than the call, %s", c.fixture, got, whole)
		}
		took := func(phase time.Duration, some bool) bool {
			return phase > 0 == some || phase == 0 && runtime.GOOS == "windows" // the clock may stand still for longer than a phase
		}
		if !took(got.Ready, c.ready) || !took(got.Run, c.run) || !took(got.Reset, c.reset) {
			t.Errorf("%s: got %+v; want ready %v, run %v, reset %v", c.fixture, got, c.ready, c.run, c.reset)
		}
	}
}
