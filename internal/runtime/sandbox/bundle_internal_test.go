package sandbox

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

// scripted returns a fixture's engine with a bundle.
func scripted(t testing.TB, fixture string, bundle ...byte) []byte {
	t.Helper()
	m, err := wasmbin.Parse(testkit.Fixture(t, "wat/good/"+fixture))
	if err != nil {
		t.Fatal(err)
	}
	address, ok := m.Constant(exportBundle)
	if !ok {
		t.Fatalf("%s is not an engine", fixture)
	}
	module, err := m.AppendData(address, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// peek returns the 16 bytes at an address of a tool's memory, as a call sees them.
func peek(t testing.TB, p *Program, address int32) []byte {
	t.Helper()
	out, err := p.Tool("x", address/16, limits.Limits{Timeout: time.Minute}).Call(t.Context(), CallSpec{})
	if err != nil {
		t.Fatal(err)
	}
	// The fixture writes each digit as its value, not as a character.
	for n, b := range out {
		if b < 16 {
			out[n] = "0123456789abcdef"[b]
		}
	}
	read, err := hex.DecodeString(strings.Trim(string(out), `"`))
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return read
}

// TestEngineIsShared has tools of one engine. The engine's code is compiled and counted once, and it is initialised once. Everything else is
// each tool's own.
// Proves: A tool touches no memory but its own
func TestEngineIsShared(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		for _, round := range []string{"first", "again"} { // from the cache
			t.Run(name+"/"+round, func(t *testing.T) {
				e, bare := poolEngine(t, Config{CacheDir: dir, Paranoid: true}, "good/engine")
				if err := bare.Compile(t.Context()); err != nil {
					t.Fatal(err)
				}
				var programs []*Program
				for k := range byte(5) {
					programs = append(programs, loadInternal(t, e, scripted(t, "engine", 'a'+k, k, k/2, 0)))
				}
				draws := map[string]bool{}
				var code, memory int64
				for round := range 3 {
					for k, p := range programs {
						if got, want := peek(t, p, 112), []byte{'a' + byte(k), byte(k), byte(k / 2), 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}; string(got) != string(want) {
							t.Errorf("tool %d, round %d: got % x, want % x", k, round, got, want)
						}
						random := peek(t, p, 128)
						draws[string(random[:8])+" initialize"] = true
						draws[string(random[8:])+" warm"] = true
						for n := range int32(5) {
							want := byte(0)
							if n < int32(k) {
								want = 'a' + byte(k)
							}
							if got := peek(t, p, 1<<20+n*4096+4080)[15]; got != want {
								t.Errorf("tool %d: page %d ends with %#x, want %#x", k, n, got, want)
							}
						}
						if round == 0 && k == 0 {
							code, memory = e.account.Held(account.Code), e.account.Held(account.Memory)
						}
					}
				}
				if len(draws) != 1+len(programs) {
					t.Errorf("one engine and %d tools have drawn %d numbers", len(programs), len(draws))
				}
				if held := e.account.Held(account.Code); held != code || held == 0 {
					t.Errorf("the code of one tool takes %d bytes, that of %d tools %d", code, len(programs), held)
				}
				for _, p := range append(programs, bare) {
					if p.module.code != bare.module.code {
						t.Error("a tool has code of its own")
					}
				}
				if len(e.codes) != 1 || len(e.modules) != 1+len(programs) {
					t.Errorf("got %d codes of %d modules, want 1 of %d", len(e.codes), len(e.modules), 1+len(programs))
				}
				base := bare.module.code.base.resident()
				if base < 1<<20 || memory < base {
					t.Errorf("the engine takes %d bytes of %d", base, memory)
				}
				for k, p := range programs {
					s := p.module.snapshot
					if s.base != bare.module.code.base {
						t.Errorf("tool %d has a base of its own", k)
					}
					if portable := s.resident() > base; !portable && s.resident() > 40<<10 {
						t.Errorf("tool %d takes %d bytes besides its engine's", k, s.resident())
					}
				}
				if dir != "" {
					if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 { // including the directory for modules being compiled
						t.Errorf("got %d entries in the cache, %v", len(entries), err)
					}
				}
			})
		}
	}
}

// TestColdDirectory loads and calls a hundred tools at once. Their engine was never compiled before. There is one compilation, and one start of the
// engine.
func TestColdDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := New(t.Context(), Config{Imports: abi1.Sets(), CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	draws := make([]string, 100)
	var wait sync.WaitGroup
	for k := range draws {
		wait.Go(func() {
			p, err := e.Load(scripted(t, "engine", 'a', byte(k), 0, 0), abi1.Modules()...)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { p.Close() })
			if got := peek(t, p, 112); got[1] != byte(k) {
				t.Errorf("tool %d: got % x", k, got)
			}
			draws[k] = string(peek(t, p, 128)[:8])
		})
	}
	wait.Wait()
	for k := range draws {
		if draws[k] != draws[0] {
			t.Errorf("tool %d began with a different start of the engine", k)
		}
	}
	if len(e.codes) != 1 || len(e.modules) != len(draws) {
		t.Errorf("got %d codes of %d modules", len(e.codes), len(e.modules))
	}
	entries := 0
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if len(f.Name()) == 64 {
			entries++
		}
	}
	if err != nil || entries != 1 {
		t.Errorf("the cache has %d entries, %v, want 1", entries, err)
	}
}

