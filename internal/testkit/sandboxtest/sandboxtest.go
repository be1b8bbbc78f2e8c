// Package sandboxtest has what tests share that run guests.
package sandboxtest

import (
	"context"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
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

// Load returns a program that is closed with the test. Its module may import what a server offers.
func Load(t testing.TB, e *sandbox.Engine, module []byte) *sandbox.Program {
	t.Helper()
	p, err := e.Load(module, toolfile.Modules()...)
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
