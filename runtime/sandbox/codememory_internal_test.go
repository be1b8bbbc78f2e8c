package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestCodeInTurn calls more tools in turn than there is room for: most of those that could have their code in memory do.
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
		if out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
			t.Fatalf("got %s, %v, want 1", out, err)
		}
	}
	e, programs := open(0)
	if held := e.account.Held(account.Code); held != 0 {
		t.Errorf("%d bytes of code are in memory that nobody called, and that the cache has", held)
	}
	call(programs[0])
	room := fit * e.account.Held(account.Code)
	e, programs = open(room)
	found := 0
	for round := range 12 {
		for _, p := range programs {
			p.module.code.mu.Lock()
			loaded := p.module.code.build != nil
			p.module.code.mu.Unlock()
			if loaded && round >= 10 {
				found++
			}
			call(p)
			for e.account.Held(account.Code) > room {
				runtime.Gosched()
			}
		}
	}
	if found < n {
		t.Errorf("%d of %d calls found their code, want half at least", found, 2*n)
	}
}

// settled reports whether a module was packed that is compiled. One whose code was loaded need not be.
func (m *module) settled() bool {
	m.code.mu.Lock()
	defer m.code.mu.Unlock()
	b := m.code.build
	if b != nil && b.over() && b.job.Load().Load {
		return true
	}
	return m.code.source.unpacked() == nil
}

// TestLoadedIsPackedLater has code come from the cache: its source is packed by the janitor, and not while a call runs.
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
	packed := func() bool { return p.module.code.source.unpacked() == nil }
	if packed() {
		t.Error("it was packed at once")
	}
	e.packAll(false)
	if !packed() {
		t.Error("it was not packed by the janitor")
	}
}

// TestCodeMemory has more code than there is room for: what was called least is dropped, and comes back.
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
			t.Errorf("code of %d bytes is counted that is gone", held)
		}
	}
	call := func(p *Program) {
		t.Helper()
		if out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
			t.Errorf("got %s, %v, want 1", out, err)
		}
		for !p.module.settled() { // what follows a build, too
			runtime.Gosched()
		}
	}
	e, programs := open(0)
	call(programs[0])
	one := e.account.Held(account.Code)
	if one <= 0 {
		t.Fatalf("the code takes %d bytes", one)
	}
	shut(e)
	room := 5*one + one/2
	e, programs = open(room)
	for _, p := range programs {
		call(p)
		call(programs[0])
		for e.account.Held(account.Code) > room {
			runtime.Gosched()
		}
	}
	there := func(p *Program) bool {
		p.module.code.mu.Lock()
		defer p.module.code.mu.Unlock()
		return p.module.code.build != nil
	}
	left := 0
	for _, p := range programs {
		if there(p) {
			left++
		}
	}
	if !there(programs[0]) || left < 4 || left > 5 {
		t.Errorf("got %t for the one called often, and %d of all, want it and 4 or 5", there(programs[0]), left)
	}
	for _, p := range programs {
		call(p)
	}
	shut(e)
}

// TestLostCode has code vanish from the cache after a start that found it there, and so did not weigh the module. It is weighed before
// it is compiled, as any other.
// Proves: Compiling is bounded
func TestLostCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, p := poolEngine(t, Config{CacheDir: dir}, "hostile/hoard")
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := p.module.code.cost
	_, p = poolEngine(t, Config{CacheDir: dir}, "hostile/hoard")
	if p.module.code.cost == want || !p.module.code.stored {
		t.Fatal("the module was weighed, although there is code")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if len(entry.Name()) == 64 {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Fatalf("got %s, %v, want 1", out, err)
	}
	if got := p.module.code.cost; got != want {
		t.Errorf("the module was compiled at a cost of %v, want %v", got, want)
	}
}
