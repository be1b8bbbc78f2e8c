package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
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
	for range 2 * (runtime.GOMAXPROCS(0) + 2) { // more than there are places, including those for overruns
		e.schedule.Add(&schedule.Job{Time: time.Millisecond, Run: func() { <-released }, Cancel: func() {}})
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

// queued waits until a module is queued for compiling.
func queued(p *Program) {
	for p.State().Code != CodePending {
		runtime.Gosched()
	}
}

// TestCompileOnce loads one module ten times, and compiles it from all of them at once. There is only one build.
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

// TestCompileWaits has calls wait for code that never comes. The deadline or the caller ends the wait, but not the compilation.
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
		t.Error("Compile waits although its caller has gone")
	}
	if got := p.State().Code; got != CodePending {
		t.Errorf("got %s, want its compilation to go on, for the next call", got)
	}
	release()
	if err := p.Compile(t.Context()); err != nil {
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
	e.grace = time.Nanosecond
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	release()
	var failed *Error
	if got := <-err; !errors.As(got, &failed) || failed.Outcome != Cancelled {
		t.Errorf("got %v, want %s", got, Cancelled)
	}
}

// TestCompileSlow has one module keep the compiler busy for a second or more, with room for only one. Others are compiled meanwhile, and closing the
// engine does not wait for it.
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
			e.grace = time.Nanosecond
			slow, err := e.Load(slowModule(t), abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			given := make(chan error)
			go func() { given <- slow.Compile(context.Background()) }()
			queued(slow)
			p, err := e.Load(echoFixture(t), abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
				t.Errorf("got %s, %v, want 1", out, err)
			}
			if slow.State().Code != CodePending {
				t.Error("the slow build was over first, so the test shows nothing: make it slower")
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
			select {
			case <-e.schedule.Idle():
				t.Error("Close has waited")
			default:
			}
			if <-given == nil {
				t.Error("a module that is not compiled when the engine closes is reported as compiled")
			}
			<-e.freed
			if left, err := filepath.Glob(filepath.Join(c.CacheDir, ".staging-*")); err != nil || len(left) > 0 {
				t.Errorf("got %q, %v, want no files left from compiling", left, err)
			}
		})
	}
}

// TestFoundIsPacked compresses the source of a module whose code is in the cache, and unpacks it again after that entry was lost.
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
		if got := p.State().Code; got != CodeStored {
			t.Error("a module that was compiled before is not found")
		}
		for p.module.code.Source().Unpacked() != nil {
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

// TestDearBesideCheap queues modules that each take the compiler a second or more. A cheap module is compiled and called before more than one
// of them is done.
// Proves: Compiling is bounded
func TestDearBesideCheap(t *testing.T) {
	t.Parallel()
	e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	e.grace = time.Nanosecond
	defer func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		<-e.freed // otherwise the folder for the cache is removed while it is in use
	}()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var costly []*Program
	for n := range 5 {
		module := slowModule(t)
		module[len(module)-2] = byte(n) // result of the last function
		p := loadInternal(t, e, module)
		costly = append(costly, p)
		_, _ = p.Tool("costly", 0, limits.Limits{}).Call(gone, CallSpec{}) // it compiles the module
		queued(p)
	}
	tool := loadInternal(t, e, echoFixture(t)).Tool("echo", 0, limits.Limits{Timeout: time.Minute})
	if out, err := tool.Call(t.Context(), CallSpec{Input: []byte("1")}); err != nil || string(out) != "1" {
		t.Errorf("got %s, %v, want 1", out, err)
	}
	done := 0
	for _, p := range costly {
		if p.State().Code != CodePending {
			done++
		}
	}
	if done > 1 {
		t.Errorf("%d costly ones were compiled before a cheap one", done)
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
	const n = 2 // more would be predicted to take too much
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
