// Package files_test checks that guests in all languages find the directories that they were granted, with their own libraries.
package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/files"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/projecttest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

const cities = "Paris;48.85;2.35\nNairobi;-1.29;36.82\n"

// geo makes the directory that the guests read.
func geo(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "geo")
	for name, content := range map[string]string{
		"geo/cities.csv": cities, "geo/maps/world.json": "{}", "geo/large": strings.Repeat("\x01\x02\x03", 100<<10), "secret": "secret",
	} {
		write(t, filepath.Join(top, filepath.FromSlash(name)), content)
	}
	for i := range 300 {
		write(t, filepath.Join(dir, "many", fmt.Sprintf("a rather long name of file number %d", i)), "")
	}
	for name, to := range map[string]string{"current": "maps", "out": "../secret"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("links can't be made here:", err)
		}
	}
	if out, err := exec.Command("mkfifo", filepath.Join(dir, "fifo")).CombinedOutput(); err != nil {
		t.Skipf("pipes can't be made here: %v %s", err, out)
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// needRust skips a test if Rust can't build for WASI.
func needRust(t *testing.T) {
	t.Helper()
	testkit.NeedBuild(t, "rustc")
	library, err := exec.Command("rustc", "--print", "target-libdir", "--target", "wasm32-wasip1").Output()
	if err == nil {
		_, err = os.Stat(strings.TrimSpace(string(library)))
	}
	if err != nil {
		t.Skip("no rustc with the target wasm32-wasip1 (make setup-rust): ", err)
	}
}

// buildC builds the guest in C.
func buildC(t *testing.T) []byte {
	t.Helper()
	zig, err := filepath.Abs(filepath.Join("..", "..", ".venv", "zig", "bin", "python"))
	if err == nil {
		_, err = os.Stat(zig)
	}
	if err != nil {
		t.Skip("no C compiler (make .venv/zig): ", err)
	}
	return testkit.Guest(t, "testdata/c", zig, "-m", "ziglang", "cc", "--target=wasm32-wasi", "-Os", "-s", "-o", "@", "report.c")
}

// buildTinyGo builds a guest with TinyGo, as toolsrv build does.
func buildTinyGo(t *testing.T, file string) []byte {
	t.Helper()
	testkit.NeedBuild(t, "tinygo")
	if os.Getenv("TOOLSRV_TINYGO") == "" {
		t.Skip("builds with TinyGo: make test-tinygo does")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/work\n\ngo 1.24\n")
	write(t, filepath.Join(dir, "tinygo.go"), "//toolsrv:tinygo\n\npackage main\n")
	for _, name := range []string{"report.go", file} {
		write(t, filepath.Join(dir, name), strings.Replace(string(testkit.Read(t, "testdata", "go", name)), " && reactor", "", 1))
	}
	if file == "command.go" {
		write(t, filepath.Join(dir, "tool.json"), `{"abi": 1, "tools": [{"name": "x", "description": "Reports.", "parameters": {}}]}`)
	}
	return projecttest.Compile(t, dir)
}

// languages are the guests, with what differs between their languages.
var languages = []struct {
	name   string
	build  func(t *testing.T) []byte
	differ map[string]any
}{
	{"go", func(t *testing.T) []byte {
		return testkit.Guest(t, "testdata/go", "go", "build", "-ldflags=-s", "-o", "@", ".")
	}, nil},
	{"go reactor", func(t *testing.T) []byte {
		return testkit.Guest(t, "testdata/go", "go", "build", "-buildmode=c-shared", "-tags=reactor", "-ldflags=-s", "-o", "@", ".")
	}, nil},
	{"tinygo", func(t *testing.T) []byte { return buildTinyGo(t, "command.go") }, nil},
	{"tinygo reactor", func(t *testing.T) []byte { return buildTinyGo(t, "reactor.go") }, nil},
	{"rust", func(t *testing.T) []byte {
		needRust(t)
		return testkit.Guest(t, "testdata/rust", "rustc", "--edition=2021", "-O", "--target=wasm32-wasip1", "-o", "@", "report.rs")
	}, nil},
	{"c", buildC, nil},
	{"python", func(t *testing.T) []byte {
		enginetest.Need(t, "python")
		module, err := enginetest.Open(t, "python").Append([]engine.File{{Name: "report.py", Data: testkit.Read(t, "testdata", "report.py")}})
		if err != nil {
			t.Fatal(err)
		}
		return module
	}, map[string]any{"start": 44.0, "walked": 305.0}},
}

// TestLanguages lets each guest report on the same directory: in a new instance, in one that was reset, and then without a grant. Guests
// have few file descriptors, so a descriptor that is never closed would be noticed.
// Proves: Files are read, and nothing else
// Proves: Nothing without a grant
func TestLanguages(t *testing.T) {
	t.Parallel()
	const acces, noEnt, roFS, notCapable = 2.0, 44.0, 69.0, 76.0
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			module := l.build(t)
			var log testkit.Log
			p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{CacheDir: sandboxtest.CodeDir(), Descriptors: 8, Logger: log.Logger(slog.LevelDebug)}), module)
			if err := p.Compile(t.Context()); err != nil {
				t.Fatal(err)
			}
			call := func(grants ...hostcall.Grant) (got map[string]any, err error) {
				tool := p.Tool(l.name, 0, limits.Limits{Timeout: time.Minute, Memory: 256 << 20}, grants...)
				out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte("{}")})
				if err == nil {
					err = json.Unmarshal(out, &got)
				}
				return got, err
			}
			granted := hostcall.Grant{Module: wasi.Module, Value: files.Grant(map[string]string{"geo": geo(t)})}
			for range 2 {
				got, err := call(granted)
				if err != nil {
					t.Fatalf("%v\n%s", err, log.String())
				}
				want := map[string]any{
					"read": cities, "errno": 0.0, "root": []any{"geo"}, "list": []any{"cities.csv", "current", "fifo", "large", "many", "maps", "out"}, "many": 300.0,
					"relative": "{}", "linked": "{}", "sum": 6.0 * (100 << 10), "size": float64(len(cities)), "middle": "48.85",
					"none": noEnt, "out": notCapable, "passwd": noEnt, "fifo": acces, "write": roFS, "create": roFS, "mkdir": roFS, "remove": roFS,
				}
				maps.Copy(want, l.differ)
				for name := range want {
					if !reflect.DeepEqual(got[name], want[name]) {
						t.Errorf("%s: got %v, want %v", name, got[name], want[name])
					}
				}
			}
			used := log.Count("capability=files")
			got, err := call()
			if n := log.Count("capability=files") - used; n > 0 {
				t.Errorf("without a grant: %d uses are counted", n)
			}
			if l.name == "python" { // without a grant, this guest raises an exception
				var failed *sandbox.Error
				if !errors.As(err, &failed) || !strings.HasPrefix(failed.Message, "PermissionError: ") {
					t.Errorf("without a grant: got %v, %v", got, err)
				}
				return
			}
			if err != nil || got["read"] != "" {
				t.Errorf("without a grant: read %v, %v", got["read"], err)
			}
			for _, name := range []string{"errno", "none", "out", "passwd", "fifo", "write", "create", "mkdir", "remove"} {
				if got[name] == 0.0 {
					t.Errorf("without a grant: %s works", name)
				}
			}
		})
	}
}
