package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
)

// TestMain fails when goroutines outlive the tests: every engine has been closed by then.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines outlive their engines:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of goroutines of the sandbox and of wazero, once they do not get fewer any more.
func leaked() string {
	var found []string
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		found = found[:0]
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if (strings.Contains(stack, "wazero") || strings.Contains(stack, "runtime/sandbox.")) && !strings.Contains(stack, "TestMain") {
				found = append(found, stack)
			}
		}
		if len(found) == 0 {
			return ""
		}
	}
	return strings.Join(found, "\n\n")
}

// newEngine returns an engine that is closed with the test.
func newEngine(t testing.TB, c sandbox.Config) *sandbox.Engine {
	t.Helper()
	if c.Imports == nil {
		c.Imports = abi1.Sets()
	}
	e, err := sandbox.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// fixture returns a module of testdata/wat.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	module, err := os.ReadFile(filepath.Join("..", "..", "testdata", "wat", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func load(t testing.TB, e *sandbox.Engine, module []byte) *sandbox.Program {
	t.Helper()
	p, err := e.Load(module, abi1.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
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

// A record keeps what is logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
