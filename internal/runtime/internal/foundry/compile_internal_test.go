package foundry

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// TestMain fails if goroutines outlive the tests: every foundry must have been closed by then.
func TestMain(m *testing.M) { testkit.Main(m, "wazero", "foundry.", "internal/runtime/compile.") }

// meter provides the imports of rewritten modules.
func meter(ctx context.Context, r wazero.Runtime) error {
	i32 := []api.ValueType{api.ValueTypeI32}
	none := api.GoModuleFunc(func(context.Context, api.Module, []uint64) {})
	_, err := r.NewHostModuleBuilder(instrument.MeterModule).
		NewFunctionBuilder().WithGoModuleFunction(none, i32, i32).Export(instrument.RefillFunc).
		NewFunctionBuilder().WithGoModuleFunction(none, i32, i32).Export(instrument.OverflowFunc).Instantiate(ctx)
	return err
}

// held returns a foundry that begins no build until release is called.
func held(t *testing.T, dir string) (f *Foundry, release func()) {
	t.Helper()
	a := account.New(map[account.Kind]int64{account.Memory: 1 << 30, account.Code: 1 << 30, account.Mappings: 1 << 20, account.Sources: 1 << 30})
	f, err := New(t.Context(), Config{
		CacheDir: dir, Logger: slog.New(slog.DiscardHandler), Account: a, Schedule: schedule.New(runtime.GOMAXPROCS(0), 1<<29), Furnish: meter,
		Reclaim: func(<-chan struct{}, account.Kind, int64) {}, Shed: func() {}, Stop: t.Context(), Closing: make(chan struct{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(func() {
		release()
		if !f.Close(testkit.Patience) {
			t.Error("a build is still running")
		}
		if err := f.Free(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for range 2 * (runtime.GOMAXPROCS(0) + 2) { // more than there are places, including those for overruns
		f.schedule.Add(&schedule.Job{Time: time.Millisecond, Run: func() { <-released }, Cancel: func() {}})
	}
	return f, release
}

// open returns a foundry with a cache.
func open(t *testing.T) *Foundry {
	t.Helper()
	f, release := held(t, t.TempDir())
	release()
	return f
}

// codeOf returns the code of a module.
func codeOf(t *testing.T, f *Foundry, module []byte) *Code {
	t.Helper()
	c, err := f.NewCode(sha256.Sum256(module), "a digest", module, NewSource(f.account, module))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Strip()() })
	return c
}

func echoFixture(t *testing.T) []byte {
	t.Helper()
	return testkit.Fixture(t, "wat/good/echo")
}

// TestNeeded lets a call join a build for the cache, and give up. The code is then made for the next call.
func TestNeeded(t *testing.T) {
	t.Parallel()
	f, release := held(t, t.TempDir())
	c := codeOf(t, f, echoFixture(t))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Prepare(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare waits although its caller has gone: %v", err)
	}
	b := c.build
	if b == nil || b.needed.Load() {
		t.Fatalf("got %+v, want a build that no call needs", b)
	}
	if n, err := c.Compile(gone); n != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want the cause of the caller's context", n, err)
	}
	if c.build != b || !b.needed.Load() {
		t.Errorf("got %+v, want the same build, and that it is needed", c.build)
	}
	release()
	if <-b.done; b.err != nil || b.native.Code == nil || c.Native() != b.native {
		t.Errorf("got %+v, %v, want code in memory", b.native, b.err)
	}
}

// TestUnwanted strips code before its turn. It is not made then, but later, when it is requested again.
func TestUnwanted(t *testing.T) {
	t.Parallel()
	f, release := held(t, t.TempDir())
	c := codeOf(t, f, echoFixture(t))
	b := c.begin(false)
	c.Strip()()
	release()
	if <-b.done; !errors.Is(b.err, errUnwanted) {
		t.Errorf("got %v, want %v", b.err, errUnwanted)
	}
	if err := c.Prepare(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestClosed closes the foundry before a build's turn.
func TestClosed(t *testing.T) {
	t.Parallel()
	f, release := held(t, t.TempDir())
	c := codeOf(t, f, echoFixture(t))
	b := c.begin(true)
	if f.Close(time.Nanosecond) {
		t.Error("no build is reported as running")
	}
	if n, err := c.Compile(t.Context()); n != nil || !errors.Is(err, ErrClosed) || !errors.Is(b.err, ErrClosed) {
		t.Errorf("got %v, %v and %v, want %v", n, err, b.err, ErrClosed)
	}
	release()
}

// TestNoMemoryPasses has the system refuse memory for code, which makes wazero panic. That is not the module's fault.
func TestNoMemoryPasses(t *testing.T) {
	t.Parallel()
	f := open(t)
	c := codeOf(t, f, echoFixture(t))
	b := &build{code: c, done: make(chan struct{})}
	c.build = b
	b.finish(nil, compile.Panicked(syscall.ENOMEM))
	if !errors.Is(b.err, compile.ErrNoMemory) || !passing(b.err) || c.build != nil {
		t.Errorf("%v is remembered, or blamed on the module", b.err)
	}
	if err := c.Prepare(t.Context()); err != nil {
		t.Error(err)
	}
	if err := compile.Panicked("index out of range"); passing(err) || !strings.Contains(err.Error(), "the compiler panicked: index out of range") {
		t.Errorf("got %v, want a fault of the compiler with this module", err)
	}
}

// TestLostCode removes code from the cache after a start has found it there and therefore not weighed the module. The module is weighed before it is
// compiled, like any other.
// Proves: Compiling is bounded
func TestLostCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module := testkit.Fixture(t, "wat/hostile/hoard")
	f, release := held(t, dir)
	release()
	c := codeOf(t, f, module)
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := c.cost
	f, release = held(t, dir)
	release()
	c = codeOf(t, f, module)
	if c.cost == want || !c.stored {
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
	if n, err := c.Compile(t.Context()); err != nil || n.Code == nil {
		t.Fatalf("got %v, %v, want code", n, err)
	}
	if c.cost != want {
		t.Errorf("the module was compiled at a cost of %v, want %v", c.cost, want)
	}
}

// TestSource compresses modules, and also bytes that compression does not make smaller.
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
		s := NewSource(account.New(nil), c.bytes)
		for range 2 {
			s.Pack()
			if packed := s.packed != nil; packed != c.packed || packed && s.Length() >= int64(s.size) || s.size != len(c.bytes) {
				t.Errorf("%d bytes: packed %v into %d for %d", len(c.bytes), packed, s.Length(), s.size)
			}
			if got, err := s.Plain(); err != nil || !bytes.Equal(got, c.bytes) {
				t.Errorf("%d bytes do not come back: %d, %v", len(c.bytes), len(got), err)
			}
		}
	}
	short := NewSource(account.New(nil), echoFixture(t))
	short.Pack()
	short.packed[0] = short.packed[0][:len(short.packed[0])/2]
	if _, err := short.Plain(); err == nil {
		t.Error("half of a packed module: no error")
	}
}

// TestSameCode loads the same code twice at once, many times over, as when a module is loaded again while its code is still being loaded. Both
// results can be called.
func TestSameCode(t *testing.T) {
	t.Parallel()
	f := open(t)
	const types = 2000 // many more than usual, so that wazero has something to do
	all := [][]byte{wasmtest.Bytes(0x60, 1, 0x7f, 1, 0x7f)}
	for range types {
		all = append(all, wasmtest.Bytes(0x60, 0, 0))
	}
	module := wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec(all...)),
		wasmtest.Section(3, wasmtest.Bytes(1, 0)),
		wasmtest.Section(5, wasmtest.Bytes(1, 0, 1)),
		wasmtest.Section(7, wasmtest.Vec(slices.Concat(wasmtest.Str("memory"), wasmtest.Bytes(2, 0)), slices.Concat(wasmtest.Str("f"), wasmtest.Bytes(0, 0)))),
		wasmtest.Section(10, wasmtest.Bytes(1, 4, 0, 0x20, 0, 0x0b)),
	)
	c := codeOf(t, f, module)
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 2 {
		go func() {
			for range 50 {
				n, err := f.furnace.load(c.sum)
				if err == nil {
					var guest api.Module
					if guest, err = n.Runtime.InstantiateModule(context.Background(), n.Code, wazero.NewModuleConfig().WithName("")); err == nil {
						if guest.ExportedFunction("f") == nil {
							err = errors.New("a function is missing")
						}
						err = errors.Join(err, guest.Close(context.Background()))
					}
					err = errors.Join(err, n.Code.Close(context.Background()))
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
	scratch, err := f.furnace.cache.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(scratch, f.furnace.files)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left over", left, err)
	}
}
