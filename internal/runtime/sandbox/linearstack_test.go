package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestLinearStack tells a guest that used up the stack in its memory from one that broke for another reason.
// Proves: Limits hold, one by one and in sum
func TestLinearStack(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/linear_stack"))
	for i, want := range []struct {
		name    string
		outcome sandbox.Outcome
		message string
	}{
		{"recursion", sandbox.ToolStack, "stack in its memory"},
		{"an address passed to the host", sandbox.ToolStack, "stack in its memory"},
		{"below the pointer", sandbox.ToolStack, "stack in its memory"},
		{"out of bounds", sandbox.ToolTrapped, "out of bounds memory access"},
		{"unreachable", sandbox.ToolTrapped, "unreachable"},
		{"unreachable on another stack", sandbox.ToolTrapped, "unreachable"},
		{"a wild address passed to the host", sandbox.ToolTrapped, "it gave input_read a place outside its memory"},
		{"endless", sandbox.ToolTimeout, ""},
	} {
		t.Run(want.name, func(t *testing.T) {
			t.Parallel()
			_, err := p.Tool("x", int32(i), limits.Limits{Timeout: 300 * time.Millisecond, Stack: 32 << 20}).Call(t.Context(), sandbox.CallSpec{})
			wantError(t, err, want.outcome, want.message)
		})
	}
}

// TestLinearStackOfCompilers does the same with compilers' output, with and without names, and with the stack above the data.
func TestLinearStackOfCompilers(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	rust := func(t *testing.T, name string, flags ...string) []byte {
		const target = "wasm32-unknown-unknown"
		library, err := exec.Command("rustc", "--print", "target-libdir", "--target", target).Output()
		if err == nil {
			_, err = os.Stat(strings.TrimSpace(string(library)))
		}
		if err != nil {
			t.Skip("no rustc with the target "+target+" (make setup-rust): ", err)
		}
		return built.build(t, name, append([]string{"rustc", "--edition=2024", "--crate-type=cdylib", "--target=" + target, "-Cpanic=abort",
			"testdata/rust/stack.rs"}, flags...)...)
	}
	c := func(t *testing.T, name string, flags ...string) []byte {
		zig := filepath.Join("..", "..", "..", ".venv", "zig", "bin", "python")
		if _, err := os.Stat(zig); err != nil {
			t.Skip("no compiler of C (make .venv/zig): ", err)
		}
		return built.build(t, name, append([]string{zig, "-m", "ziglang", "cc", "--target=wasm32-freestanding", "-nostdlib", "-Wl,--no-entry",
			"testdata/c/stack.c"}, flags...)...)
	}
	for _, test := range []struct {
		name    string
		compile func(t *testing.T, name string, flags ...string) []byte
		flags   []string
	}{
		{"rust", rust, []string{"-Copt-level=s", "-Cstrip=symbols"}},
		{"rust-names", rust, []string{"-Copt-level=s"}},
		{"rust-debug", rust, []string{"-Copt-level=0", "-Cstrip=symbols"}},
		{"rust-above-data", rust, []string{"-Copt-level=s", "-Cstrip=symbols", "-Clink-arg=--no-stack-first"}},
		{"c", c, []string{"-Os", "-s"}},
		{"c-debug", c, []string{"-O0", "-fno-sanitize=undefined"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), test.compile(t, "stack-"+test.name, test.flags...))
			call := func(index int32) ([]byte, error) {
				return p.Tool("x", index, limits.Limits{Timeout: time.Minute, Stack: 32 << 20}).Call(t.Context(), sandbox.CallSpec{})
			}
			for i, want := range []sandbox.Outcome{sandbox.ToolStack, sandbox.ToolStack, sandbox.ToolTrapped, sandbox.ToolTrapped} {
				_, err := call(int32(i))
				wantError(t, err, want, "")
			}
			if out, err := call(4); err != nil || string(out) != "1" {
				t.Errorf("a recursion that ends: got %s, %v, want 1", out, err)
			}
		})
	}
}
