package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A grower calls tools whose memory grows.
type grower struct {
	*testing.T
	p *Program
}

// call makes a call that must be answered.
func (g grower) call(index int32, limits limits.Limits, want string) {
	g.Helper()
	if out, err := g.p.Tool("x", index, limits).Call(g.Context(), CallSpec{Input: []byte("[1]")}); err != nil || string(out) != want {
		g.Fatalf("tool %d: got %s, %v, want %s", index, out, err, want)
	}
}

// breaks makes a call that must break.
func (g grower) breaks(index int32, limits limits.Limits, want Outcome) {
	g.Helper()
	out, err := g.p.Tool("x", index, limits).Call(g.Context(), CallSpec{Input: []byte("[1]")})
	var failed *Error
	if !errors.As(err, &failed) || failed.Outcome != want {
		g.Errorf("tool %d: got %s, %v, want %s", index, out, err, want)
	}
	if n := g.p.module.idlers(); n != 0 && want == ToolTrapped {
		g.Errorf("tool %d: %d instances are idle after one broke", index, n)
	}
}

// kept returns the only idle instance.
func (g grower) kept() *instance {
	g.Helper()
	if n := g.p.module.idlers(); n != 1 {
		g.Fatalf("%d instances are idle, want 1", n)
	}
	return g.p.module.idle[0]
}

// plainly makes the module's instances whole copies, reset by copying everything, as on systems that do not report dirty pages.
func (g grower) plainly() {
	g.Helper()
	m := g.p.module
	image, err := linmem.NewPlainImage(g.kept().memory.linear.Bytes())
	if err != nil {
		g.Fatal(err)
	}
	old := released{instances: m.idle, snapshot: m.snapshot}
	m.idle, m.snapshot = nil, &snapshot{image: image, globals: m.snapshot.globals}
	m.engine.account.Add(account.Memory, m.snapshot.resident())
	old.free(m.engine)
}

// bothWays runs a test with hostile/grows, which was called once. It does so with instances that are reset by their dirty pages, if the system
// reports them, and with whole copies.
func bothWays(t *testing.T, test func(g grower)) {
	for _, kind := range []string{"dirty pages", "whole copies"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, p := poolEngine(t, Config{}, "hostile/grows")
			g := grower{t, p}
			g.call(1, limits.Limits{}, "1")
			if kind == "whole copies" {
				g.plainly()
			}
			test(g)
		})
	}
}

// TestBehindTheEnd has calls look for what the call before them, in the same instance, left beyond the memory's end.
// Proves: Nothing is left of a call
func TestBehindTheEnd(t *testing.T) {
	t.Parallel()
	bothWays(t, func(g grower) {
		g.call(0, limits.Limits{}, "1")
		kept := g.kept()
		for _, index := range []int32{1, 2, 2, 0, 2, 1, 0, 1} {
			g.call(index, limits.Limits{}, "1")
			if g.kept() != kept {
				g.Fatalf("tool %d: the instance was not kept", index)
			}
		}
		for index := int32(4); index <= 14; index++ {
			g.call(0, limits.Limits{}, "1")
			g.kept()
			g.breaks(index, limits.Limits{}, ToolTrapped)
		}
		g.call(0, limits.Limits{}, "1")
		g.breaks(2, limits.Limits{Fuel: 30_000}, ToolFuel) // in the middle of filling the new pages
		if n := g.p.module.idlers(); n != 0 {
			g.Errorf("%d instances are idle after one ran out of fuel", n)
		}
		g.call(2, limits.Limits{}, "1")
	})
}

// TestGrowthHasTheCallsLimit grows one instance to the limits of several tools, up to what the module declares.
func TestGrowthHasTheCallsLimit(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/grows")
	g := grower{t, p}
	g.call(3, limits.Limits{Memory: 5 * pageSize}, "4") // in an instance that has no room for more
	g.call(3, limits.Limits{}, "9")                     // all the pages that there are
	if n := p.module.idlers(); n != 0 {
		t.Errorf("%d instances are idle after the memory grew to its end", n)
	}
	g.call(3, limits.Limits{Memory: 9 * pageSize}, "8")
	kept := g.kept()
	for _, pages := range []int64{5, 1, 9, 2} {
		g.call(3, limits.Limits{Memory: pages * pageSize}, string(rune('0'+pages-1)))
		if g.kept() != kept {
			t.Errorf("%d pages: the instance was not kept", pages)
		}
	}
}

