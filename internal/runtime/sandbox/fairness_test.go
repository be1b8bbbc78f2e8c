package sandbox_test

import (
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// spinners starts twice as many calls as there are cores. None of them ever ends. It returns when all are running.
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

// TestCollection runs the host's garbage collector, which must stop all goroutines, while guests run that never call the host by themselves. The
// bound is generous, since the machine may be busy with other things.
// Proves: A tool stops
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
		if took[2] > 10*time.Second {
			t.Errorf("spinner %d: collections took %v", index, took)
		}
	}
}

// TestNeighbour calls a small tool while another one spins on every core.
// Proves: A tool stops
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
		if n > 0 { // the first call compiles the tool
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	if took[90] > time.Second {
		t.Errorf("while guests spin, one call in ten took %v or more", took[90])
	}
}

// TestMovedValues has a loop that moves thousands of values in each pass, because of an if that is never entered. The fastest of some calls counts,
// since the machine does other things, too.
// Proves: A tool stops
func TestMovedValues(t *testing.T) {
	const vectors = 3072
	var sets, gets strings.Builder
	for i := range vectors {
		local := string(binary.AppendUvarint(nil, uint64(i+1)))
		sets.WriteString("\x20\x00\xfd\x11\x21" + local) // i32x4.splat
		gets.WriteString("\x20" + local + "\xfd\x51")
	}
	body := append([]byte{1}, binary.AppendUvarint(nil, vectors)...)
	body = append(body, "\x7b\x02\x40\x03\x40\x20\x00\x04\x40"+sets.String()+"\x0b\x20\x00\x0d\x01\x0c\x00\x0b\x0b\x41\x00\xfd\x11"+gets.String()+"\x1a\x41\x00\x0b"...)
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, tool(body))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	const limit = 20 * time.Millisecond
	best := time.Hour
	for range 5 {
		begun := time.Now()
		_, err := p.Tool("x", 0, limits.Limits{Timeout: limit}).Call(t.Context(), sandbox.CallSpec{})
		wantError(t, err, sandbox.ToolTimeout, "")
		best = min(best, time.Since(begun))
	}
	if best > 3*limit {
		t.Errorf("calls with a limit of %v take %v at least", limit, best)
	}
	occupy(t, p.Tool("y", 0, limits.Limits{Timeout: time.Minute, Concurrency: 8}), 8)
	best = time.Hour
	for range 5 {
		begun := time.Now()
		runtime.GC()
		best = min(best, time.Since(begun))
	}
	if best > time.Second {
		t.Errorf("while such calls run, collections take %v at least", best)
	}
}
