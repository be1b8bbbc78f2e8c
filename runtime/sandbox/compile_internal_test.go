package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/compile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/schedule"
)

// held returns an engine that begins no compilation until release is called.
func held(t *testing.T) (e *Engine, release func()) {
	t.Helper()
	e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(func() {
		release()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for range 2 * (runtime.GOMAXPROCS(0) + 2) { // more than there are places, with those that overrun
		e.compiler.schedule.Add(&schedule.Job{Time: time.Millisecond, Run: func() { <-released }, Cancel: func() {}})
	}
	return e, release
}

func loadInternal(t *testing.T, e *Engine, module []byte) *Program {
	t.Helper()
	p, err := e.Load(module, abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func echoFixture(t *testing.T) []byte {
	t.Helper()
	return testkit.Fixture(t, "wat/good/echo")
}

// queued waits until a module has a build.
func queued(p *Program) *build {
	for {
		p.module.code.mu.Lock()
		b := p.module.code.build
		p.module.code.mu.Unlock()
		if b != nil && b.job.Load() != nil {
			return b
		}
		runtime.Gosched()
	}
}

// TestCompileOnce has one module loaded ten times and compiled by all at once: there is one build.
func TestCompileOnce(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	errs := make(chan error)
	var last *Program
	for i := range 10 {
		p := loadInternal(t, e, echoFixture(t))
		last = p
		go func() {
			if i%2 == 0 {
				errs <- p.Compile(context.Background())
				return
			}
			_, err := p.Tool("echo", 0, limits.Limits{Timeout: time.Minute}).Call(context.Background(), CallSpec{Input: []byte("1")})
			errs <- err
		}()
	}
	queued(last)
	if n := len(e.modules); n != 1 {
		t.Errorf("got %d modules, want 1", n)
	}
	release()
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestCompileWaits has calls wait in vain for code: the deadline or the caller ends the waiting, and only that.
func TestCompileWaits(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	p := loadInternal(t, e, echoFixture(t))
	call := func(ctx context.Context, timeout time.Duration, want Outcome) {
		t.Helper()
		_, err := p.Tool("echo", 0, limits.Limits{Timeout: timeout}).Call(ctx, CallSpec{Input: []byte("1")})
		var failed *Error
		if !errors.As(err, &failed) || failed.Outcome != want || !strings.Contains(failed.Message, "compiled") {
			t.Errorf("got %v, want %s while it is compiled", err, want)
		}
	}
	call(t.Context(), time.Millisecond, ToolTimeout)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	call(gone, time.Minute, Cancelled)
	if err := p.Compile(gone); err == nil {
		t.Error("Compile waits for nobody")
	}
	if b := p.module.code.build; b == nil || !b.needed.Load() {
		t.Errorf("got %+v, want a build that is needed", b)
	}
	release()
	if err := p.Compile(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCompileUnwanted closes a program before its turn: it is not compiled, and comes back when it is loaded again.
func TestCompileUnwanted(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	p := loadInternal(t, e, echoFixture(t))
	b := p.module.code.begin(false)
	p.Close()
	release()
	<-b.done
	if !errors.Is(b.err, errUnwanted) {
		t.Errorf("got %v, want %v", b.err, errUnwanted)
	}
	if err := loadInternal(t, e, echoFixture(t)).Compile(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCompileClosing closes the engine while a program waits to be compiled.
func TestCompileClosing(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	p := loadInternal(t, e, echoFixture(t))
	err := make(chan error)
	go func() { err <- p.Compile(context.Background()) }()
	queued(p)
	e.compiler.grace = time.Nanosecond
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	release()
	var failed *Error
	if got := <-err; !errors.As(got, &failed) || failed.Outcome != Cancelled {
		t.Errorf("got %v, want %s", got, Cancelled)
	}
}

// TestCompileSlow has one module keep the compiler busy for a second or more. With room for one, others are compiled
// meanwhile, and closing the engine does not wait for it.
func TestCompileSlow(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{true, false} {
		name, c := "without cache", Config{Logger: slog.New(slog.DiscardHandler)}
		if cached {
			name, c.CacheDir = "with cache", t.TempDir()
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Imports = abi1.Sets()
			e, err := New(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			e.compiler.grace = time.Nanosecond
			slow, err := e.Load(slowModule(t), abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			b := slow.module.code.begin(false)
			p, err := e.Load(echoFixture(t), abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
				t.Errorf("got %s, %v, want 1", out, err)
			}
			if b.over() {
				t.Error("the slow build was over first, so this shows nothing: make it slower")
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if b.over() {
				t.Error("Close has waited")
			}
			<-b.done
			<-e.compiler.schedule.Idle()
			if c.CacheDir == "" {
				return
			}
			for { // what runs last removes the directory
				left, err := filepath.Glob(filepath.Join(c.CacheDir, ".staging-*"))
				if err != nil {
					t.Fatal(err)
				}
				if len(left) == 0 {
					return
				}
				runtime.Gosched()
			}
		})
	}
}

// entry was lost.
func TestFoundIsPacked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 2 {
		e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: dir, IdleTime: 4 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(context.Background())
		p := loadInternal(t, e, echoFixture(t))
		if round == 0 {
			if err := p.Compile(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !p.module.code.stored {
			t.Error("what was compiled before is not found")
		}
		for !p.module.settled() {
			runtime.Gosched()
		}
		entries, err := filepath.Glob(filepath.Join(dir, "[0-9a-f]*"))
		if err != nil || len(entries) != 1 {
			t.Fatalf("got the entries %q, %v, want one", entries, err)
		}
		if err := os.Remove(entries[0]); err != nil {
			t.Fatal(err)
		}
		if out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
			t.Errorf("got %s, %v, want 1", out, err)
		}
	}
}

// TestNoMemoryPasses has the system refuse memory for code, of which wazero panics: that is not the module's fault.
func TestNoMemoryPasses(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	release()
	p := loadInternal(t, e, echoFixture(t))
	b := &build{code: p.module.code, done: make(chan struct{})}
	p.module.code.build = b
	b.finish(nil, compile.Panicked(syscall.ENOMEM))
	var failed *Error
	if !errors.As(b.err, &failed) || failed.Outcome != Overloaded {
		t.Errorf("got %v, want %s", b.err, Overloaded)
	}
	if !passing(b.err) || p.module.code.build != nil {
		t.Errorf("%v is remembered, or blamed on the module", b.err)
	}
	if err := p.Compile(t.Context()); err != nil {
		t.Error(err)
	}
	if err := compile.Panicked("index out of range"); passing(err) || !strings.Contains(err.Error(), "the compiler panicked: index out of range") {
		t.Errorf("got %v, want a fault of the compiler with this module", err)
	}
}

// TestDearBesideCheap queues modules that each take the compiler a second or more. One that is cheap is compiled and
// called while at most one of them is done.
// Proves: Compiling is bounded
func TestDearBesideCheap(t *testing.T) {
	t.Parallel()
	e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	e.compiler.grace = time.Nanosecond
	defer func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		<-e.compiler.schedule.Idle()
	}()
	var dear []*build
	for n := range 5 {
		module := slowModule(t)
		module[len(module)-2] = byte(n) // what the last function returns
		dear = append(dear, loadInternal(t, e, module).module.code.begin(true))
	}
	tool := loadInternal(t, e, echoFixture(t)).Tool("echo", 0, limits.Limits{})
	if out, err := tool.Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
		t.Errorf("got %s, %v, want 1", out, err)
	}
	done := 0
	for _, b := range dear {
		if b.over() {
			done++
		}
	}
	if done > 1 {
		t.Errorf("%d dear ones were compiled before a cheap one", done)
	}
}

// slowModule returns a tool with functions of many branches, whose compilation takes a second or more.
func slowModule(t *testing.T) []byte {
	t.Helper()
	// A block that the next branch leaves: block, local.get 0, br_if 0, end.
	body := []byte{0}
	for range 5000 {
		body = append(body, 0x02, 0x40, 0x20, 0x00, 0x0d, 0x00, 0x0b)
	}
	body = append(body, 0x41, 0x00, 0x0b)
	section := func(id byte, content ...byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	const n = 2 // more are predicted to take too much
	functions, code := []byte{n}, []byte{n}
	for range n {
		functions = append(functions, 0)
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 1, 0x60, 1, 0x7f, 1, 0x7f),
		section(3, functions...),
		section(5, 1, 0, 1),
		section(7, append([]byte("\x02\x06memory\x02\x00\x0ctoolsrv_call"), 0, 0)...),
		section(10, code...))
}

// TestSource packs modules, and bytes that packing does not make smaller.
func TestSource(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 1000)
	for n := range noise {
		noise[n] = byte(rand.Uint32())
	}
	for _, c := range []struct {
		bytes  []byte
		packed bool
	}{{echoFixture(t), true}, {make([]byte, 1<<20), true}, {noise, false}, {nil, false}} {
		s := &source{account: account.New(nil), bytes: c.bytes, size: len(c.bytes)}
		for range 2 {
			s.pack()
			if packed := s.packed != nil; packed != c.packed || packed && s.length() >= int64(s.size) || s.size != len(c.bytes) {
				t.Errorf("%d bytes: packed %v into %d for %d", len(c.bytes), packed, s.length(), s.size)
			}
			if got, err := s.plain(); err != nil || !bytes.Equal(got, c.bytes) {
				t.Errorf("%d bytes do not come back: %d, %v", len(c.bytes), len(got), err)
			}
		}
	}
	short := &source{account: account.New(nil), bytes: echoFixture(t), size: len(echoFixture(t))}
	short.pack()
	short.packed[0] = short.packed[0][:len(short.packed[0])/2]
	if _, err := short.plain(); err == nil {
		t.Error("half of a packed module: no error")
	}
}

// TestCompileSameCode loads code for two modules at a time again and again, as for a module that is loaded anew while
// its code is still being loaded. Whoever has it can call it.
func TestCompileSameCode(t *testing.T) {
	t.Parallel()
	e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	const types, own = 2000, 4 // many more than logs has, so that wazero has something to do
	module := append(bytes.Clone(logs[:8]), 1)
	module = binary.AppendUvarint(module, uint64(len(binary.AppendUvarint(nil, types+own))+0x13+3*types))
	module = append(binary.AppendUvarint(module, types+own), logs[11:11+0x13]...)
	module = append(append(module, strings.Repeat("\x60\x00\x00", types)...), logs[11+0x13:]...)
	p := loadInternal(t, e, module)
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 2 {
		go func() {
			for range 50 {
				n, err := e.foundry.load(p.module.sum)
				if err == nil {
					var guest api.Module
					if guest, err = n.runtime.InstantiateModule(context.Background(), n.code, e.anonymous); err == nil {
						guest.ExportedFunction(exportCall)
						err = guest.Close(context.Background())
					}
					err = errors.Join(err, n.code.Close(context.Background()))
				}
				errs <- err
			}
		}()
	}
	for range 100 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	scratch, err := e.foundry.cache.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(scratch, e.foundry.files)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left over", left, err)
	}
}
