package sandbox_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestKeep counts memory that is kept for programs, up to a quarter of all memory.
func TestKeep(t *testing.T) {
	t.Parallel()
	const most = 16 << 20
	e := sandboxtest.Engine(t, sandbox.Config{Memory: 4 * most})
	module := testkit.Fixture(t, "catalog/answer")
	a, b := sandboxtest.Load(t, e, module), sandboxtest.Load(t, e, module)
	for _, step := range []struct {
		name     string
		program  *sandbox.Program
		bytes    int64
		replaces bool
		want     bool
		held     int64 // afterwards
	}{
		{"more than all", a, most + 1, true, false, 0},
		{"a half", a, most / 2, false, true, most / 2},
		{"the rest, with the reserve", b, most / 2, false, false, most / 2},
		{"the rest, for a program that replaces another", b, most / 2, true, true, most},
		{"one more byte", a, 1, true, false, most},
	} {
		if got := step.program.Keep(step.bytes, step.replaces); got != step.want {
			t.Errorf("%s: got %t, want %t", step.name, got, step.want)
		}
		if s := e.State(); s.Manifests.Held != step.held || s.Memory.Held != step.held || s.Manifests.Limit != most {
			t.Errorf("%s: got %+v of memory %+v, want %d held of %d", step.name, s.Manifests, s.Memory, step.held, most)
		}
	}
	for range 2 {
		a.Close()
	}
	if s := e.State(); s.Manifests.Held != most/2 || s.Memory.Held != most/2 {
		t.Errorf("after a close: got %+v of memory %+v, want half of what may be kept", s.Manifests, s.Memory)
	}
	b.Close()
	if s := e.State(); s.Manifests.Held != 0 || s.Memory.Held != 0 {
		t.Errorf("after both: got %+v of memory %+v, want nothing", s.Manifests, s.Memory)
	}
}
