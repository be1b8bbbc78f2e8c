package sandbox_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// fails runs an engine whose disk for compiled code does not work. Every tool is compiled once, and answers each time. The log has one or two
// lines about it.
func fails(t *testing.T, e *sandbox.Engine, r *testkit.Log, modules [][]byte) {
	t.Helper()
	for range 2 {
		for n, module := range modules {
			p := sandboxtest.Load(t, e, module)
			if err := p.Compile(t.Context()); err != nil {
				t.Fatalf("module %d: %v", n, err)
			}
			for range 2 {
				if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte("[1]")}); err != nil || string(out) != "[1]" {
					t.Fatalf("module %d: got %s, %v, want [1]", n, out, err)
				}
			}
		}
	}
	if logged := r.String(); strings.Count(logged, "\n") < 1 || strings.Count(logged, "\n") > 2 {
		t.Errorf("got %q, want a line or two", logged)
	}
}

// TestDiskGone removes the directory for compiled code, and puts a file in its place.
// Proves: Nothing stops the server
func TestDiskGone(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	dir := filepath.Join(t.TempDir(), "cache")
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir, Logger: r.Logger(slog.LevelDebug)})
	modules := variants(t, 20)
	before := sandboxtest.Load(t, e, modules[0])
	if err := before.Compile(t.Context()); err != nil { // then its code is only on disk
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, e, &r, modules)
}

// TestDiskBack removes the directory for compiled code from a running engine. Code that is compiled later is stored again, without a line in the log.
func TestDiskBack(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	dir := filepath.Join(t.TempDir(), "made", "cache")
	e := sandboxtest.Engine(t, sandbox.Config{CacheDir: dir, Logger: r.Logger(slog.LevelWarn)})
	for n, module := range variants(t, 3) {
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		p := sandboxtest.Load(t, e, module)
		if err := p.Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte("[1]")}); err != nil || string(out) != "[1]" {
			t.Errorf("module %d: got %s, %v, want [1]", n, out, err)
		}
		entries, err := filepath.Glob(filepath.Join(dir, strings.Repeat("[0-9a-f]", 64)))
		if err != nil || len(entries) == 0 {
			t.Errorf("module %d: nothing is kept (%v)", n, err)
		}
	}
	if logged := r.String(); logged != "" {
		t.Errorf("got %q, want no line", logged)
	}
}
