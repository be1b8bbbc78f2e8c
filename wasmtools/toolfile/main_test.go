package toolfile_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// fixture returns a module below testdata.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	module, err := os.ReadFile(filepath.Join("..", "..", "testdata", filepath.FromSlash(name)+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// with returns a module with a manifest.
func with(t testing.TB, module []byte, manifest string) []byte {
	t.Helper()
	module, err := wasmbin.SetCustom(module, wasmtools.ManifestSection, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// manifest returns a manifest whose tools have these names and take any object.
func manifest(t testing.TB, namespace string, names ...string) string {
	t.Helper()
	m := wasmtools.Manifest{ABI: wasmtools.ABI, Namespace: namespace}
	for _, name := range names {
		m.Tools = append(m.Tools, wasmtools.ManifestTool{Name: name, Description: "Does " + name + ".", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newEngine(t testing.TB) *sandbox.Engine {
	t.Helper()
	e, err := sandbox.New(t.Context(), sandbox.Config{Imports: abi1.Sets()})
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
