package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// echo calls the echo fixture once on an engine of its own, and returns the log.
func echo(t *testing.T, dir string) string {
	t.Helper()
	var r testkit.Log
	e, err := sandbox.New(t.Context(), sandbox.Config{Imports: abi1.Sets(), CacheDir: dir, Logger: r.Logger(slog.LevelDebug)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Load(testkit.Fixture(t, "wat/good/echo"), abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Tool("echo", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), sandbox.CallSpec{Input: []byte(`[1]`)})
	if err != nil || string(out) != `[1]` {
		t.Errorf("got %s, %v, want [1]", out, err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return r.String()
}

// entry returns the only file in the cache.
func entry(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("got %d files, %v, want 1", len(files), err)
	}
	return filepath.Join(dir, files[0].Name())
}

// TestCacheDamaged flips bytes all over a cached module. Each time the module is compiled again, and the entry is repaired.
// Proves: Files of others are not trusted
func TestCacheDamaged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	echo(t, dir)
	path := entry(t, dir)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if logged := echo(t, dir); logged != "" {
		t.Errorf("a good entry: got %s, want nothing logged", logged)
	}
	damage := map[string][]byte{"empty": {}, "text": []byte("hello"), "half": good[:len(good)/2], "longer": append(good[:len(good):len(good)], 0)}
	for at := 0; at < len(good); at += len(good)/16 + 1 {
		flipped := append([]byte(nil), good...)
		flipped[at] ^= 0x80
		damage["byte "+string(rune('a'+len(damage)))] = flipped
	}
	for name, content := range damage {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		// A file whose size rules out an entry is ignored.
		if logged := echo(t, dir); len(content) > 100 && !strings.Contains(logged, "is damaged") {
			t.Errorf("%s: got %q, want a line about the damage", name, logged)
		}
		if again, err := os.ReadFile(entry(t, dir)); err != nil || len(again) != len(good) {
			t.Errorf("%s: the entry has %d bytes, %v, want %d", name, len(again), err, len(good))
		}
	}
}

// TestCacheUnusable has a directory in place of the entry. The module is compiled all the same, and a line is logged.
func TestCacheUnusable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	echo(t, dir)
	path := entry(t, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if logged := echo(t, dir); !strings.Contains(logged, "compiled code is kept in memory, not on disk") {
		t.Errorf("got %s, want a line about the entry", logged)
	}
	if logged := echo(t, filepath.Join(path, "\x00")); !strings.Contains(logged, "every start compiles all tools again") {
		t.Errorf("got %s, want a line about a directory that can't exist", logged)
	}
}

// TestCacheUsableAgain has an entry that can't be kept, and then others that can. The end of the trouble is logged as its beginning was.
func TestCacheUsableAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	echo(t, dir)
	path := entry(t, dir)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	var r testkit.Log
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir, Logger: r.Logger(slog.LevelInfo)})
	compile := func(module []byte) {
		t.Helper()
		if err := sandboxtest.Load(t, e, module).Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	compile(testkit.Fixture(t, "wat/good/echo"))
	failed := time.Now()
	others := variants(t, 2)
	compile(others[0])
	testkit.Until(t, "the trouble to be old", func() bool { return time.Since(failed) > 1100*time.Millisecond })
	compile(others[1])
	if was, is := r.Count("level=WARN", "compiled code is kept in memory, not on disk"), r.Count("level=INFO", "compiled code is kept on disk again"); was != 1 || is != 1 {
		t.Errorf("the beginning is logged %d times and the end %d times, want 1 and 1: %s", was, is, r.String())
	}
}

// TestCacheStaging removes wazero's directory from a running engine, and leaves an old directory of another engine.
func TestCacheStaging(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stale := filepath.Join(dir, ".staging-1")
	if err := os.MkdirAll(filepath.Join(stale, "wazero"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(stale, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir})
	if err := os.RemoveAll(entry(t, dir)); err != nil { // the stale one is gone, so this one is the engine's
		t.Fatal(err)
	}
	if err := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/echo")).Compile(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(entry(t, dir)); len(name) != 64 {
		t.Errorf("%s is left over, want an entry", name)
	}
}

