package catalog_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// unlike returns a module that does what another does, but whose code differs for the engine.
func unlike(t testing.TB, module []byte, name string) []byte {
	t.Helper()
	module, err := wasmbin.SetCustom(module, "name", append([]byte{0, byte(len(name) + 1), byte(len(name))}, name...))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// heavy returns a module with a tool of this name that takes some tenths of a second to compile. Another seed gives other code.
func heavy(t testing.TB, seed byte, name string) []byte {
	t.Helper()
	number := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	section := func(id byte, content ...[]byte) []byte {
		all := slices.Concat(content...)
		return slices.Concat([]byte{id}, number(len(all)), all)
	}
	const functions = 400
	body := []byte{0} // no locals
	for range 250 {   // local 0 = (local 0 + seed) * local 0
		body = append(body, 0x20, 0, 0x41, seed&0x3f, 0x6a, 0x20, 0, 0x6c, 0x21, 0)
	}
	body = append(body, 0x20, 0, 0x0b)
	var types, bodies []byte
	for range functions {
		types = append(types, 0)
		bodies = slices.Concat(bodies, number(len(body)), body)
	}
	module := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{1, 0x60, 1, 0x7f, 1, 0x7f}),
		section(3, number(functions), types),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, []byte("\x06memory\x02\x00"), []byte("\x0ctoolsrv_call\x00\x00")),
		section(10, number(functions), bodies))
	return sandboxtest.WithManifest(t, module, manifestText(t, "", name))
}

// TestCheapFirst replaces a small file together with large ones: the small one is served before most of the others are compiled.
// Proves: Nothing stops the server
func TestCheapFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	const large = 8
	directory := t.TempDir()
	build := func(seed byte) (modules [large][]byte) {
		for i := range modules {
			modules[i] = heavy(t, seed+byte(i), fmt.Sprintf("large%d", i))
		}
		return modules
	}
	swapAll := func(modules [large][]byte) {
		for i, module := range modules {
			swap(t, directory, fmt.Sprintf("large%d.wasm", i), module)
		}
	}
	swapAll(build(0))
	testkit.Put(t, directory, "z.wasm", version(t, "v0001", "", "z"))
	// The modules are made before anything is written, so that the small file does not come seconds after the large ones.
	newer, small := build(large), version(t, "v0002", "", "z")
	c := open(t, options{Directory: directory})
	swapAll(newer)
	swap(t, directory, "z.wasm", small)
	digestOf := func(module []byte) string { return fmt.Sprintf("%x", sha256.Sum256(module)) }
	await(t, c, "the small file", func(g *wasmtools.Generation) bool {
		r, ok := g.Lookup("/z")
		if !ok || r.Tool.Digest != digestOf(small) {
			return false
		}
		done := 0
		for i, module := range newer {
			if r, ok := g.Lookup(fmt.Sprintf("/large%d", i)); ok && r.Tool.Digest == digestOf(module) {
				done++
			}
		}
		if done > large/2 {
			t.Errorf("%d of %d large files were compiled before a small one was served", done, large)
		}
		return true
	})
}

// TestListedBeforeCompiled lists new files with a manifest before they are compiled, which takes tenths of a second each.
func TestListedBeforeCompiled(t *testing.T) {
	t.Parallel()
	const files = 3
	directory := t.TempDir()
	var modules [files][]byte // made before anything is written
	for i := range modules {
		modules[i] = heavy(t, byte(i), fmt.Sprintf("large%d", i))
	}
	engine := sandboxtest.Engine(t, sandbox.Config{})
	c := open(t, options{Directory: directory, Engine: engine})
	type generation struct{ listed, compiled int }
	first := make(chan generation, 1)
	// A subscriber is called before the catalog goes on, however late this test's own goroutine is.
	unsubscribe := c.Table().Subscribe(func(g *wasmtools.Generation) {
		select {
		case first <- generation{len(g.Routes()), engine.State().Code[sandbox.CodeLoaded]}:
		default:
		}
	})
	defer unsubscribe()
	for i, module := range modules {
		swap(t, directory, fmt.Sprintf("large%d.wasm", i), module)
	}
	await(t, c, "all files", func(g *wasmtools.Generation) bool { return len(g.Routes()) == files })
	if g := <-first; g.compiled >= g.listed {
		t.Errorf("the first generation lists %d tools when %d are compiled", g.listed, g.compiled)
	}
}

