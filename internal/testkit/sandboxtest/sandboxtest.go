// Package sandboxtest has what tests share that run guests.
package sandboxtest

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// What a module that runs without end to be described may take (sandbox.Config.DescribeFuel): it is given up at once, or runs until somebody
// stops it. Interpreters need more than the first.
const (
	Briefly = 10_000_000
	Endless = math.MaxInt64
)

// Engine returns an engine that is closed with the test. Where c has no imports, guests get those that a server offers.
func Engine(t testing.TB, c sandbox.Config) *sandbox.Engine {
	t.Helper()
	if c.Imports == nil {
		c.Imports = toolfile.Imports()
	}
	e, err := sandbox.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

// CodeDir is a sandbox.Config.CacheDir for tests that compile interpreters and such, which takes seconds each time, and test
// something else: they share the code with the other processes of their run. It is "" where the Makefile has not said where.
func CodeDir() string { return os.Getenv("TOOLSRV_TEST_CODE") }

// ShareCode has the processes that a test starts with cache as their user's cache directory share code as well, if there is a CodeDir.
func ShareCode(cache string) error {
	dir := CodeDir()
	if dir == "" {
		return nil
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(cache, 0o700), os.Symlink(dir, filepath.Join(cache, "toolsrv")))
}

// Load returns a program that is closed with the test. Its module may import what a server offers.
func Load(t testing.TB, e *sandbox.Engine, module []byte) *sandbox.Program {
	t.Helper()
	p, err := e.Load(module, e.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// WithManifest returns a module with a manifest in place of its own.
func WithManifest[T string | []byte](t testing.TB, module []byte, manifest T) []byte {
	t.Helper()
	module, err := wasmbin.SetCustom(module, "toolsrv.manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return module
}
