package sandbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
)

// TestMain fails when goroutines outlive the tests: every engine has been closed by then.
func TestMain(m *testing.M) { testkit.Main(m, "wazero", "runtime/sandbox.") }

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
