package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A guest is an SDK's build of the kit's tools.
type guest struct {
	name  string
	lacks []string // what its platform has not
	build func(*testing.T) []byte
}

func guests() []guest {
	return []guest{
		{"go", nil, builder("../../sdk/go", "go", "build", "-trimpath", "-ldflags=-s", "-buildmode=c-shared", "-o", "@", "./internal/conformance")},
		{"tinygo-wasip1", nil, tinygo("wasip1")},
		{"tinygo-wasm-unknown", []string{"clock", "standard error"}, tinygo("wasm-unknown")},
		{"rust-unknown", nil, rustBuilder("wasm32-unknown-unknown")},
		{"rust-wasip1", nil, rustBuilder("wasm32-wasip1")},
	}
}

// tinygo builds the guest in Go with the flags of toolsrv build.
func tinygo(target string) func(*testing.T) []byte {
	return builder("../../sdk/go", "tinygo", "build", "-target="+target, "-gc=leaking", "-opt=2", "-no-debug", "-scheduler=none", "-buildmode=c-shared", "-o", "@", "./internal/conformance")
}

// builder returns the function that builds a guest with a command, whose argument @ is the file to write.
func builder(dir, program string, args ...string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		if raced || testing.Short() {
			t.Skip("builds WebAssembly modules: not with -race or -short")
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed, so its guest was not tried", program)
		}
		file := filepath.Join(t.TempDir(), "guest.wasm")
		for i, a := range args {
			if a == "@" {
				args[i] = file
			}
		}
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if program == "go" {
			cmd.Env = append(cmd.Env, "GOOS=wasip1", "GOARCH=wasm")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return module
	}
}
