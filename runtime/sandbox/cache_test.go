package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
)

// echo calls the echo fixture once on an engine of its own, and returns what was logged.
func echo(t *testing.T, dir string) string {
	t.Helper()
	var r record
	e, err := sandbox.New(t.Context(), sandbox.Config{CacheDir: dir, Logger: r.logger()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Load(fixture(t, "good/echo"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Tool("echo", 0, sandbox.Limits{}).Call(t.Context(), []byte(`[1]`))
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

// TestCacheDamaged flips bytes all over a cached module. Each time the module is compiled anew, and the entry is right again.
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
		if logged := echo(t, dir); !strings.Contains(logged, "is damaged") {
			t.Errorf("%s: got %q, want a line about the damage", name, logged)
		}
		if again, err := os.ReadFile(entry(t, dir)); err != nil || len(again) != len(good) {
			t.Errorf("%s: the entry has %d bytes, %v, want %d", name, len(again), err, len(good))
		}
	}
}

// TestCacheUnusable has a directory where the entry should be: the module is compiled all the same, and a line is logged.
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
	if logged := echo(t, dir); !strings.Contains(logged, "compiled code is not used") || !strings.Contains(logged, "compiled code is not kept") {
		t.Errorf("got %s, want lines about the entry", logged)
	}
	if _, err := sandbox.New(t.Context(), sandbox.Config{CacheDir: filepath.Join(entry(t, dir), "..", "..", "good", "\x00")}); err == nil {
		t.Error("New takes a directory that cannot be")
	}
}

// TestCacheStaging takes wazero's directory away from a running engine, and leaves an old one of another.
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
	e := newEngine(t, sandbox.Config{CacheDir: dir})
	if err := os.RemoveAll(entry(t, dir)); err != nil { // the stale one is gone, so that this is the engine's
		t.Fatal(err)
	}
	if err := load(t, e, fixture(t, "good/echo")).Compile(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(entry(t, dir)); len(name) != 64 {
		t.Errorf("%s is left over, want an entry", name)
	}
}
