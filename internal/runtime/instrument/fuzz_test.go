package instrument_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// addRewriteSeeds adds the modules of other tests, and some of those in the specification's test suite.
func addRewriteSeeds(f *testing.F) {
	for _, m := range wasmtest.Accepted() {
		f.Add(m)
	}
	for _, m := range endless() {
		if len(m) < 1<<16 || !strings.Contains(string(m), "xxxxx") {
			f.Add(m)
		}
	}
	directory, err := exec.CommandContext(f.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(directory)), "internal/integration_test/spectest/v2/testdata/*.[0-7].wasm"))
	for i := 0; i < len(files); i += 4 {
		if m, err := os.ReadFile(files[i]); err == nil && len(m) < 8<<10 {
			f.Add(m)
		}
	}
}

// Any bytes result in an error, or in a module that can be stopped, and that is valid exactly if the original is.
// Proves: A tool stops
func FuzzRewrite(f *testing.F) {
	addRewriteSeeds(f)
	h := newHost(f, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(256))
	f.Fuzz(func(t *testing.T, module []byte) {
		before := slices.Clone(module)
		r, err := rewrite(module)
		if !slices.Equal(before, module) {
			t.Fatal("the module was changed in place")
		}
		if err != nil {
			return
		}
		if len(r.Module) > 16*len(module)+4<<10 {
			t.Errorf("%d bytes became %d", len(module), len(r.Module))
		}
		want, got := compiles(h, module), compiles(h, r.Module)
		if want != nil && strings.Contains(want.Error(), "custom section") {
			return // names that can't be read are dropped; they don't make a module invalid
		}
		if (want == nil) != (got == nil) {
			t.Fatalf("the original compiles: %v, the rewritten: %v", want, got)
		}
		if got != nil {
			return
		}
		again, err := rewrite(module)
		if err != nil || !slices.Equal(again.Module, r.Module) {
			t.Fatalf("rewriting it a second time gives a different module: %v", err)
		}
		if _, err := rewrite(r.Module); err == nil {
			t.Error("a module that was rewritten already is accepted")
		}
		stop(t, h, module, r)
	})
}

// stop calls all exports with zeros. Each call must end within a few slices, by itself or because it is stopped. If it ends by itself, it must do the
// same as in the original.
func stop(t *testing.T, h *host, module []byte, r *instrument.Rewritten) {
	ctx := context.Background()
	h.slice, h.refills, h.most = 1000, 0, 20
	defer func() { h.most = 0 }()
	begun := time.Now()
	m, err := h.instantiate(ctx, "", r, 64<<10)
	if m == nil || err != nil {
		return
	}
	defer m.Close(ctx)
	plain, err := h.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatalf("the original does not start: %v", err)
	}
	defer plain.Close(ctx)
	same := true // only as long as nothing was stopped on the way
	for _, name := range slices.Sorted(maps.Keys(plain.ExportedFunctionDefinitions())) {
		h.refills = 0
		m.ExportedGlobal(instrument.StackGlobal).(api.MutableGlobal).Set(64 << 10)
		f := m.ExportedFunction(name)
		args := make([]uint64, slots(f.Definition().ParamTypes()))
		got, err := f.Call(ctx, args...)
		if errors.Is(err, errStopped) || errors.Is(err, errOverflow) {
			same = false
		}
		references := slices.ContainsFunc(f.Definition().ResultTypes(), func(t api.ValueType) bool { return byte(t) == byte(wasmbin.FuncRef) })
		if !same || references {
			continue
		}
		want, wantErr := plain.ExportedFunction(name).Call(ctx, args...)
		if !slices.Equal(got, want) || firstLine(err) != firstLine(wantErr) {
			t.Errorf("%q: got %v, %v, want %v, %v", name, got, err, want, wantErr)
		}
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("all exports together took %v", took)
	}
}

// compiles reports whether wazero accepts a module.
func compiles(r wazero.Runtime, module []byte) error {
	compiled, err := r.CompileModule(context.Background(), module)
	if err != nil {
		return err
	}
	return compiled.Close(context.Background())
}

// firstLine returns the part of an error's text before its stack trace.
func firstLine(err error) string {
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// slots returns how many values a call needs for the parameters.
func slots(types []api.ValueType) int {
	n := len(types)
	for _, t := range types {
		if byte(t) == byte(wasmbin.V128) {
			n++
		}
	}
	return n
}