// TestDescribedBesideEndless serves a module that has to be run to be described, while modules that come earlier by path run without end.
// Proves: Nothing stops the server
func TestDescribedBesideEndless(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for i := range 12 {
		testkit.Put(t, directory, fmt.Sprintf("a%02d.wasm", i), unlike(t, testkit.Fixture(t, "wat/hostile/describe_spin"), fmt.Sprint(i)))
	}
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "b"))
	testkit.Put(t, directory, "z.wasm", testkit.Fixture(t, "catalog/described"))
	c := start(t, options{Engine: endless(t), Directory: directory, Poll: 500 * time.Millisecond})
	if c.Synced() {
		t.Error("the catalog is in step before anything was read")
	}
	awaitTable(t, c, []string{"/b", "/told"}, nil) // no endless module has been refused yet
	if c.Ready() == nil || c.Synced() {
		t.Errorf("got Ready() = %v and Synced() = %t while modules are being run to be described", c.Ready(), c.Synced())
	}
}

// TestFolderBesideEndless serves a large module of one folder within seconds, while many modules of another folder run without end, each of which
// would hold it up for a moment.
// Proves: Nothing stops the server
func TestFolderBesideEndless(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for i := range 30 * runtime.GOMAXPROCS(0) { // enough modules to run for 15 s
		testkit.Put(t, directory, fmt.Sprintf("a/%03d.wasm", i), unlike(t, testkit.Fixture(t, "wat/hostile/describe_spin"), fmt.Sprint(i)))
	}
	large, err := wasmbin.SetCustom(testkit.Fixture(t, "catalog/described"), "padding", make([]byte, 10_000))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Put(t, directory, "b/z.wasm", large)
	began := time.Now()
	c := start(t, options{Engine: endless(t), Directory: directory, Poll: 500 * time.Millisecond})
	await(t, c, "the good one", func(g *wasmtools.Generation) bool { return len(g.Routes()) == 1 })
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestStartGoesOn checks that a start does not wait without end for many endless modules: each is refused when its time is up.
// Proves: Nothing stops the server
func TestStartGoesOn(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for i := range 20 {
		testkit.Put(t, directory, fmt.Sprintf("a%02d.wasm", i), unlike(t, testkit.Fixture(t, "wat/hostile/describe_spin"), fmt.Sprint(i)))
	}
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "b"))
	log := &testkit.Log{}
	c := open(t, options{Engine: endless(t), Directory: directory, Logger: log.Logger(slog.LevelInfo)}) // which waits
	if n := len(c.Table().Current().Refused()); n > 10 || c.Synced() {
		t.Errorf("the start waited until %d files were refused, and the catalog is in step: %t", n, c.Synced())
	}
	if n := log.Count("not waiting for files"); n != 1 {
		t.Errorf("got %d warnings, want 1", n)
	}
	if _, ok := c.Table().Lookup("/b"); !ok {
		t.Error("a good file is not listed")
	}
}

// TestStartGoesOnBesideSwaps checks that a start does not wait without end for a file that is always replaced before its tools are known.
func TestStartGoesOnBesideSwaps(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	spin := testkit.Fixture(t, "wat/hostile/describe_spin")
	testkit.Put(t, directory, "a.wasm", spin)
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "b"))
	c := start(t, options{Engine: endless(t), Directory: directory})
	deadline := time.After(time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; c.Ready() != nil; i++ {
		select {
		case <-tick.C:
			swap(t, directory, "a.wasm", unlike(t, spin, fmt.Sprint(i)))
		case <-deadline:
			t.Fatalf("the start waits without end: %v", c.Ready())
		}
	}
}

