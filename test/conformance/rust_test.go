package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// rustBuilder returns the function that builds the Rust guest for a target.
func rustBuilder(target string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		if testkit.Race(t) || testing.Short() {
			t.Skip("builds WebAssembly modules: not with -race or -short")
		}
		if _, err := exec.LookPath("cargo"); err != nil {
			t.Skip("cargo is not installed, so the Rust guest was not tried: make setup-rust")
		}
		cmd := exec.CommandContext(t.Context(), "./cargo.sh", "build", "--release", "--locked", "--package", "conformance", "--target", target)
		cmd.Dir = "../../sdk/rust"
		if out, err := cmd.CombinedOutput(); err != nil {
			if strings.Contains(string(out), "target may not be installed") || strings.Contains(string(out), "unable to find library -lc") {
				t.Skipf("the Rust target %s is not installed, so its guest was not tried: make setup-rust", target)
			}
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		module, err := os.ReadFile(filepath.Join("../../build/rust", target, "release/conformance.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		return module
	}
}
