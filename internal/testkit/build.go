package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// NeedBuild skips a test that builds modules if one of the programs is missing, or such tests are switched off.
func NeedBuild(t testing.TB, programs ...string) {
	t.Helper()
	if Race(t) || testing.Short() {
		t.Skip("builds WebAssembly modules: not with -race or -short")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s to build with: %v", program, err)
		}
	}
}

// Guest builds a module with a command that runs in dir. The command's argument @ is replaced by the file to write. The go command builds for wasip1.
// The test is skipped where NeedBuild skips it.
func Guest(t testing.TB, dir, program string, args ...string) []byte {
	t.Helper()
	NeedBuild(t, program)
	file := filepath.Join(t.TempDir(), "guest.wasm")
	args = slices.Clone(args)
	for i, a := range args {
		if a == "@" {
			args[i] = file
		}
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOWORK=off")
	if program == "go" {
		cmd.Env = append(cmd.Env, "GOOS=wasip1", "GOARCH=wasm")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return Read(t, file)
}
