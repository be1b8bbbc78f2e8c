package project_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestMain makes Cargo keep its output, so that the crates of Rust tools are compiled once.
func TestMain(m *testing.M) {
	target, err := filepath.Abs("../../../build/project")
	if err == nil {
		err = os.Setenv("CARGO_TARGET_DIR", target)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// needTarget skips a test if Rust has no standard library for a target.
func needTarget(t *testing.T, target string) {
	t.Helper()
	testkit.NeedBuild(t, "cargo", "rustc")
	dir, err := exec.CommandContext(t.Context(), "rustc", "--print", "target-libdir", "--target", target).Output()
	if err == nil {
		_, err = os.Stat(strings.TrimSpace(string(dir)))
	}
	if err != nil {
		t.Skipf("Rust has no target %s (rustup target add %[1]s): %v", target, err)
	}
}

// compile compiles the project in dir, and returns the module and the compiler's output.
func compile(t *testing.T, dir string) (module []byte, said string, err error) {
	t.Helper()
	p, err := project.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	module, err = p.Compile(t.Context(), &stderr)
	return module, stderr.String(), err
}

// load loads a module into a sandbox and returns its tools.
func load(t *testing.T, module []byte) []*wasmtools.Tool {
	t.Helper()
	engine := sandboxtest.Engine(t, sandbox.Config{CacheDir: sandboxtest.CodeDir()})
	m, err := toolfile.Load(engine, module, toolfile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if err := m.Compile(t.Context()); err != nil { // so that compiling does not use up the time limit of a call
		t.Fatal(err)
	}
	if err := m.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Build(nil, nil); err != nil {
		t.Fatal(err)
	}
	return m.Tools()
}

// call calls a tool with arguments, as a server does.
func call(t *testing.T, tool *wasmtools.Tool, arguments string) (string, error) {
	t.Helper()
	result, err := invoker.New(invoker.Options{}).Call(t.Context(), invoker.RouteTo(tool),
		&wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Self()})
	return string(result), err
}
