package foundry

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// TestEntryIsWhole loads modules that were compiled before. All that the host knows about a module comes back from the cache, and equals what Rewrite
// makes from the module with all its custom sections.
func TestEntryIsWhole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "testdata", "wat", "*", "*.wasm"))
	if err != nil || len(files) < 20 {
		t.Fatalf("got %d modules, %v", len(files), err)
	}
	f := open(t)
	for _, file := range files {
		if strings.Contains(file, "refused") {
			continue
		}
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		module, err = wasmbin.SetCustom(module, "other", make([]byte, 1000))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want, err := rewrite(module)
		if err != nil {
			continue // a fixture that is meant to be refused
		}
		m, err := wasmbin.Parse(module)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		bare := m.Bare()
		c := codeOf(t, f, bare)
		if err := c.Prepare(t.Context()); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		n, err := f.furnace.load(c.sum)
		if err != nil || n == nil {
			t.Fatalf("%s: got %v, %v from the cache", file, n, err)
		}
		got := n.Rewritten
		if len(got.Data) == 0 && len(want.Data) == 0 {
			got.Data, want.Data = nil, nil
		}
		if len(got.Globals) == 0 && len(want.Globals) == 0 {
			got.Globals, want.Globals = nil, nil
		}
		again, err := rewrite(bare)
		if err != nil || !bytes.Equal(again.Module, want.Module) {
			t.Errorf("%s: without its custom sections it is rewritten to something else, %v", file, err)
		}
		want.Module = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v from the cache, want %+v", file, got, want)
		}
		if err := n.Code.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func rewrite(module []byte) (*instrument.Rewritten, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	return instrument.Rewrite(m)
}