// TestAlikeIsNotShared has modules that differ from a tool's engine in one byte of their data, or in the place of the bundle. They share
// nothing with it.
// Proves: A tool touches no memory but its own
func TestAlikeIsNotShared(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{}, "good/engine")
	tool := scripted(t, "engine", 'a', 0, 0, 0)
	change := func(old, new string) []byte {
		if strings.Count(string(tool), old) != 1 {
			t.Fatalf("%q is not in the module once", old)
		}
		return []byte(strings.Replace(string(tool), old, new, 1))
	}
	programs := map[string]*Program{
		"the tool":            loadInternal(t, e, tool),
		"data of the engine":  loadInternal(t, e, change("0123456789abcdef", "1123456789abcdef")),
		"an address aside":    loadInternal(t, e, change("\x00\x41\x80\x80\x04\x0b\x04a", "\x00\x41\x81\x80\x04\x0b\x04a")), // of the segment
		"the end of the data": loadInternal(t, e, change("\x00\x41\x80\x80\x04\x0b\x04a", "\x00\x41\x84\x80\x04\x0b\x04a")),
	}
	draws, codes := map[string]bool{}, map[*code]bool{}
	for name, p := range programs {
		draws[string(peek(t, p, 128)[:8])] = true
		codes[p.module.code] = true
		want := byte('0')
		if name == "data of the engine" {
			want++
		}
		if got := peek(t, p, 0)[0]; got != want {
			t.Errorf("%s: the data begins with %c, want %c", name, got, want)
		}
	}
	if len(draws) != 4 || len(codes) != 4 {
		t.Errorf("4 engines have drawn %d numbers, and have %d codes", len(draws), len(codes))
	}
	if n := len(e.modules); n != 5 {
		t.Errorf("got %d modules, want 5", n)
	}
}

// TestSameAsPlain starts tools with random bundles from their engine's snapshot, and from nothing. Their memories are the same.
// Proves: A tool touches no memory but its own
func TestSameAsPlain(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{}, "good/engine")
	other, plain := poolEngine(t, Config{}, "good/engine")
	if err := plain.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.module.code.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	plain.module.code.Native().Rewritten.Fresh = "a test"
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		module := scripted(t, "engine", byte(r.Int()), byte(r.IntN(250)), byte(r.IntN(10)), 0, byte(r.Int()))
		p, q := loadInternal(t, e, module), loadInternal(t, other, module)
		if q.module.code != plain.module.code {
			t.Fatal("the plain one has other code")
		}
		for _, address := range append([]int32{0, 65536, 1<<20 + 4080}, r.Int32N(40<<16), 1<<20+4096*r.Int32N(250)+4080) {
			if got, want := peek(t, p, address), peek(t, q, address); string(got) != string(want) {
				t.Errorf("at %d: got % x, want % x", address, got, want)
			}
		}
		if q.module.snapshot != nil || q.module.code.base != nil {
			t.Fatal("the plain one has a snapshot")
		}
	}
}

