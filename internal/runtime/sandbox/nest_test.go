package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

const nestModule = "nest_v1"

// A nest is a set of one function, run, by which the tests' guests call each other. Each test decides what run does.
type nest struct {
	do func(c *hostcall.Call, tool int32)
}

func (n *nest) set() *hostcall.Set {
	return &hostcall.Set{Module: nestModule, Nests: true, Functions: []hostcall.Function{{Name: "run", Params: "i", Do: func(c *hostcall.Call, stack []uint64) {
		n.do(c, int32(uint32(stack[0])))
	}}}}
}

// The numbers of nester's tools. The comments say what each tool does before it answers 1.
const (
	nestEnds  = 0 // nothing
	nestCalls = 1 // run, once
	nestLoops = 2 // run, for ever
	nestSpins = 3 // compute, for ever
	nestBurns = 4 // compute, for some 1,000,000 units of fuel
	nestTraps = 5 // compute like tool 4, then trap
)

// nester returns a module whose tools are listed above. If fresh is true, the module has state that can't be reset. So it is started for each
// call, and each call takes some 1,000,000 units of fuel.
func nester(fresh bool) []byte {
	module := []byte("\x00asm\x01\x00\x00\x00")
	module = append(module, section(1, []byte("\x04\x60\x00\x00\x60\x01\x7f\x00\x60\x02\x7f\x7f\x00\x60\x01\x7f\x01\x7f"))...)
	module = append(module, section(2, []byte("\x02\x07nest_v1\x03run\x00\x01\x0atoolsrv_v1\x0coutput_write\x00\x02"))...)
	module = append(module, section(3, []byte{2, 0, 3})...)
	module = append(module, section(5, []byte{1, 0, 1})...)
	spin := 1
	start := "\x01\x01\x7f"
	if fresh {
		module = append(module, section(6, []byte("\x01\x70\x01\xd0\x70\x0b"))...)
		spin, start = 200_000, start+"\xd0\x70\x24\x00"
	}
	module = append(module, section(7, []byte("\x03\x06memory\x02\x00\x0b_initialize\x00\x02\x0ctoolsrv_call\x00\x03"))...)
	count := func(local byte, to int) string { // from 0
		l := string(local)
		return "\x03\x40\x20" + l + "\x41\x01\x6a\x22" + l + "\x41" + string(sleb(to)) + "\x49\x0d\x00\x0b"
	}
	is := func(tools ...byte) string {
		s := ""
		for i, t := range tools {
			if s += "\x20\x00\x41" + string(t) + "\x46"; i > 0 {
				s += "\x72"
			}
		}
		return s + "\x04\x40"
	}
	const run = "\x20\x00\x10\x00"
	start += count(0, spin) + "\x0b"
	call := "\x01\x01\x7f" +
		is(nestCalls) + run + "\x0b" +
		is(nestLoops) + "\x03\x40" + run + "\x0c\x00\x0b\x0b" +
		is(nestSpins) + "\x03\x40\x0c\x00\x0b\x0b" +
		is(nestBurns, nestTraps) + count(1, 200_000) + "\x0b" +
		is(nestTraps) + "\x00\x0b" +
		"\x41\x00\x41\x01\x10\x01\x41\x00\x0b"
	var code []byte
	for _, body := range []string{start, call} {
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	module = append(module, section(10, append([]byte{2}, code...))...)
	return append(module, section(11, []byte("\x01\x00\x41\x00\x0b\x011"))...)
}

// sleb encodes a number in signed LEB128, as WebAssembly encodes constants.
func sleb(n int) (b []byte) {
	for {
		low := byte(n & 0x7f)
		if n >>= 7; n == 0 && low&0x40 == 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

func nestEngine(t *testing.T, n *nest, c sandbox.Config) *sandbox.Engine {
	t.Helper()
	c.Imports = append(abi1.Sets(), n.set())
	return sandboxtest.Engine(t, c)
}

func nestProgram(t *testing.T, e *sandbox.Engine, module []byte) *sandbox.Program {
	t.Helper()
	p, err := e.Load(module, append(abi1.Modules(), nestModule)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// mayNest is the grant of a tool that may call others.
func mayNest() hostcall.Grant { return hostcall.Grant{Module: nestModule, Value: true} }

// inside calls a tool inside a call.
func inside(c *hostcall.Call, tool *sandbox.Tool) (err error) {
	c.Wait(func(ctx context.Context) {
		_, err = tool.Call(ctx, sandbox.CallSpec{Outer: c.Outer()})
	})
	return err
}

// TestNestedFuel has tools work for others. The fuel that they use counts as their callers' fuel, whatever they do.
// Proves: A call inside a call gets no further
func TestNestedFuel(t *testing.T) {
	t.Parallel()
	n := &nest{}
	e := nestEngine(t, n, sandbox.Config{})
	p, restarts := nestProgram(t, e, nester(false)), nestProgram(t, e, nester(true))
	burner, trapper := p.Tool("burner", nestBurns, limits.Limits{}), p.Tool("trapper", nestTraps, limits.Limits{})
	restarter := restarts.Tool("restarter", nestEnds, limits.Limits{})
	idle := p.Tool("idle", nestEnds, limits.Limits{})
	relay := p.Tool("relay", nestCalls, limits.Limits{}, mayNest())
	for _, test := range []struct {
		name  string
		tool  *sandbox.Tool
		times int // how often 20 million units of fuel may suffice for a call of the tool
	}{
		{"works", burner, 40}, {"traps", trapper, 40}, {"has another work", relay, 40}, {"starts each time", restarter, 40},
	} {
		var calls int
		n.do = func(c *hostcall.Call, tool int32) {
			if tool == nestCalls {
				inside(c, burner)
				return
			}
			calls++
			inside(c, test.tool)
		}
		_, err := p.Tool("x", nestLoops, limits.Limits{Fuel: 20_000_000, Timeout: time.Minute}, mayNest()).Call(t.Context(), sandbox.CallSpec{})
		wantError(t, err, sandbox.ToolFuel, "limit of 20000000 instructions")
		if calls < 2 || calls > test.times {
			t.Errorf("%s: %d calls with a fuel of 20 million, want 2 to %d", test.name, calls, test.times)
		}
	}
	// Small calls add up, too.
	var before, after int64
	n.do = func(c *hostcall.Call, _ int32) {
		before = c.Outer().Fuel()
		for range 100 {
			inside(c, idle)
		}
		after = c.Outer().Fuel()
	}
	told := int64(-1)
	if _, err := p.Tool("x", nestCalls, limits.Limits{Fuel: 1_000_000}, mayNest()).Call(t.Context(), sandbox.CallSpec{Fuel: &told}); err != nil {
		t.Fatal(err)
	}
	used := before - after
	if used < 100*10 || used > 100*1000 {
		t.Errorf("100 calls that do next to nothing have used %d units of fuel", used)
	}
	if told < used || told > used+1000 {
		t.Errorf("the caller is told that it used %d units of fuel, of which inner calls used %d", told, used)
	}
	// Without a limit, nothing is used up.
	n.do = func(c *hostcall.Call, _ int32) { before = c.Outer().Fuel() }
	if _, err := relay.Call(t.Context(), sandbox.CallSpec{}); err != nil || before != math.MaxInt64 {
		t.Errorf("a call without a limit has %d units left, %v", before, err)
	}
}

// TestNestedDeadline has calls inside others wait and compute for longer than the outer call may. All end with it.
// Proves: A call inside a call gets no further
func TestNestedDeadline(t *testing.T) {
	t.Parallel()
	n := &nest{}
	p := nestProgram(t, nestEngine(t, n, sandbox.Config{}), nester(false))
	if _, err := p.Tool("warm", nestEnds, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Fatal(err)
	}
	spinner := p.Tool("spinner", nestSpins, limits.Limits{Timeout: time.Hour})
	var depth int
	var ends [2]time.Time
	n.do = func(c *hostcall.Call, _ int32) {
		ends[depth] = c.Deadline()
		if depth++; depth == 2 {
			inside(c, spinner)
			return
		}
		inside(c, p.Tool("between", nestCalls, limits.Limits{Timeout: time.Hour}, mayNest()))
	}
	_, err := p.Tool("x", nestCalls, limits.Limits{Timeout: 200 * time.Millisecond}, mayNest()).Call(t.Context(), sandbox.CallSpec{})
	wantError(t, err, sandbox.ToolTimeout, "limit of 200ms")
	if depth != 2 || ends[1].After(ends[0]) {
		t.Errorf("the inner call ends at %v, the outer at %v", ends[1], ends[0])
	}
	// The inner call's own limit ends only the inner call.
	n.do = func(c *hostcall.Call, _ int32) {
		err = inside(c, p.Tool("short", nestSpins, limits.Limits{Timeout: 20 * time.Millisecond}))
	}
	if _, err := p.Tool("x", nestCalls, limits.Limits{Timeout: time.Minute}, mayNest()).Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Error(err)
	}
	wantError(t, err, sandbox.ToolTimeout, "limit of 20ms")
	// If the client gives up, both end.
	ctx, cancel := context.WithCancel(t.Context())
	n.do = func(c *hostcall.Call, _ int32) {
		cancel()
		inside(c, spinner)
		t.Error("the call goes on, although its client has gone")
	}
	_, err = p.Tool("x", nestCalls, limits.Limits{Timeout: time.Minute}, mayNest()).Call(ctx, sandbox.CallSpec{})
	wantError(t, err, sandbox.Cancelled, "")
}

// TestNestedTally counts what tools use in a client's call and all calls inside it, for each grant. Each client's call begins at zero.
// Proves: A call inside a call gets no further
func TestNestedTally(t *testing.T) {
	t.Parallel()
	n := &nest{}
	p := nestProgram(t, nestEngine(t, n, sandbox.Config{}), nester(false))
	grants := []*int{new(int), new(int)}
	tool := func(k int) *sandbox.Tool {
		return p.Tool(fmt.Sprint(k), nestCalls, limits.Limits{Timeout: time.Minute, Concurrency: 10}, hostcall.Grant{Module: nestModule, Value: grants[k]})
	}
	tools := []*sandbox.Tool{tool(0), tool(1)}
	var sums [2]int
	n.do = func(c *hostcall.Call, _ int32) {
		k := slices.Index(grants, c.Grant().(*int))
		sums[k] = c.Tally(1)
		if c.Outer().Depth() == 2 {
			return
		}
		for range 3 {
			if err := inside(c, tools[1-k]); err != nil {
				t.Error(err)
			}
		}
	}
	for range 2 {
		sums = [2]int{}
		if _, err := tools[0].Call(t.Context(), sandbox.CallSpec{}); err != nil {
			t.Fatal(err)
		}
		if want := [2]int{1 + 3*3, 3}; sums != want {
			t.Errorf("got the sums %v, want %v", sums, want)
		}
	}
}

// TestNestedCircle has tools call themselves and each other, from as many clients as they have places, and from more. If a place is not free at once,
// the call is refused: no call waits for a place whose holder is waiting.
// Proves: A call inside a call gets no further
func TestNestedCircle(t *testing.T) {
	t.Parallel()
	n := &nest{}
	p := nestProgram(t, nestEngine(t, n, sandbox.Config{}), nester(false))
	l := limits.Limits{Concurrency: 2, Queue: 8, Timeout: time.Minute}
	tools := []*sandbox.Tool{p.Tool("a", nestCalls, l, mayNest()), p.Tool("b", nestCalls, l, mayNest())}
	var mu sync.Mutex
	var refused, deepest int
	n.do = func(c *hostcall.Call, _ int32) {
		depth := c.Outer().Depth()
		err := inside(c, tools[(depth+1)%2])
		mu.Lock()
		defer mu.Unlock()
		deepest = max(deepest, depth)
		if err == nil {
			return
		}
		var e *sandbox.Error
		if refused++; !errors.As(err, &e) || e.Outcome != sandbox.Overloaded || !strings.Contains(e.Message, "does not wait for it") {
			t.Errorf("at depth %d: %v", depth, err)
		}
	}
	var calls sync.WaitGroup
	begun := time.Now()
	for i := range 8 {
		calls.Go(func() {
			if _, err := tools[i%2].Call(t.Context(), sandbox.CallSpec{}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if took := time.Since(begun); took > time.Minute || refused == 0 || deepest > 3 {
		t.Errorf("took %v, %d refused, %d deep", took, refused, deepest)
	}
	for _, tool := range tools {
		if s := tool.State(); s.Running != 0 || s.Waiting != 0 {
			t.Errorf("places are taken: %+v", s)
		}
	}
}

// TestNestedQueue has a tool that calls no others, and is busy. A call inside another waits for it, but only for a part of its time.
// Proves: A call inside a call gets no further
func TestNestedQueue(t *testing.T) {
	t.Parallel()
	n := &nest{}
	p := nestProgram(t, nestEngine(t, n, sandbox.Config{}), nester(false))
	leaf := p.Tool("leaf", nestCalls, limits.Limits{Concurrency: 1, Queue: 1, Timeout: time.Minute})
	holds, release := make(chan struct{}, 1), make(chan struct{})
	var err error
	n.do = func(c *hostcall.Call, _ int32) {
		if c.Grant() == nil { // the leaf
			holds <- struct{}{}
			c.Wait(func(context.Context) { <-release })
			return
		}
		err = inside(c, leaf)
	}
	done := make(chan error)
	call := func() {
		_, err := leaf.Call(t.Context(), sandbox.CallSpec{})
		done <- err
	}
	go call()
	<-holds
	outer := func(timeout time.Duration) {
		t.Helper()
		if _, err := p.Tool("x", nestCalls, limits.Limits{Timeout: timeout}, mayNest()).Call(t.Context(), sandbox.CallSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	outer(2 * time.Second) // the outer call keeps the rest of its time for other work
	wantError(t, err, sandbox.Overloaded, "a call inside another can't wait any longer")
	go call()
	testkit.Until(t, "the second call waits", func() bool { return leaf.State().Waiting == 1 })
	outer(time.Minute)
	wantError(t, err, sandbox.Overloaded, "too many calls are waiting")
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(holds) > 0 {
			<-holds
		}
	}
	if outer(time.Minute); err != nil {
		t.Errorf("once the tool is idle: %v", err)
	}
}

// TestNestedMemory nests calls until there is no room for one more. The last one is refused at once: it would wait for memory of calls that wait for
// it. All others go on.
// Proves: A call inside a call gets no further
func TestNestedMemory(t *testing.T) {
	t.Parallel()
	n := &nest{}
	p := nestProgram(t, nestEngine(t, n, sandbox.Config{Memory: 2 << 20}), nester(false))
	tool := p.Tool("x", nestCalls, limits.Limits{Concurrency: 1000, Timeout: time.Hour}, mayNest())
	deepest, refused := 0, 0
	n.do = func(c *hostcall.Call, _ int32) {
		deepest = max(deepest, c.Outer().Depth())
		if err := inside(c, tool); err != nil {
			refused++
			wantError(t, err, sandbox.Overloaded, "Other calls use all of")
		}
	}
	for range 2 { // the refused call has left nothing behind
		deepest, refused = 0, 0
		if _, err := tool.Call(t.Context(), sandbox.CallSpec{}); err != nil {
			t.Fatal(err)
		}
		if deepest < 3 || deepest > 30 || refused != 1 {
			t.Errorf("%d deep, %d refused, want one refused when 2 MiB are used up", deepest, refused)
		}
	}
}

// TestNestedStart has an inner call need a tool that is being started for a third call. The third call may be waiting for what the outer call
// holds, so the inner call waits only for a part of its time.
// Proves: A call inside a call gets no further
func TestNestedStart(t *testing.T) {
	t.Parallel()
	starts, release := make(chan struct{}), make(chan struct{})
	n := &nest{}
	blocks := &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: func(c *hostcall.Call, stack []uint64) {
		if stack[0] = 0; !c.Serving() {
			close(starts)
			<-release
		}
	}}}}
	e := sandboxtest.Engine(t, sandbox.Config{Imports: append(abi1.Sets(), n.set(), blocks)})
	p := nestProgram(t, e, nester(false))
	slow, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	starter := slow.Tool("slow", toolEnds, limits.Limits{Timeout: time.Hour})
	done := make(chan error)
	go func() {
		_, err := starter.Call(t.Context(), sandbox.CallSpec{})
		done <- err
	}()
	<-starts
	n.do = func(c *hostcall.Call, _ int32) { err = inside(c, starter) }
	if _, err := p.Tool("x", nestCalls, limits.Limits{Timeout: 2 * time.Second}, mayNest()).Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Error(err)
	}
	wantError(t, err, sandbox.Overloaded, "being started for another call")
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNestedStartIsInside has an inner call be the first call of its tool. The start logs no more than the outer call may, and does not wait for
// memory that the outer call may hold.
// Proves: A call inside a call gets no further
func TestNestedStartIsInside(t *testing.T) {
	t.Parallel()
	n := &nest{}
	hold := int64(0)
	starts := &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: func(c *hostcall.Call, stack []uint64) {
		if stack[0] = 0; !c.Serving() {
			c.Hold(hold)
			for range 5 {
				c.Log(slog.LevelInfo, "toy", []byte("starting"))
			}
		}
	}}}}
	var log testkit.Log
	e := sandboxtest.Engine(t, sandbox.Config{Imports: append(abi1.Sets(), n.set(), starts), Memory: 4 << 20, Logger: log.Logger(slog.LevelDebug)})
	p := nestProgram(t, e, nester(false))
	var inner error
	call := func() time.Duration {
		t.Helper()
		begun := time.Now()
		program, err := e.Load(toucher(""), withToy()...)
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		tool := program.Tool("inner", toolEnds, limits.Limits{Timeout: time.Hour})
		n.do = func(c *hostcall.Call, _ int32) {
			c.Hold(hold)
			inner = inside(c, tool)
		}
		if _, err := p.Tool("outer", nestCalls, limits.Limits{LogLines: 3, Timeout: 4 * time.Minute}, mayNest()).Call(t.Context(), sandbox.CallSpec{}); err != nil {
			t.Fatal(err)
		}
		return time.Since(begun)
	}
	if call(); inner != nil || log.Count("msg=starting") != 3 {
		t.Errorf("got %v and %d lines, want the 3 that the outer call may log", inner, log.Count("msg=starting"))
	}
	hold = 2 << 20
	took := call()
	wantError(t, inner, sandbox.Overloaded, "Other calls use all of")
	if took > 30*time.Second {
		t.Errorf("it waited %v for memory", took)
	}
}

// An outer is a call inside which others run. It counts the fuel that they use.
type outer struct {
	hostcall.Outer
	burnt int64
}

func (o *outer) Depth() int      { return 0 }
func (o *outer) Ends() time.Time { return time.Now().Add(time.Minute) }
func (o *outer) Fuel() int64     { return math.MaxInt64 }
func (o *outer) Burn(fuel int64) { o.burnt += fuel }

// TestNestedStartOfEngine has a module break in its start, after its engine was started for it. The call pays for both.
// Proves: A call inside a call gets no further
func TestNestedStartOfEngine(t *testing.T) {
	t.Parallel()
	parsed, err := wasmbin.Parse(testkit.Fixture(t, "wat/good/engine"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := parsed.AppendData(65536, []byte{0, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	var o outer
	_, err = sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), module).Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Outer: &o})
	wantError(t, err, sandbox.ToolTrapped, "unreachable")
	if o.burnt < 100_000 { // the engine writes to 24,576 places
		t.Errorf("the call has paid %d units of fuel", o.burnt)
	}
}
