package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/convention"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// MaxModule is the largest module in bytes.
const MaxModule = 64 << 20

// Exports of a guest that belong to no calling convention.
const (
	exportMemory = "memory"
	exportBundle = "toolsrv_bundle" // export of an interpreter: the address at which the host writes the address of a module's bundle
)

// maxTables is how many tables a module may have. The rewriter bounds their elements.
const maxTables = 8

// A shape is what the host needs to know about a checked module.
type shape struct {
	convention *convention.Convention
	initialize bool
	warm       bool
	describe   bool
	memory     int64 // bytes of memory that it declares
}

// check returns what keeps a module from being a tool, apart from its imports. Errors say what to do.
func check(m *wasmbin.Module) (shape, error) {
	if n := len(m.Tables()); n > maxTables {
		return shape{}, fmt.Errorf("the module has %d tables; the limit is %d", n, maxTables)
	}
	s, err := checkExports(m)
	if err != nil {
		return shape{}, err
	}
	s.memory, err = checkMemory(m)
	return s, err
}

func checkExports(m *wasmbin.Module) (shape, error) {
	var errs []error
	has := func(want convention.Export) bool {
		e, ok := m.Export(want.Name)
		switch {
		case !ok:
		case e.Kind != wasmbin.KindFunction:
			errs = append(errs, fmt.Errorf("the export %s is a %s: it must be a function %s", want.Name, e.Kind, want.Type))
		case e.Type.String() != want.Type.String():
			errs = append(errs, fmt.Errorf("the export %s is declared as %s: it must be %s", want.Name, e.Type, want.Type))
		}
		return ok
	}
	var known []string
	for _, c := range convention.All() {
		if has(c.Call) {
			s := shape{convention: c, initialize: has(c.Initialize), warm: has(c.Warm), describe: has(c.Describe)}
			has(c.Where)
			return s, errors.Join(errs...)
		}
		known = append(known, fmt.Sprintf("%s %s", c.Call.Name, c.Call.Type))
	}
	return shape{}, fmt.Errorf("there is neither an export %s: export the first, as the SDKs do, or build a plain WASI program", strings.Join(known, " nor "))
}

func checkMemory(m *wasmbin.Module) (int64, error) {
	memories := m.Memories()
	e, ok := m.Export(exportMemory)
	switch {
	case len(memories) == 0:
		return 0, fmt.Errorf("the module has no memory: declare one and export it as %q", exportMemory)
	case len(memories) > 1:
		return 0, fmt.Errorf("the module has %d memories: build it with one, without multi-memory", len(memories))
	case memories[0].Shared:
		return 0, fmt.Errorf("the memory is shared: build without threads")
	case memories[0].Is64:
		return 0, fmt.Errorf("the memory has 64-bit addresses: build for wasm32")
	case !ok:
		return 0, fmt.Errorf("the memory is not exported: export it as %q", exportMemory)
	case e.Kind != wasmbin.KindMemory:
		return 0, fmt.Errorf("the export %q is a %s: it must be the memory", exportMemory, e.Kind)
	}
	return int64(memories[0].Min) * pageSize, nil
}