// TestBundleBreaks has tools of an engine break while they start, each in a different way. Other tools of the engine are not affected, and what they
// share is unchanged.
// Proves: A tool touches no memory but its own
func TestBundleBreaks(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("first=", first), func(t *testing.T) {
			t.Parallel()
			e, _ := poolEngine(t, Config{Paranoid: true}, "good/engine")
			good := loadInternal(t, e, scripted(t, "engine", 'g', 3, 1, 0))
			check := func() {
				t.Helper()
				if got := peek(t, good, 112); got[0] != 'g' || got[8] != 1 || got[12] != 1 {
					t.Errorf("got % x of a good tool", got)
				}
			}
			if !first {
				check()
			}
			fails := func(l limits.Limits, want Outcome, bundle ...byte) {
				t.Helper()
				p := loadInternal(t, e, scripted(t, "engine", bundle...))
				for range 2 {
					out, err := p.Tool("x", 7, l).Call(t.Context(), CallSpec{})
					var failed *Error
					if !errors.As(err, &failed) || failed.Outcome != want {
						t.Errorf("%q: got %q, %v, want %s", bundle, out, err, want)
					}
				}
			}
			// A clock may stand still for as long as such a tool takes.
			late := func(n byte) error {
				_, err := loadInternal(t, e, scripted(t, "engine", 'a', 0, 0, 0, n)).Tool("x", 7, limits.Limits{Timeout: time.Nanosecond}).Call(t.Context(), CallSpec{})
				return err
			}
			for n := byte(0); late(n) == nil; n++ {
				if n == 100 || runtime.GOOS != "windows" {
					t.Fatal("a tool whose time is up answers")
				}
			}
			fails(limits.Limits{Memory: 39 * pageSize}, ToolMemory, 'b', 0, 0, 0)
			fails(limits.Limits{}, ToolTrapped, 'c', 9, 9, 1)
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := loadInternal(t, e, scripted(t, "engine", 'd', 0, 0, 0)).Tool("x", 7, limits.Limits{}).Call(gone, CallSpec{}); err == nil {
				t.Error("a caller that has gone is answered")
			}
			// An instance that was refused memory serves only one call; another tool of the file may get the memory.
			tight := loadInternal(t, e, scripted(t, "engine", 'e', 0, 2, 0))
			for _, c := range []struct{ pages, snapshots int64 }{{40, 0}, {41, 0}, {42, 1}} {
				if out, err := tight.Tool("x", 7, limits.Limits{Memory: c.pages * pageSize}).Call(t.Context(), CallSpec{}); err != nil || len(out) != 34 {
					t.Errorf("with %d pages: got %q, %v", c.pages, out, err)
				}
				if has := tight.module.snapshot != nil; has != (c.snapshots == 1) {
					t.Errorf("with %d pages: a snapshot: %t", c.pages, has)
				}
			}
			check()
		})
	}
}

// TestBundleOutside has a bundle that does not fit into the memory. The engine that declares such an address is at fault.
func TestBundleOutside(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{}, "good/engine")
	module := string(scripted(t, "engine", 'a', 0, 0, 0))
	const at, far = "\x41\x80\x80\x04\x0b", "\x41\xff\xff\x7f\x0b" // -1
	if strings.Count(module, at) != 2 {
		t.Fatal("the module doesn't have the address twice")
	}
	p := loadInternal(t, e, []byte(strings.ReplaceAll(module, at, far)))
	for range 2 {
		_, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{})
		var failed *Error
		if !errors.As(err, &failed) || failed.Outcome != ToolTrapped || !strings.Contains(failed.Message, "its bundle (4 bytes at 4294967295) does not fit into its memory of 2621440 bytes") {
			t.Errorf("got %v, want an error that says that the bundle does not fit", err)
		}
	}
}

// TestFreshEngine has an engine whose state no snapshot can hold.
func TestFreshEngine(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{}, "good/engine")
	for _, digit := range "123" {
		p := loadInternal(t, e, scripted(t, "engine_fresh", byte(digit)))
		for range 3 {
			if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != string(digit) {
				t.Errorf("got %s, %v, want %c", out, err, digit)
			}
		}
		if p.module.code.base != nil || p.module.snapshot != nil {
			t.Error("it has a snapshot")
		}
	}
}

// TestBaseIsCounted drops a base while a tool's snapshot shares it. Its bytes are held until the snapshot is dropped, too.
func TestBaseIsCounted(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{CacheDir: t.TempDir()}, "good/engine")
	p := loadInternal(t, e, scripted(t, "engine", 'a', 0, 0, 0))
	peek(t, p, 112)
	c := p.module.code
	base, own := c.base.resident(), p.module.snapshot.resident()
	e.sweep(time.Now().Add(time.Hour), time.Now().Add(-time.Hour)) // no instance is left
	if held := e.account.Held(account.Memory); held != base+own {
		t.Errorf("%d bytes are held, want %d and %d", held, base, own)
	}
	e.dropBase(c)
	if held := e.account.Held(account.Memory); c.base != nil || held != base+own {
		t.Errorf("without an owner, a base that is shared holds %d bytes, want %d and %d", held, base, own)
	}
	other := loadInternal(t, e, scripted(t, "engine", 'b', 0, 0, 0))
	if got := peek(t, other, 112); got[0] != 'b' {
		t.Errorf("got % x", got)
	}
	if got := peek(t, p, 112); got[0] != 'a' {
		t.Errorf("got % x", got)
	}
	e.reclaim(nil, account.Memory, e.account.Most(account.Memory, false))
	if held := e.account.Held(account.Memory); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
	if got := peek(t, p, 112); got[0] != 'a' {
		t.Errorf("got % x", got)
	}
	e.sweep(time.Now().Add(time.Hour), time.Now().Add(time.Hour)) // all is unused
	if held := e.account.Held(account.Memory) + e.account.Held(account.Code) + e.account.Held(account.Mappings); held != 0 {
		t.Errorf("%d of memory, code and mappings are held by nobody", held)
	}
	if got := peek(t, p, 112); got[0] != 'a' {
		t.Errorf("got % x", got)
	}
}

