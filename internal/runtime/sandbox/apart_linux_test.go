package sandbox_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// apart returns an engine whose modules are compiled by another process, and its log.
func apart(t *testing.T, dir string, helper ...string) (*sandbox.Engine, *testkit.Log) {
	t.Helper()
	testkit.SkipEmulated(t, "the test can't start the process that compiles")
	r := &testkit.Log{}
	e, err := sandbox.New(t.Context(), sandbox.Config{Imports: abi1.Sets(), CacheDir: dir, CompileHelper: helper, Logger: r.Logger(slog.LevelDebug)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, r
}

// TestApart compiles in another process, with a cache and without one, and also where there is no such process, or a wrong one.
// Proves: Compiling is bounded
func TestApart(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const alone = "modules are compiled in this process"
	for name, c := range map[string]struct {
		dir    string
		helper []string
		warns  bool
	}{
		"cache":    {t.TempDir(), []string{self, "compile"}, false},
		"no cache": {"", []string{self, "compile"}, false},
		"none":     {t.TempDir(), []string{filepath.Join(t.TempDir(), "missing")}, true},
		"wrong":    {t.TempDir(), []string{"false"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, log := apart(t, c.dir, c.helper...)
			p, err := e.Load(testkit.Fixture(t, "wat/good/echo"), abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			out, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte("[1]")})
			if err != nil || string(out) != "[1]" {
				t.Errorf("got %s, %v, want [1]", out, err)
			}
			if warned := strings.Contains(log.String(), alone); warned != c.warns {
				t.Errorf("warned of compiling in this process: %v, want %v; got %s", warned, c.warns, log)
			}
		})
	}
}

// TestBarred compiles a module that exceeds a limit. It is refused with the reason, and later engines refuse it at once.
// Proves: Compiling is bounded
func TestBarred(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const why = "compiling the module takes more than"
	load := func(e *sandbox.Engine) (*sandbox.Program, error) {
		return e.Load(testkit.Fixture(t, "wat/good/echo"), abi1.Modules()...)
	}
	for name, dir := range map[string]string{"cache": t.TempDir(), "no cache": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := apart(t, dir, self, "compile-never")
			p, err := load(e)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Compile(t.Context())
			if _, ok := errors.AsType[*compile.TooMuch](err); !ok || !strings.Contains(err.Error(), why) {
				t.Errorf("got %v, want an error with %q", err, why)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := load(e); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("the same engine again: got %v, want an error with %q", err, why)
			}
			if dir == "" {
				return
			}
			later, _ := apart(t, dir, self, "compile")
			if _, err := load(later); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("a later engine: got %v, want an error with %q", err, why)
			}
			without, _ := apart(t, dir)
			p, err = load(without)
			if err != nil {
				t.Fatal("where no process compiles, weighing decides:", err)
			}
			defer p.Close()
			if err := p.Compile(t.Context()); err != nil {
				t.Error(err)
			}
			if files, err := filepath.Glob(filepath.Join(dir, ".staging-*", "helper-*")); err != nil || len(files) > 0 {
				t.Errorf("%v is left, %v", files, err)
			}
		})
	}
}

// TestKilledByTheSystem has the system kill the processes that compile. The module is not refused for that, but it is not tried in every call either.
// Proves: Compiling is bounded
func TestKilledByTheSystem(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kills  string // one for each start; a module is tried twice
		starts int    // for three calls
		want   string // how they end; o means overloaded
	}{
		"once":   {".", 2, "..."},
		"twice":  {"..", 3, "o.."},
		"always": {strings.Repeat(".", 100), 4, "ooo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, file := t.TempDir(), filepath.Join(t.TempDir(), "starts")
			e, _ := apart(t, dir, self, "compile-killed", c.kills, file)
			p, err := e.Load(testkit.Fixture(t, "wat/good/echo"), abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			got := ""
			for range 3 {
				_, err := p.Tool("echo", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte("[1]")})
				if err == nil {
					got += "."
					continue
				}
				wantError(t, err, sandbox.Overloaded, "Try again later")
				if !errors.Is(err, compile.ErrLost) {
					t.Errorf("got %v, want %v", err, compile.ErrLost)
				}
				got += "o"
			}
			if got != c.want {
				t.Errorf("three calls ended as %q, want %q", got, c.want)
			}
			if starts, err := os.ReadFile(file); err != nil || len(starts) != c.starts {
				t.Errorf("%d processes were started, %v, want %d", len(starts), err, c.starts)
			}
			entries, err := filepath.Glob(filepath.Join(dir, "????????????????????????????????????????????????????????????????"))
			if err != nil || len(entries) > 0 != strings.Contains(c.want, ".") {
				t.Errorf("the cache has %v, %v: it should have code, and no refusal", entries, err)
			}
		})
	}
}
