package sandbox

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestCodeInTurn calls tools in turn, and there are more than there is room for. Most of those that fit have their code in memory.
func TestCodeInTurn(t *testing.T) {
	t.Parallel()
	const n, fit = 24, 18
	dir := t.TempDir()
	open := func(room int64) (*Engine, []*Program) {
		e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: dir, CodeMemory: room})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close(context.Background()) })
		programs := make([]*Program, n)
		for i := range programs {
			programs[i] = loadInternal(t, e, bytes.Replace(echoFixture(t), []byte{0x41, 9}, []byte{0x41, byte(10 + i)}, 1))
			if err := programs[i].Compile(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return e, programs
	}
	call := func(p *Program) {
		t.Helper()
		// The time of a call includes loading the code, and the system may be busy.
		if out, err := p.Tool("echo", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
			t.Fatalf("got %s, %v, want 1", out, err)
		}
	}
	e, programs := open(0)
	if s := e.State(); s.Compiled.Count != n || s.Compiled.Took <= 0 || s.Loaded.Count != 0 || s.CompileFailures != 0 || s.Unused != 0 || s.Crowded != 0 {
		t.Errorf("once %d modules are compiled: %+v", n, s)
	}
	if held := e.account.Held(account.Code); held != 0 {
		t.Errorf("%d bytes of code that nobody called are in memory, although the cache has them", held)
	}
	call(programs[0])
	room := fit * e.account.Held(account.Code)
	e, programs = open(room)
	found := 0
	for round := range 12 {
		for _, p := range programs {
			if p.State().Code == CodeLoaded && round >= 10 {
				found++
			}
			call(p)
			for e.account.Held(account.Code) > room {
				runtime.Gosched()
			}
		}
	}
	if s := e.State(); s.Compiled.Count != 0 || s.Loaded.Count <= n || s.Crowded == 0 || s.Unused != 0 {
		t.Errorf("after calls in turn: %+v", s)
	}
	if found < n {
		t.Errorf("%d of %d calls found their code, want half at least", found, 2*n)
	}
}

// TestLoadedIsPackedLater loads code from the cache. The janitor compresses its source; a call does not do so.
func TestLoadedIsPackedLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, first := poolEngine(t, Config{CacheDir: dir}, "good/small")
	if err := first.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, p := poolEngine(t, Config{CacheDir: dir}, "good/small")
	if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
		t.Fatalf("got %s, %v, want 1", out, err)
	}
	packed := func() bool { return p.module.code.Source().Unpacked() == nil }
	if packed() {
		t.Error("it was packed at once")
	}
	e.packAll(false)
	if !packed() {
		t.Error("it was not packed by the janitor")
	}
}

// TestCodeMemory has more code than there is room for. The code that was called least is dropped, and can be loaded again.
func TestCodeMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(room int64) (*Engine, []*Program) {
		e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: dir, CodeMemory: room})
		if err != nil {
			t.Fatal(err)
		}
		programs := make([]*Program, 10)
		for i := range programs { // modules that differ in a constant
			programs[i] = loadInternal(t, e, bytes.Replace(echoFixture(t), []byte{0x41, 9}, []byte{0x41, byte(10 + i)}, 1))
		}
		return e, programs
	}
	shut := func(e *Engine) {
		t.Helper()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if held := e.account.Held(account.Code); held != 0 {
			t.Errorf("%d bytes of code are counted, but the code is gone", held)
		}
	}
	call := func(e *Engine, p *Program) {
		t.Helper()
		if out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
			t.Errorf("got %s, %v, want 1", out, err)
		}
		for e.schedule.State() != (schedule.State{}) { // waits also for the work after a build
			runtime.Gosched()
		}
	}
	e, programs := open(0)
	call(e, programs[0])
	one := e.account.Held(account.Code)
	if one <= 0 {
		t.Fatalf("the code takes %d bytes", one)
	}
	shut(e)
	room := 5*one + one/2
	e, programs = open(room)
	for _, p := range programs {
		call(e, p)
		call(e, programs[0])
		for e.account.Held(account.Code) > room {
			runtime.Gosched()
		}
	}
	there := func(p *Program) bool { return p.State().Code == CodeLoaded }
	left := 0
	for _, p := range programs {
		if there(p) {
			left++
		}
	}
	if !there(programs[0]) || left < 4 || left > 5 {
		t.Errorf("the code of the tool that was called often is in memory: %t; in all, the code of %d tools is: want true, and 4 or 5", there(programs[0]), left)
	}
	for _, p := range programs {
		call(e, p)
	}
	shut(e)
}