// variants returns n modules, at most 50, that differ in a constant, so that each has an entry of its own.
func variants(t testing.TB, n int) [][]byte {
	t.Helper()
	list := make([][]byte, n)
	for i := range list {
		list[i] = bytes.Replace(testkit.Fixture(t, "wat/good/echo"), []byte{0x41, 9}, []byte{0x41, byte(10 + i)}, 1) // i32.const 9
	}
	return list
}

// names returns the names of all entries, and their total size.
func names(t testing.TB, dir string) (names []string, total int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if len(f.Name()) != 64 {
			continue
		}
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		names, total = append(names, f.Name()), total+info.Size()
	}
	return names, total
}

// TestCacheTooSmall has no room for any entry. Everything works, and nothing is kept.
func TestCacheTooSmall(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	dir := t.TempDir()
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir, CacheSize: 1, Logger: r.Logger(slog.LevelDebug)})
	if err := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/echo")).Compile(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := names(t, dir); len(left) != 0 || !strings.Contains(r.String(), "compiled code is kept in memory") {
		t.Errorf("got %q and %s, want no entry and a line about it", left, r.String())
	}
}

// TestCacheShared lets two engines, which stand for two processes, compile the same modules at the same time, with room for only a few.
func TestCacheShared(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	dir := t.TempDir()
	modules := variants(t, 20)
	done := make(chan error)
	for range 2 {
		e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir, CacheSize: 20 << 10, Logger: r.Logger(slog.LevelDebug)})
		for _, module := range modules {
			p := sandboxtest.Load(t, e, module)
			go func() {
				out, err := p.Tool("echo", 0, limits.Limits{Timeout: time.Minute}).Call(context.Background(), sandbox.CallSpec{Input: []byte("[1]")})
				if err == nil && string(out) != "[1]" {
					err = errors.New(string(out))
				}
				done <- err
			}()
		}
	}
	for range 2 * len(modules) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if logged := r.String(); logged != "" {
		t.Errorf("got %s, want nothing logged", logged)
	}
}

// TestCompileWorkers compiles one module on several processors. The result is the same as on one.
func TestCompileWorkers(t *testing.T) {
	t.Parallel()
	var made [][]byte
	for _, workers := range []int{0, 1, 4} {
		dir := t.TempDir()
		e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir, CompileWorkers: workers})
		p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/leaky"))
		if err := p.Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		code, err := os.ReadFile(entry(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, code)
	}
	for n, code := range made[1:] {
		if !bytes.Equal(code, made[0]) {
			t.Errorf("case %d: got code that differs from what one processor makes", n+1)
		}
	}
}

// FuzzCacheEntry damages an entry in any place and in any way. The module always works, and the entry is repaired afterwards.
// Proves: Files of others are not trusted
func FuzzCacheEntry(f *testing.F) {
	dir := f.TempDir()
	e, err := sandbox.New(f.Context(), sandbox.Config{Imports: abi1.Sets(), CacheDir: dir})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { e.Close(context.Background()) })
	module := testkit.Fixture(f, "wat/good/echo")
	run := func(t testing.TB) {
		p, err := e.Load(module, abi1.Modules()...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if out, err := p.Tool("echo", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), sandbox.CallSpec{Input: []byte("[1]")}); err != nil || string(out) != "[1]" {
			t.Fatalf("got %s, %v, want [1]", out, err)
		}
	}
	run(f)
	all, _ := names(f, dir)
	path := filepath.Join(dir, all[0])
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	magic, sum, name, code := 0, 24, 56, 120
	for _, at := range []int{magic, sum, name, code, code + 6, code + 13, code + 17, code + 25, len(good)/2 + 60, len(good) - 9, len(good) - 1} {
		f.Add(uint32(at), byte(0xff), uint32(0), []byte(nil))
	}
	for _, size := range []int{0, magic + 10, sum, name, code, code + 12, len(good) - 1} {
		f.Add(uint32(0), byte(0), uint32(len(good)-size), []byte(nil))
	}
	f.Add(uint32(0), byte(0), uint32(0), []byte("more"))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, cut uint32, more []byte) {
		bad := append(good[:len(good)-int(cut)%(len(good)+1):len(good)-int(cut)%(len(good)+1)], more...)
		if len(bad) > 0 {
			bad[int(at)%len(bad)] ^= flip
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		run(t)
		if again, err := os.ReadFile(path); err != nil || len(again) != len(good) {
			t.Fatalf("the entry has %d bytes, %v, want %d", len(again), err, len(good))
		}
	})
}
