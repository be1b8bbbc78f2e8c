package sandbox

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// poolEngine returns an engine whose janitor does nothing during the test, and a program of a fixture.
func poolEngine(t *testing.T, c Config, name string) (*Engine, *Program) {
	t.Helper()
	c.IdleTime = time.Hour
	c.Imports = abi1.Sets()
	e, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	module := testkit.Fixture(t, "wat/"+name)
	p, err := e.Load(module, abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if free := e.seats.Free(); free != runtime.GOMAXPROCS(0) {
			t.Errorf("a closed engine has %d free seats", free)
		}
		if memory, mappings := e.account.Held(account.Memory), e.account.Held(account.Mappings); memory != 0 || mappings != 0 {
			t.Errorf("the account of a closed engine holds %d bytes and %d mappings", memory, mappings)
		}
	})
	return e, p
}

func (m *module) idlers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.idle)
}

// TestGrown has calls that grow the memory. The instance is kept, unless it can't be made smaller again.
func TestGrown(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "good/leaky")
	call := func(index int32) {
		t.Helper()
		if out, err := p.Tool("x", index, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
			t.Fatalf("tool %d: got %s, %v, want 1", index, out, err)
		}
	}
	call(0)
	kept := p.module.idle[0]
	for range 3 {
		for _, by := range []int32{7, 13} { // 1 and 59 pages
			call(by)
			if p.module.idlers() != 1 || p.module.idle[0] != kept {
				t.Fatalf("tool %d: the instance was not kept", by)
			}
		}
	}
	call(14) // 60 pages, all that the module declares
	if n := p.module.idlers(); n != 0 {
		t.Fatalf("%d instances are idle after the memory grew to its end", n)
	}
	call(0)
}

// TestModules loads files that differ only in their manifest, and share everything, and one that differs in its data.
func TestModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, p := poolEngine(t, Config{CacheDir: dir}, "good/leaky")
	plain := testkit.Fixture(t, "wat/good/leaky")
	called := func(p *Program) {
		t.Helper()
		if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
			t.Fatalf("got %s, %v, want 1", out, err)
		}
	}
	called(p)
	var told []*Program
	for _, manifest := range []string{`{"a": 1}`, `{"a": 2}`} {
		file, err := wasmbin.SetCustom(plain, "toolsrv.manifest", []byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, loadInternal(t, e, file))
		called(told[len(told)-1])
	}
	if told[0].module != p.module || told[1].module != p.module || p.module.idlers() != 1 {
		t.Error("files that differ in their manifest do not share code and instances")
	}
	if told[0].Digest() == told[1].Digest() || told[0].Digest() == p.Digest() {
		t.Error("they have the same digest")
	}
	data := loadInternal(t, e, bytes.Replace(plain, []byte("data"), []byte("DATA"), 1))
	called(data)
	if data.module == p.module {
		t.Error("modules with other data share instances")
	}
	if files, err := filepath.Glob(filepath.Join(dir, strings.Repeat("[0-9a-f]", 64))); err != nil || len(files) != 2 {
		t.Errorf("got compiled code %v, %v; want the code of two modules", files, err)
	}
	for _, p := range told {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	called(p)
}

// TestSame changes one byte or one global of an instance, which paranoid mode must detect.
func TestSame(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "good/leaky")
	if _, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil {
		t.Fatal(err)
	}
	i := p.module.idle[0]
	if err := i.same(); err != nil {
		t.Fatal(err)
	}
	memory := i.guest.Memory()
	for _, at := range []uint32{0, 70_001, memory.Size() - 1} {
		was, _ := memory.ReadByte(at)
		memory.WriteByte(at, was+1)
		if err := i.same(); err == nil {
			t.Errorf("byte %d differs, and nothing detects it", at)
		}
		memory.WriteByte(at, was)
	}
	for n, g := range i.globals {
		was := g.Get()
		g.Set(was + 1)
		if err := i.same(); err == nil || !strings.Contains(err.Error(), "globals") {
			t.Errorf("global %d differs: got %v", n, err)
		}
		g.Set(was)
	}
	if err := i.same(); err != nil {
		t.Error(err)
	}
}