// TestSweepOfOne drops what one tool of an engine has, if only others are called.
func TestSweepOfOne(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{CacheDir: t.TempDir()}, "good/engine")
	old := loadInternal(t, e, scripted(t, "engine", 'a', 0, 0, 0))
	peek(t, old, 112)
	between := time.Now()
	young := loadInternal(t, e, scripted(t, "engine", 'b', 0, 0, 0))
	peek(t, young, 112)
	e.sweep(between.Add(-time.Hour), between)
	if old.module.snapshot != nil || old.module.idlers() != 0 {
		t.Error("a tool that nobody calls keeps its snapshot")
	}
	if young.module.snapshot == nil || young.module.idlers() != 1 || young.State().Code != CodeLoaded || young.module.code.base == nil {
		t.Error("a tool that is called loses something")
	}
	if got := peek(t, old, 112); got[0] != 'a' {
		t.Errorf("got % x", got)
	}
}

// TestUnloadedInAnyOrder loads and closes tools of one engine, while others are called, code is dropped and memory is freed.
// Proves: A tool touches no memory but its own
func TestUnloadedInAnyOrder(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{CacheDir: t.TempDir(), Memory: 64 << 20, CodeMemory: 1}, "good/engine")
	var wait sync.WaitGroup
	for worker := range byte(4) {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 0))
			var programs []*Program
			var names []byte
			for round := range 60 {
				name := 'a' + worker*6 + byte(r.IntN(6))
				p, err := e.Load(scripted(t, "engine", name, byte(r.IntN(30)), byte(r.IntN(3)), 0), abi1.Modules()...)
				if err != nil {
					t.Error(err)
					return
				}
				programs, names = append(programs, p), append(names, name)
				k := r.IntN(len(programs))
				if got := peek(t, programs[k], 112); got[0] != names[k] || got[8] != 1 || got[12] != 1 {
					t.Errorf("tool %c: got % x", names[k], got)
				}
				switch round % 7 {
				case 3:
					e.reclaim(nil, account.Memory, 40<<20)
				case 5:
					e.sweep(time.Now().Add(time.Hour), time.Now().Add(time.Hour))
				case 6:
					e.reclaim(nil, account.Mappings, e.account.Most(account.Mappings, false))
				}
				if len(programs) > 5 {
					k := r.IntN(len(programs))
					programs[k].Close()
					if r.IntN(2) == 0 { // a closed program can be called, too
						if got := peek(t, programs[k], 112); got[0] != names[k] {
							t.Errorf("tool %c: got % x", names[k], got)
						}
					}
					programs, names = append(programs[:k], programs[k+1:]...), append(names[:k], names[k+1:]...)
				}
			}
			for _, p := range programs {
				p.Close()
			}
		})
	}
	wait.Wait()
	if len(e.modules) != 1 || len(e.codes) != 1 {
		t.Errorf("%d modules and %d codes are left, want those of the engine itself", len(e.modules), len(e.codes))
	}
}

// TestBundleIsPacked checks that the bundles of idle modules are compressed, and read again for a start.
func TestBundleIsPacked(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{}, "good/engine")
	p := loadInternal(t, e, scripted(t, "engine", append([]byte{'a', 0, 0, 0}, make([]byte, 10_000)...)...))
	e.packAll(false)
	s := p.module.bundle.source
	if s.Unpacked() != nil || s.Length() > 1000 {
		t.Errorf("a bundle of 10,004 bytes takes %d", s.Length())
	}
	if got := peek(t, p, 112); got[0] != 'a' {
		t.Errorf("got % x", got)
	}
}

// TestLoadCopies loads modules, and then overwrites their bytes before anything is compiled. Each module is still what was loaded.
func TestLoadCopies(t *testing.T) {
	t.Parallel()
	e, _ := poolEngine(t, Config{}, "hostile/hoard")
	plain, bundled := append(bytes.Clone(logs), "\x0b\x08\x01\x00\x41\x00\x0b\x021A"...), scripted(t, "engine", 'a', 1, 2, 0)
	other := scripted(t, "engine", 'b', 7, 2, 0) // a module of the same engine, which is known by then
	one, two, three := loadInternal(t, e, plain), loadInternal(t, e, bundled), loadInternal(t, e, other)
	for _, b := range [][]byte{plain, bundled, other} {
		for i := range b {
			b[i] = 0xff
		}
	}
	if out, err := one.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Errorf("got %q, %v, want 1", out, err)
	}
	for p, want := range map[*Program]string{two: "a\x01", three: "b\x07"} {
		if got := peek(t, p, 112); string(got[:2]) != want {
			t.Errorf("got % x, want % x", got[:2], want)
		}
	}
}
