package sandbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestState follows one program from the loading of its file to its end.
func TestState(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: t.TempDir(), Memory: 1 << 30})
	expect := func(when string, modules int, code sandbox.CodeState, idle int) {
		t.Helper()
		s := e.State()
		if s.Modules != modules || modules > 0 && s.Code[code] != modules || s.Idle != idle || s.Snapshots != idle || s.Calls != 0 {
			t.Errorf("%s: got %+v, want %d modules, their code %s, and %d idle", when, s, modules, code, idle)
		}
		if s.Compiling.Queued+s.Compiling.Running > 0 {
			t.Errorf("%s: got %+v, want nothing compiled", when, s.Compiling)
		}
		if loaded := modules > 0 && code == sandbox.CodeLoaded; (s.CodeMemory.Held > 0) != loaded || (s.Mappings.Held > 0) != loaded || (s.Memory.Held > 0) != loaded {
			t.Errorf("%s: got %+v of code, %+v mappings, %+v of memory", when, s.CodeMemory, s.Mappings, s.Memory)
		}
		if s.Memory.Limit != 1<<30 || s.CodeMemory.Limit <= 0 {
			t.Errorf("%s: got the limits %+v and %+v", when, s.Memory, s.CodeMemory)
		}
	}
	expect("empty", 0, "", 0)
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/small"))
	other := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/small")) // one module
	expect("loaded", 1, sandbox.CodeMissing, 0)
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted(t, e)
	expect("compiled ahead", 1, sandbox.CodeStored, 0)
	if _, err := p.Tool("small", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	counted(t, e)
	expect("called", 1, sandbox.CodeLoaded, 1)
	s := other.State()
	if s.Code != sandbox.CodeLoaded || s.CodeMemory <= 0 || !s.Snapshot || s.Idle != 1 || s.Calls != 0 || time.Since(s.Called) > time.Minute {
		t.Errorf("got %+v of the program", s)
	}
	p.Close()
	other.Close()
	expect("closed", 0, "", 0)
}

// counted waits until compiled code has been counted, which happens after its callers were told.
func counted(t *testing.T, e *sandbox.Engine) {
	t.Helper()
	for begun := time.Now(); e.State().Compiling.Running > 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("a compilation does not end")
		}
	}
}

// TestToolState has more calls of a tool than the tool has places.
func TestToolState(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/spin"))
	tool := p.Tool("spin", 0, limits.Limits{Timeout: time.Minute, Concurrency: 2, Queue: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() { _, _ = tool.Call(ctx, sandbox.CallSpec{}) })
	}
	// A call takes its tool's place before the engine counts it.
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		s, calls := tool.State(), e.State().Calls
		if s == (sandbox.ToolState{Running: 2, Waiting: 1}) && calls == 2 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("got %+v and %d calls of the engine, want 2 that run, 1 that waits, and 2 calls", s, calls)
		}
	}
	cancel()
	wait.Wait()
	if s := tool.State(); s != (sandbox.ToolState{}) {
		t.Errorf("got %+v at the end", s)
	}
}

func BenchmarkState(b *testing.B) {
	e := sandboxtest.Engine(b, sandbox.Config{})
	sandboxtest.Load(b, e, testkit.Fixture(b, "wat/good/small"))
	b.ReportAllocs()
	for b.Loop() {
		e.State()
	}
}
