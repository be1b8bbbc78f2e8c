package sandbox_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
)

// spinners starts a call that never ends on every core, twice, and returns when all run.
func spinners(t *testing.T, e *sandbox.Engine, index int32) {
	t.Helper()
	n := 2 * runtime.GOMAXPROCS(0)
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/spin"))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	tool := p.Tool("spin", index, limits.Limits{Timeout: time.Minute, Concurrency: n})
	occupy(t, tool, n)
}

// TestCollection has the host's garbage collector, which must stop all goroutines, run beside guests that never call the
// host by themselves. The bound is generous: it is for a machine that does other things, too.
func TestCollection(t *testing.T) {
	for _, index := range []int32{0, 2, 7} {
		e := sandboxtest.Engine(t, sandbox.Config{})
		spinners(t, e, index)
		var took []time.Duration
		for range 5 {
			begun := time.Now()
			runtime.GC()
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		if took[2] > 2*time.Second {
			t.Errorf("spinner %d: collections took %v", index, took)
		}
	}
}

// TestNeighbour has a small tool called while another spins on every core.
func TestNeighbour(t *testing.T) {
	e := sandboxtest.Engine(t, sandbox.Config{})
	spinners(t, e, 0)
	tool := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/small")).Tool("small", 0, limits.Limits{})
	var took []time.Duration
	for n := range 100 {
		begun := time.Now()
		if _, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		if n > 0 { // the first one compiles
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	if took[90] > time.Second {
		t.Errorf("beside guests that spin, every tenth call took %v and more", took[90])
	}
}
