package sandbox_test

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestMain fails if goroutines outlive the tests: every engine must have been closed by then. With the argument "compile", this program is a process
// that compiles; with "compile-never", it uses up its processor time instead.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == "compile":
		if err := compile.Serve(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Args[1] == "compile-killed": // dies in as many starts as the second argument has letters; the third names the file that counts them
		starts, _ := os.ReadFile(os.Args[3])
		if err := os.WriteFile(os.Args[3], append(starts, '.'), 0o600); err != nil {
			panic(err)
		}
		if len(starts) >= len(os.Args[2]) {
			if err := compile.Serve(os.Args[4:], os.Stdin, os.Stdout); err != nil {
				panic(err)
			}
			os.Exit(0)
		}
		var asked struct{ Number uint64 }
		_ = gob.NewEncoder(os.Stdout).Encode(asked)
		_ = gob.NewDecoder(os.Stdin).Decode(&asked)
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	case os.Args[1] == "compile-never":
		var asked struct{ Number uint64 }
		_ = gob.NewEncoder(os.Stdout).Encode(asked)
		_ = gob.NewDecoder(os.Stdin).Decode(&asked)
		os.Exit(17)
	}
	testkit.Main(m, "wazero", "internal/runtime/sandbox.", "internal/runtime/compile.")
}

// wantError checks how a call ended.
func wantError(t testing.TB, err error, outcome sandbox.Outcome, message string) *sandbox.Error {
	t.Helper()
	var e *sandbox.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error with outcome %s", err, outcome)
	}
	if e.Outcome != outcome {
		t.Errorf("got outcome %s (%v), want %s", e.Outcome, e, outcome)
	}
	if !strings.Contains(e.Message, message) {
		t.Errorf("got message %q, want one with %q", e.Message, message)
	}
	return e
}
