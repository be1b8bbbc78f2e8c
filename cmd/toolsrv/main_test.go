package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// These tests start the real binary on a real directory and talk to it like clients and operators. None of them waits for a fixed time: they read the
// log, or ask the service, until the expected event has happened.

// home is the home directory of all services that the tests start; they share its cache of compiled code.
// binary is the program under test. Both are set once, before any test runs.
var home, binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if home, err = os.MkdirTemp("", "toolsrv-e2e-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(home)
		if err := sandboxtest.ShareCode(filepath.Join(home, "cache")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binary = filepath.Join(home, "toolsrv")
		if runtime.GOOS == "windows" {
			binary += ".exe"
		}
		build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-o", binary) // the flags of make build: paths and unused methods take memory
		if flags := testkit.RaceFlags(); flags != nil {
			build.Args = append(append(build.Args, flags...), "-tags=paranoid,grpcnotrace") // the flags of make race, so that no package is compiled again
		} else {
			build.Env = append(os.Environ(), "CGO_ENABLED=0") // as well
		}
		build.Args = append(build.Args, ".")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}