// TestSweep closes instances that were idle for long and keeps the rest.
func TestSweep(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{CacheDir: t.TempDir()}, "good/small")
	tool := p.Tool("x", 0, limits.Limits{})
	call := func() {
		t.Helper()
		if out, err := tool.Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
			t.Fatalf("got %s, %v, want 1", out, err)
		}
	}
	call()
	long := time.Now().Add(-time.Hour)
	later := time.Now().Add(time.Hour) // in the future: a clock may stand still between two calls
	e.sweep(long, long)
	if n := p.module.idlers(); n != 1 || p.module.snapshot == nil {
		t.Fatalf("%d instances are idle, want the one that was just used", n)
	}
	e.sweep(later, long)
	if n, held := p.module.idlers(), e.account.Held(account.Memory)-p.module.snapshot.resident(); n != 0 || held != 0 {
		t.Errorf("%d instances with %d bytes are idle, want none", n, held)
	}
	call()
	e.sweep(long, later)
	if p.module.idlers() != 0 || p.module.snapshot != nil || p.State().Code != CodeStored {
		t.Error("a module that nobody calls is kept")
	}
	if s := e.State(); s.Unused != 1 || s.Crowded != 0 {
		t.Errorf("code was dropped %d times as unused, and %d times for want of room", s.Unused, s.Crowded)
	}
	call()
	if p.module.idlers() != 1 {
		t.Error("a module that is called again keeps no instance")
	}
}

// TestReclaim closes the instances that were used least recently, and drops snapshots after them.
func TestReclaim(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	e, old := poolEngine(t, Config{Memory: most}, "good/leaky")
	for range 2 {
		if _, err := old.Tool("x", 8, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	module := testkit.Fixture(t, "wat/good/small")
	recent, err := e.Load(module, abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	defer recent.Close()
	if _, err := recent.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	e.reclaim(nil, account.Memory, 0)
	if old.module.idlers() != 1 || recent.module.idlers() != 1 {
		t.Error("instances are closed without need")
	}
	room := e.account.Most(account.Memory, false)
	room -= room / 16
	e.reclaim(nil, account.Memory, room-e.account.Held(account.Memory)+1)
	if old.module.idlers() != 0 || recent.module.idlers() != 1 {
		t.Errorf("%d and %d instances are left, want 0 old ones and 1 recent one", old.module.idlers(), recent.module.idlers())
	}
	e.reclaim(nil, account.Memory, room)
	if held := e.account.Held(account.Memory); held != 0 {
		t.Errorf("%d bytes are held for modules that nobody uses", held)
	}
	if _, err := recent.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil {
		t.Error(err)
	}
}

// TestFirstIsOne makes many calls at once before there is a snapshot. Only one of them makes it.
func TestFirstIsOne(t *testing.T) {
	t.Parallel()
	_, p := poolEngine(t, Config{}, "good/stages")
	tool := p.Tool("x", 0, limits.Limits{Timeout: time.Minute})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if out, err := tool.Call(t.Context(), CallSpec{}); err != nil || string(out) != "1234" {
				t.Errorf("got %s, %v, want 1234", out, err)
			}
		})
	}
	wait.Wait()
	for _, i := range p.module.idle {
		if i.snapshot != p.module.snapshot {
			t.Error("an instance was made from another snapshot")
		}
	}
}

