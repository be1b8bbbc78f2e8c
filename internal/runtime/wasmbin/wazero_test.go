package wasmbin_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// What Parse accepts is passed to wazero, so both must agree on what a module is. Parse must not refuse anything that wazero compiles, except what it
// says it does not support.

// newWazero returns a runtime that decodes and validates like any other, but makes no machine code.
func newWazero(t testing.TB) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// compiles reports whether wazero accepts a module.
func compiles(r wazero.Runtime, module []byte) error {
	compiled, err := r.CompileModule(context.Background(), module)
	if err != nil {
		return err
	}
	return compiled.Close(context.Background())
}

func TestParseAsWazeroDoes(t *testing.T) {
	t.Parallel()
	r := newWazero(t)
	for name, module := range accepted {
		t.Run(name, func(t *testing.T) {
			if err := compiles(r, module); err != nil {
				t.Errorf("wazero refuses it: %v", err)
			}
			if _, err := wasmbin.Parse(module); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each byte of a module that uses every section is damaged in several ways.
func TestParseDamagedAsWazeroDoes(t *testing.T) {
	t.Parallel()
	r := newWazero(t)
	for at, original := range whole {
		for _, damage := range []byte{original ^ 1, original ^ 0x80, original + 1, original + 2, original - 1, 0, 0x7f} {
			damaged := slices.Clone(whole)
			damaged[at] = damage
			_, err := wasmbin.Parse(damaged)
			if err != nil && !errors.Is(err, wasmbin.ErrUnsupported) && compiles(r, damaged) == nil {
				t.Errorf("byte %#x set to %#x: wazero compiles it, Parse says %v", at, damage, err)
			}
		}
	}
}

// wazero's own test modules, which include some of the specification's, are the largest collection at hand.
func TestParseWazerosModules(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero")
	directory, err := list.Output()
	root := strings.TrimSpace(string(directory))
	if err != nil || root == "" {
		t.Skipf("wazero's source is not at hand: %v", err)
	}
	r := newWazero(t)
	modules := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".wasm" {
			return err
		}
		module, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		modules++
		_, parsed := wasmbin.Parse(module)
		if parsed == nil || compiles(r, module) != nil {
			return nil
		}
		// wazero accepts what this proposal adds to the binary format even if it is switched off.
		proposal := strings.Contains(path, "typed-function-references")
		if !proposal || !errors.Is(parsed, wasmbin.ErrUnsupported) {
			t.Errorf("%s: wazero compiles it, Parse says %v", path, parsed)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if modules < 1000 {
		t.Errorf("only %d modules were there", modules)
	}
}