// TestGrowthCounts checks that an idle instance is counted together with what it keeps beyond its memory's end.
func TestGrowthCounts(t *testing.T) {
	t.Parallel()
	bothWays(t, func(g grower) {
		for _, index := range []int32{0, 0, 1} {
			g.call(index, limits.Limits{}, "1")
		}
		snapshot := g.p.module.snapshot.resident()
		if got, want := g.p.module.engine.account.Held(account.Memory)-snapshot, 5*pageSize+g.p.module.overhead(); got != want {
			g.Errorf("an instance that wrote five pages keeps %d bytes, want %d", got, want)
		}
	})
}

// TestGrowthAtStart grows the memory from nothing while the module is started, warmed, described and called.
func TestGrowthAtStart(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/grows_start")
	g := grower{t, p}
	g.breaks(0, limits.Limits{Memory: pageSize}, ToolMemory)
	for range 2 {
		for _, pages := range []int64{9, 4, 2, 9} {
			g.call(0, limits.Limits{Memory: pages * pageSize}, "1")
			if out, err := p.Describe(t.Context()); err != nil || string(out) != "1" {
				t.Fatalf("Describe: got %s, %v, want 1", out, err)
			}
		}
		g.breaks(0, limits.Limits{Memory: pageSize}, ToolMemory)
	}
}

// TestGrowthFromNothing has memories that are empty whenever no call runs.
func TestGrowthFromNothing(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/grows_empty")
	g := grower{t, p}
	g.call(0, limits.Limits{}, "1")
	kept := g.kept()
	for range 3 {
		g.call(0, limits.Limits{}, "1")
		if g.kept() != kept {
			t.Fatal("the instance was not kept")
		}
	}
	g.breaks(1, limits.Limits{}, ToolTrapped)
	g.call(0, limits.Limits{}, "1")
}

// TestGrowthOfCommand has a plain WASI program grow its memory, and end itself.
func TestGrowthOfCommand(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/grows_command")
	g := grower{t, p}
	g.call(0, limits.Limits{}, "1")
	kept := g.kept()
	for range 3 {
		g.call(0, limits.Limits{}, "1")
		if g.kept() != kept {
			t.Fatal("the instance was not kept")
		}
	}
}

// A stubborn guest claims that its memory has grown to what its allocator returned, but it has not.
type stubborn struct{ api.Module }

func (s stubborn) Memory() api.Memory { return stubbornMemory{s.Module.Memory()} }

type stubbornMemory struct{ api.Memory }

func (m stubbornMemory) Grow(uint32) (uint32, bool) { return m.Size() / pageSize, true }

// TestSameSize has a guest that sees more memory than its snapshot has, which paranoid mode must detect.
func TestSameSize(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/grows")
	g := grower{t, p}
	g.call(1, limits.Limits{}, "1")
	i := g.kept()
	if _, ok := i.guest.Memory().Grow(1); !ok {
		t.Fatal("the memory does not grow")
	}
	if _, err := i.memory.linear.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := i.same(); err == nil || !strings.Contains(err.Error(), "131072 bytes") {
		t.Errorf("got %v, want an error that names 131072 bytes", err)
	}
	if !i.shrink() {
		t.Error("the guest does not shrink")
	}
	if err := i.same(); err != nil {
		t.Error(err)
	}
}

// TestShrinkIsReadBack has a guest that can't be made to see a smaller memory, whatever it claims. Its instance is closed.
// Proves: Nothing is left of a call
func TestShrinkIsReadBack(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "hostile/grows")
	g := grower{t, p}
	g.call(1, limits.Limits{}, "1")
	i := g.kept()
	i.guest = stubborn{i.guest}
	g.call(0, limits.Limits{}, "1")
	if n := p.module.idlers(); n != 0 {
		t.Fatal("an instance that sees more than its snapshot is kept")
	}
	g.call(2, limits.Limits{}, "1")
}