// TestAllocations checks how much garbage a call of a small guest leaves: only its output.
func TestAllocations(t *testing.T) {
	_, p := poolEngine(t, Config{}, "good/small")
	tool := p.Tool("x", 0, limits.Limits{})
	input := []byte(`{"a":1}`)
	n := testing.AllocsPerRun(100, func() {
		if _, err := tool.Call(t.Context(), CallSpec{Input: input}); err != nil {
			t.Error(err)
		}
	})
	if !testkit.Race(t) && n > 1 && !p.module.engine.paranoid {
		t.Errorf("a call allocates %v times, want once", n)
	}
}

// phases returns an instance for benchmarks of the phases of a call.
func phases(b *testing.B) (*module, *instance) {
	b.Helper()
	e, err := New(b.Context(), Config{Imports: abi1.Sets()})
	if err != nil {
		b.Fatal(err)
	}
	module := testkit.Fixture(b, "wat/good/small")
	p, err := e.Load(module, abi1.Modules()...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		p.Close()
		if err := e.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	if _, err := p.Tool("x", 0, limits.Limits{}).Call(b.Context(), CallSpec{Input: []byte("1")}); err != nil {
		b.Fatal(err)
	}
	return p.module, p.module.idle[0]
}

func BenchmarkBareCall(b *testing.B) {
	m, i := phases(b)
	limits := inForce(limits.Limits{})
	r := run{ctx: b.Context(), deadline: time.Now().Add(time.Hour), limits: &limits, CallSpec: CallSpec{Input: []byte("1")}}
	b.ReportAllocs()
	for b.Loop() {
		i.call.begin(&r)
		if err := i.invoke(i.entry, i.params[:]); err != nil {
			b.Fatal(err)
		}
		i.call.output = i.call.output[:0]
	}
	if err := m.restore(i); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkResetOfThree(b *testing.B) {
	m, i := phases(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, at := range []uint32{1 << 20, 1<<20 - 64, 1<<20 + 1024} {
			i.guest.Memory().WriteByte(at, 1)
		}
		if err := m.restore(i); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInstantiate(b *testing.B) {
	m, _ := phases(b)
	r := run{ctx: b.Context(), deadline: time.Now().Add(time.Hour), limits: new(limits.Limits)}
	b.ReportAllocs()
	for b.Loop() {
		i, err := m.instantiate(b.Context(), &r, m.code.Native(), m.snapshot.hold(), m.snapshot.size()+m.overhead())
		if err != nil {
			b.Fatal(err)
		}
		if err := i.close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefill(b *testing.B) {
	_, i := phases(b)
	limits := inForce(limits.Limits{})
	i.call.begin(&run{ctx: b.Context(), deadline: time.Now().Add(time.Hour), limits: &limits})
	i.call.next()
	stack := []uint64{0}
	b.ReportAllocs()
	for b.Loop() {
		refill(&i.call, nil, stack)
	}
	i.call.wipe()
}

// TestCloseWaitsForInstances closes the engine while a call runs, again and again. Once the engine is closed, the instance is, too.
func TestCloseWaitsForInstances(t *testing.T) {
	t.Parallel()
	for range 50 {
		started, closing := make(chan struct{}), make(chan struct{})
		e, err := New(t.Context(), Config{Imports: abi1.Sets(), Logger: slog.New(hook{slog.DiscardHandler, func() {
			close(started)
			<-closing
		}})})
		if err != nil {
			t.Fatal(err)
		}
		p := loadInternal(t, e, logs)
		full(t, p)
		tool := p.Tool("x", 0, limits.Limits{Timeout: time.Minute})
		called, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := tool.Call(t.Context(), CallSpec{})
			called <- err
		}()
		<-started
		go func() { closed <- e.Close(context.Background()) }()
		<-e.closing
		e.attached() // returns once Close has told all modules, since it waits for the lock
		close(closing)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if memory, mappings := e.account.Held(account.Memory), e.account.Held(account.Mappings); memory != 0 || mappings != 0 {
			t.Errorf("the account of a closed engine holds %d bytes and %d mappings", memory, mappings)
		}
		if err := <-called; err != nil {
			t.Error(err)
		}
	}
}
