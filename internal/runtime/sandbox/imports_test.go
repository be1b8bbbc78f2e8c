package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A toy is a set of one function, touch, which records what it sees.
type toy struct {
	touched func() // nil, or what touch does in addition
	mu      sync.Mutex
	seen    []glimpse
	begun   int // states
	ended   int
}

// A glimpse is what one call of touch has seen. at is its argument.
type glimpse struct {
	at        int32
	serving   bool
	grant     any
	principal any
	state     bool // something was kept before
}

// A toyState is what a toy keeps for one call.
type toyState struct{ toy *toy }

func (s *toyState) End(*hostcall.Call) {
	s.toy.mu.Lock()
	defer s.toy.mu.Unlock()
	s.toy.ended++
}

const toyModule = "toy_v1"

func (y *toy) set() *hostcall.Set {
	return &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: y.touch}}}
}

// What touch does besides recording, by its argument.
const (
	touchTwice = 4 // keeps a second state in place of the first
	touchTrap  = 5
	touchPanic = 6
	atStart    = 100
	atDescribe = 101
)

func (y *toy) touch(c *hostcall.Call, stack []uint64) {
	g := glimpse{at: int32(uint32(stack[0])), serving: c.Serving(), grant: c.Grant(), state: c.Local() != nil}
	if p := c.Principal(); p != nil {
		g.principal = p.String()
	}
	y.mu.Lock()
	y.seen = append(y.seen, g)
	y.mu.Unlock()
	y.keep(c)
	c.Log(slog.LevelInfo, "toy", fmt.Append(nil, "touched at ", g.at))
	if y.touched != nil {
		y.touched()
	}
	switch g.at {
	case touchTwice:
		y.keep(c)
	case touchTrap:
		c.Trap("it touched at %d", g.at)
	case touchPanic:
		var none *toy
		none.begun++
	}
	stack[0] = 0
}

func (y *toy) keep(c *hostcall.Call) {
	y.mu.Lock()
	y.begun++
	y.mu.Unlock()
	c.Keep(&toyState{y})
}

// take returns what was recorded since the last call of take.
func (y *toy) take() []glimpse {
	y.mu.Lock()
	defer y.mu.Unlock()
	seen := y.seen
	y.seen = nil
	return seen
}

// What tools of toucher do after they have touched.
const (
	toolEnds  = 0
	toolTraps = 1
	toolSpins = 2
	toolFails = 3 // returns 7, which is not a valid result
)

