// Package sandboxtest has helpers for tests that run guests.
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

// Values of sandbox.Config.DescribeFuel, for a module that would run forever while it is described: with the first it is stopped almost at once, with
// the second it runs until somebody stops it. Interpreters need more than the first.
const (
	Briefly = 10_000_000
	Endless = math.MaxInt64
)

// Engine returns an engine that is closed when the test ends. If c has no imports, guests get those that a server offers.
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

// CodeDir is a sandbox.Config.CacheDir for tests that need compiled interpreters, but don't test compiling: since that takes seconds, they share the
// code with other processes of the same run. It is "" if the Makefile has not set it.
func CodeDir() string { return os.Getenv("TOOLSRV_TEST_CODE") }

// ShareCode lets the processes that a test starts share this code, too, if there is a CodeDir. cache is the user's cache directory of these
// processes.
func ShareCode(cache string) error {
	dir := CodeDir()
	if dir == "" {
		return nil
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(cache, 0o700), os.Symlink(dir, filepath.Join(cache, "toolsrv")))
}

// Load returns a program that is closed when the test ends. Its module may import what a server offers.
func Load(t testing.TB, e *sandbox.Engine, module []byte) *sandbox.Program {
	t.Helper()
	p, err := e.Load(module, e.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// WithManifest returns a module with its manifest replaced.
func WithManifest[T string | []byte](t testing.TB, module []byte, manifest T) []byte {
	t.Helper()
	module, err := wasmbin.SetCustom(module, "toolsrv.manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return module
}
