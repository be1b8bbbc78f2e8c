// Package rust_test builds guests with the Rust SDK, and checks the promises to their authors: small files, calls that are reset in place, and a
// manifest in the file where that is possible.
package rust_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

const (
	unknown = "wasm32-unknown-unknown"
	wasip1  = "wasm32-wasip1"
)

// build returns the module of a crate in sdk/rust, or skips the test if the target is missing.
func build(t *testing.T, crate, target string) []byte {
	t.Helper()
	testkit.NeedBuild(t)
	if _, err := exec.LookPath("cargo"); err != nil {
		t.Skip("cargo is not installed: make setup-rust")
	}
	cmd := exec.CommandContext(t.Context(), "./cargo.sh", "build", "--release", "--locked", "--package", crate, "--target", target)
	cmd.Dir = "../../sdk/rust"
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "target may not be installed") || strings.Contains(string(out), "unable to find library -lc") {
			t.Skipf("the Rust target %s is not installed: make setup-rust", target)
		}
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	module, err := os.ReadFile(filepath.Join("../../build/rust", target, "release", crate+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// load returns a program in a new engine.
func load(t *testing.T, module []byte) *sandbox.Program {
	t.Helper()
	engine := sandboxtest.Engine(t, sandbox.Config{CacheDir: sandboxtest.CodeDir()})
	program, err := engine.Load(module, engine.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestSize checks the promise that a small tool is a small file.
func TestSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		crate, target string
		most          int
	}{
		{"hello", unknown, 120_000},
		{"hello", wasip1, 145_000}, // with the parts of the standard library that use WASI
		{"written", unknown, 80_000},
	} {
		t.Run(test.crate+" "+test.target, func(t *testing.T) {
			t.Parallel()
			module := build(t, test.crate, test.target)
			t.Logf("%d bytes", len(module))
			if len(module) > test.most {
				t.Errorf("got %d bytes, want at most %d", len(module), test.most)
			}
		})
	}
}

// TestImports checks that a tool without WASI imports nothing of WASI, and nothing that it does not use.
func TestImports(t *testing.T) {
	t.Parallel()
	module, err := wasmbin.Parse(build(t, "hello", unknown))
	if err != nil {
		t.Fatal(err)
	}
	want := "toolsrv_v1.fail toolsrv_v1.input_read toolsrv_v1.input_size toolsrv_v1.log toolsrv_v1.output_write"
	var names []string
	for _, i := range module.Imports() {
		names = append(names, i.Module+"."+i.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got the imports %s, want %s", got, want)
	}
}

// TestResetInPlace makes calls of growing size: all fit into the heap that toolsrv_warm has grown, so that no call makes a new instance necessary.
func TestResetInPlace(t *testing.T) {
	t.Parallel()
	for _, target := range []string{unknown, wasip1} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			tool := load(t, build(t, "hello", target)).Tool("hello", 0, limits.Limits{Timeout: time.Minute})
			for _, size := range []int{1, 1 << 10, 64 << 10, 100 << 10} {
				body := fmt.Sprintf(`{"name": %q}`, strings.Repeat("a", size))
				for range 3 {
					var times sandbox.Times
					_, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(body), Times: &times})
					if err != nil {
						t.Fatal(err)
					}
					if times.Reset == 0 {
						t.Errorf("%d bytes: the instance was closed, want it reset in place", size)
					}
				}
			}
		})
	}
}

// TestWritten checks that a manifest with schemas written by hand is in the file, where the compiler has put it, and equals the one that the module
// returns.
func TestWritten(t *testing.T) {
	t.Parallel()
	for _, target := range []string{unknown, wasip1} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			file := build(t, "written", target)
			module, err := wasmbin.Parse(file)
			if err != nil {
				t.Fatal(err)
			}
			section, ok, err := module.Custom("toolsrv.manifest")
			if !ok {
				t.Fatalf("the file has no manifest (%v)", err)
			}
			manifest, err := toolfile.ParseManifest(section)
			if err != nil {
				t.Fatalf("%v in %s", err, section)
			}
			if len(manifest.Tools) != 2 || manifest.Tools[0].Description != `Add "numbers".` || len(manifest.Tools[0].Examples) != 1 ||
				manifest.Tools[0].Title != "Sum" || manifest.Tools[0].Annotations.ReadOnly == nil {
				t.Errorf("got %s, want two tools, sum with its title, annotation and example", section)
			}
			program := load(t, file)
			told, err := program.Describe(t.Context())
			if err != nil || !equal(told, section) {
				t.Errorf("the module returns %s, %v, want the manifest in the file: %s", told, err, section)
			}
			prepared := program.Tool("prepared", 1, limits.Limits{Timeout: time.Minute})
			for range 3 {
				if got, err := prepared.Call(t.Context(), sandbox.CallSpec{}); err != nil || string(got) != "1" {
					t.Errorf("got %s, %v, want 1: warm runs once, and each call begins with the state after that", got, err)
				}
			}
		})
	}
}

// TestDerived checks that a manifest that is only known at run time leaves no section in the file, and that the server accepts it.
func TestDerived(t *testing.T) {
	t.Parallel()
	file := build(t, "hello", unknown)
	module, err := wasmbin.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if section, ok, _ := module.Custom("toolsrv.manifest"); ok {
		t.Errorf("got the section %q, want none", section)
	}
	told, err := load(t, file).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolfile.ParseManifest(told); err != nil {
		t.Errorf("%v in %s", err, told)
	}
}

// equal compares two JSON texts, ignoring white space.
func equal(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