// toucher returns a module that calls touch when it starts, when it is described, and when it is called. In a call, the argument of touch is the
// tool's number. name is the content of a custom section.
func toucher(name string) []byte {
	module := []byte("\x00asm\x01\x00\x00\x00")
	module = append(module, section(1, []byte("\x04\x60\x00\x00\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x00\x60\x00\x01\x7f"))...)
	module = append(module, section(2, []byte("\x02\x06toy_v1\x05touch\x00\x01\x0atoolsrv_v1\x0coutput_write\x00\x02"))...)
	module = append(module, section(3, []byte{3, 0, 1, 3})...)
	module = append(module, section(5, []byte{1, 0, 1})...)
	module = append(module, section(7, []byte("\x04\x06memory\x02\x00\x0b_initialize\x00\x02\x0ctoolsrv_call\x00\x03\x10toolsrv_describe\x00\x04"))...)
	var code []byte
	for _, body := range []string{
		"\x00\x41\xe4\x00\x10\x00\x1a\x0b", // touch(100)
		"\x00\x20\x00\x10\x00\x1a" + // touch(tool)
			"\x20\x00\x41\x01\x46\x04\x40\x00\x0b" + // 1: unreachable
			"\x20\x00\x41\x02\x46\x04\x40\x03\x40\x0c\x00\x0b\x0b" + // 2: for ever
			"\x20\x00\x41\x03\x46\x04\x40\x41\x07\x0f\x0b" + // 3: return 7
			"\x41\x00\x41\x01\x10\x01\x41\x00\x0b", // write "1"
		"\x00\x41\xe5\x00\x10\x00\x1a\x41\x00\x41\x01\x10\x01\x41\x00\x0b", // touch(101), write "1"
	} {
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	module = append(module, section(10, append([]byte{3}, code...))...)
	module = append(module, section(11, []byte("\x01\x00\x41\x00\x0b\x011"))...)
	return wasmbin.AppendCustom(module, "name of the file", []byte(name))
}

func toyEngine(t *testing.T, y *toy, c sandbox.Config) *sandbox.Engine {
	c.Imports = append(abi1.Sets(), y.set())
	return sandboxtest.Engine(t, c)
}

// withToy is what a program may import if it was granted the toy.
func withToy() []string { return append(abi1.Modules(), toyModule) }

// TestImportsOfEachProgram loads two files with the same code, only one of which may import the toy. They share the code in every way: as a loaded
// module, with its snapshot and idle instances, and in the cache. The other file gets nothing of the toy.
// Proves: Nothing without a grant
func TestImportsOfEachProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	granted, other := toucher("granted"), toucher("other")
	refused := func(e *sandbox.Engine, when string) {
		t.Helper()
		for _, module := range [][]byte{other, granted} {
			_, err := e.Load(module, abi1.Modules()...)
			if err == nil || !strings.Contains(err.Error(), `the import "toy_v1"."touch" is not offered: the modules toolsrv_v1 and wasi_snapshot_preview1 are`) {
				t.Errorf("%s: got %v, want the import refused by name", when, err)
			}
		}
		if _, err := e.Load(other); err == nil || !strings.Contains(err.Error(), "nothing is") {
			t.Errorf("%s: got %v, want every import refused", when, err)
		}
	}
	var y toy
	e := toyEngine(t, &y, sandbox.Config{CacheDir: dir})
	refused(e, "before")
	p, err := e.Load(granted, withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	refused(e, "loaded")
	if _, err := p.Tool("x", toolEnds, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Fatal(err)
	}
	refused(e, "called")
	p.Close()
	refused(e, "closed")

	e = toyEngine(t, &y, sandbox.Config{CacheDir: dir})
	refused(e, "in the cache")
	e = sandboxtest.Engine(t, sandbox.Config{CacheDir: dir})
	refused(e, "in the cache of an engine without the toy")
	if _, err := e.Load(other, withToy()...); err == nil || !strings.Contains(err.Error(), `the engine has no functions for the import module "toy_v1"`) {
		t.Errorf("got %v, want an unknown set refused", err)
	}
}

// TestGrantsOfEachTool calls tools of two files at the same time. The files share code and instances. Each tool has its own grant, or none, and its
// own principal.
// Proves: Nothing without a grant
func TestGrantsOfEachTool(t *testing.T) {
	t.Parallel()
	var y toy
	e := toyEngine(t, &y, sandbox.Config{})
	var tools []*sandbox.Tool
	for i := range 2 {
		p, err := e.Load(toucher(fmt.Sprint("file ", i)), withToy()...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		tools = append(tools,
			p.Tool("granted", int32(10+len(tools)), limits.Limits{}, hostcall.Grant{Module: toyModule, Value: 10 + len(tools)}),
			p.Tool("not granted", int32(11+len(tools)), limits.Limits{}, hostcall.Grant{Module: "another", Value: "much"}))
	}
	var calls sync.WaitGroup
	for range 4 {
		for i, tool := range tools {
			calls.Go(func() {
				for range 25 {
					if _, err := tool.Call(t.Context(), sandbox.CallSpec{Principal: word(fmt.Sprint("user ", i))}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	calls.Wait()
	served := 0
	for _, g := range y.take() {
		if g.at == atStart {
			continue
		}
		served++
		want := glimpse{at: g.at, serving: true, principal: fmt.Sprint("user ", g.at-10)}
		if g.at%2 == 0 {
			want.grant = int(g.at)
		}
		if g != want {
			t.Errorf("got %+v, want %+v", g, want)
		}
	}
	if served != 400 {
		t.Errorf("touched %d times, want 400", served)
	}
}

// A word is a principal.
type word string

func (w word) String() string { return string(w) }

// TestStartHasNoGrant checks what a guest sees while it starts, since the snapshot for all calls depends on that, and while it describes itself. In
// neither case does what the guest says reach the listener of the call that made it run.
// Proves: Nothing without a grant
func TestStartHasNoGrant(t *testing.T) {
	t.Parallel()
	var y toy
	e := toyEngine(t, &y, sandbox.Config{})
	p, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tool := p.Tool("x", toolEnds, limits.Limits{}, hostcall.Grant{Module: toyModule, Value: "all"})
	heard := &listener{}
	for range 2 {
		if _, err := tool.Call(t.Context(), sandbox.CallSpec{Principal: word("somebody"), Listener: heard}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	called := glimpse{serving: true, grant: "all", principal: "somebody"}
	want := []glimpse{{at: atStart}, called, called, {at: atDescribe, serving: true}}
	if got := y.take(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := heard.text.String(), strings.Repeat("INFO toy touched at 0\n", 2); got != want {
		t.Errorf("the listener heard %q, want %q", got, want)
	}
	if y.ended != 4 {
		t.Errorf("%d states have ended, want 4", y.ended)
	}
}

// TestStateEnds has calls end in every way. What a set kept for a call ends with it, once, and no other call sees it.
// Proves: Nothing without a grant
func TestStateEnds(t *testing.T) {
	t.Parallel()
	var y toy
	e := toyEngine(t, &y, sandbox.Config{})
	p, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	check := func(name string) {
		t.Helper()
		for _, g := range y.take() {
			if g.state {
				t.Errorf("%s: it saw what was kept for another call: %+v", name, g)
			}
		}
		if y.mu.Lock(); y.begun != y.ended {
			t.Errorf("%s: %d states were begun, %d have ended", name, y.begun, y.ended)
		}
		y.mu.Unlock()
	}
	for _, test := range []struct {
		name    string
		tool    int32
		limits  limits.Limits
		outcome sandbox.Outcome
		message string
	}{
		{"ends", toolEnds, limits.Limits{}, sandbox.OK, ""},
		{"traps", toolTraps, limits.Limits{}, sandbox.ToolTrapped, "unreachable"},
		{"times out", toolSpins, limits.Limits{Timeout: 300 * time.Millisecond}, sandbox.ToolTimeout, ""},
		{"uses up its fuel", toolSpins, limits.Limits{Fuel: 1_000_000}, sandbox.ToolFuel, ""},
		{"gives no answer", toolFails, limits.Limits{}, sandbox.ToolBadOutput, ""},
		{"keeps two states", touchTwice, limits.Limits{}, sandbox.OK, ""},
		{"is trapped by the set", touchTrap, limits.Limits{}, sandbox.ToolTrapped, "The tool broke: it touched at 5."},
		{"meets a bug of the set", touchPanic, limits.Limits{}, sandbox.Internal, ""},
		{"ends after all that", toolEnds, limits.Limits{}, sandbox.OK, ""},
	} {
		_, err := p.Tool("x", test.tool, test.limits).Call(t.Context(), sandbox.CallSpec{})
		if test.outcome != sandbox.OK {
			wantError(t, err, test.outcome, test.message)
		} else if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		check(test.name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	y.touched = cancel
	_, err = p.Tool("x", toolSpins, limits.Limits{}).Call(ctx, sandbox.CallSpec{})
	wantError(t, err, sandbox.Cancelled, "")
	check("cancelled")
}

// TestWrongSets has New refuse sets that can't be offered.
func TestWrongSets(t *testing.T) {
	t.Parallel()
	nothing := func(*hostcall.Call, []uint64) {}
	for _, test := range []struct {
		sets []*hostcall.Set
		want string
	}{
		{append(abi1.Sets(), &hostcall.Set{Module: abi1.Module}), `"toolsrv_v1" is offered twice`},
		{[]*hostcall.Set{{Module: "x", Functions: []hostcall.Function{{Name: "f", Do: nothing}, {Name: "f", Do: nothing}}}}, `"x"."f" is offered twice`},
		{[]*hostcall.Set{{Module: "x", Functions: []hostcall.Function{{Name: "f", Params: "v", Do: nothing}}}}, `"x"."f" is offered with the type`},
	} {
		if _, err := sandbox.New(t.Context(), sandbox.Config{Imports: test.sets}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error with %s", err, test.want)
		}
	}
}

// A listener records what it hears.
type listener struct{ text bytes.Buffer }

func (l *listener) Log(level slog.Level, source, line string) {
	fmt.Fprintf(&l.text, "%s %s %s\n", level, source, line)
}

func (l *listener) Progress(done, total float64, message string) {
	fmt.Fprintf(&l.text, "%v/%v %s\n", done, total, message)
}