// TestSettlesBesideEndless checks that clients are not asked to wait longer for endless modules than for any others.
// Proves: Nothing stops the server
func TestSettlesBesideEndless(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "b"))
	c := open(t, options{Engine: endless(t), Directory: directory})
	const files = 8
	for i := range files {
		testkit.Put(t, directory, fmt.Sprintf("a%02d.wasm", i), unlike(t, testkit.Fixture(t, "wat/hostile/describe_spin"), fmt.Sprint(i)))
	}
	awaitState(t, c, "all are running, or waiting to run", func(s catalog.State) bool { return s.Files[catalog.StageDescribing] == files })
	for deadline := time.Now().Add(time.Minute); !c.Synced(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("clients of a missing path are asked to try again for as long as modules run")
		}
	}
	if s := c.State(); s.Files[catalog.StageDescribing] == 0 {
		t.Error("no module was running any more, so this tests nothing")
	}
}

// endless returns an engine that lets a module run without end while it is described.
func endless(t *testing.T) *sandbox.Engine {
	t.Helper()
	return sandboxtest.Engine(t, sandbox.Config{DescribeFuel: sandboxtest.Endless})
}

// TestRenamed gives a served file another name. While no generation has the file's tool, the catalog must not count as in step.
func TestRenamed(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "n", "tool"))
	c := open(t, options{Directory: directory, Poll: 500 * time.Millisecond})
	defer c.Table().Subscribe(func(g *wasmtools.Generation) {
		if _, ok := g.Lookup("/n/tool"); !ok && c.SyncedAt("/n/tool") {
			t.Error("a client would take the tool for gone")
		}
	})()
	rename(t, filepath.Join(directory, "a.wasm"), filepath.Join(directory, "b.wasm"))
	await(t, c, "the new name", func(g *wasmtools.Generation) bool {
		r, ok := g.Lookup("/n/tool")
		return ok && filepath.Base(r.Tool.Source) == "b.wasm"
	})
}

// TestNewerVersion loads the next version of a file without waiting for the previous one.
// Proves: Nothing stops the server
func TestNewerVersion(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	log := &testkit.Log{}
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "b"))
	c := open(t, options{Engine: endless(t), Directory: directory, Logger: log.Logger(slog.LevelInfo)})
	// The file is renamed into place. Otherwise a busy machine could stop the writer after it has made an empty file, and that would be refused.
	swap(t, directory, "a.wasm", testkit.Fixture(t, "wat/hostile/describe_spin"))
	for since := time.Now(); time.Since(since) < 200*time.Millisecond; runtime.Gosched() { // until the file has settled, and its module runs
		if c.Synced() {
			since = time.Now()
		}
	}
	swap(t, directory, "a.wasm", testkit.Fixture(t, "catalog/described"))
	awaitTable(t, c, []string{"/b", "/told"}, nil)
	if n := log.Count("file refused"); n != 0 {
		t.Errorf("the first version was refused after %d tries before the second was looked at", n)
	}
	remove(t, directory, "a.wasm")
	awaitTable(t, c, []string{"/b"}, nil)
}

// TestDescribedComesLater: a file without a manifest comes after one with a manifest, even if an earlier start has cached the description.
func TestDescribedComesLater(t *testing.T) {
	t.Parallel()
	directory, cache := t.TempDir(), t.TempDir()
	testkit.Put(t, directory, "a.wasm", testkit.Fixture(t, "catalog/described"))
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "told"))
	for n := range 2 {
		c := open(t, options{Directory: directory, Engine: sandboxtest.Engine(t, sandbox.Config{CacheDir: cache})})
		if r, ok := c.Table().Lookup("/told"); !ok || filepath.Base(r.Tool.Source) != "b.wasm" {
			t.Errorf("start %d: /told is not served from b.wasm", n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
