package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// MaxModule is the largest module in bytes.
const MaxModule = 64 << 20

// The exports of a guest.
const (
	exportMemory     = "memory"
	exportCall       = "toolsrv_call"
	exportStart      = "_start"
	exportInitialize = "_initialize"
	exportWarm       = "toolsrv_warm"
	exportDescribe   = "toolsrv_describe"
)

// What a module's tables may hold together at most when it starts and each of them later, in elements of 8 bytes,
// and how many there may be. The memory limit does not count tables, so they are bounded for all modules alike.
const (
	maxTableElements = 1 << 20
	maxTables        = 8
)

// A shape is what the host needs to know of a checked module.
type shape struct {
	command    bool // a plain WASI program
	initialize bool
	warm       bool
	describe   bool
	memory     int64 // bytes at the start
}

// An offer is the set of functions that guests may import.
type offer map[[2]string]*hostFunc

// check reports what keeps a module from being a tool; errors say what to do.
func check(m *wasmbin.Module, offered offer) (shape, error) {
	if err := checkImports(m, offered); err != nil {
		return shape{}, err
	}
	if err := checkTables(m); err != nil {
		return shape{}, err
	}
	s, err := checkExports(m)
	if err != nil {
		return shape{}, err
	}
	s.memory, err = checkMemory(m)
	return s, err
}

// maxImports is the most imports of a module: an instance pays for each, and the same one may be imported often.
const maxImports = 1000

func checkImports(m *wasmbin.Module, offered offer) error {
	imports := m.Imports()
	if len(imports) > maxImports {
		return fmt.Errorf("the module has %d imports, the limit is %d", len(imports), maxImports)
	}
	for _, i := range imports {
		name := fmt.Sprintf("%.80q.%.80q", i.Module, i.Name)
		if i.Kind != wasmbin.KindFunction {
			if i.Kind == wasmbin.KindMemory {
				return fmt.Errorf("the memory is imported, from %s: a tool's memory must be its own; link without --import-memory", name)
			}
			return fmt.Errorf("the %s %s is imported: only functions are offered", i.Kind, name)
		}
		f, ok := offered[[2]string{i.Module, i.Name}]
		if !ok {
			return fmt.Errorf("the import %s is not offered: %s", name, offered.describe(i.Module))
		}
		if want := f.funcType(); i.Type.String() != want.String() {
			return fmt.Errorf("the import %s is declared as %s, but offered as %s: correct the declaration", name, i.Type, want)
		}
	}
	return nil
}

// describe tells what is offered to somebody who looked in module.
func (o offer) describe(module string) string {
	var names []string
	for key := range o {
		if key[0] == module {
			names = append(names, key[1])
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("the modules %s and %s are; build for one of them (in C and Rust: target wasm32-wasip1, in Go: GOOS=wasip1)", abiModule, wasiModule)
	}
	slices.Sort(names)
	return fmt.Sprintf("%s has %s", module, strings.Join(names, ", "))
}

func checkTables(m *wasmbin.Module) error {
	tables := m.Tables()
	if len(tables) > maxTables {
		return fmt.Errorf("the module has %d tables, the limit is %d", len(tables), maxTables)
	}
	total := uint64(0)
	for _, t := range tables {
		total += t.Min
	}
	if total > maxTableElements {
		return fmt.Errorf("the module's tables have %d elements, the limit is %d", total, maxTableElements)
	}
	return nil
}

func checkExports(m *wasmbin.Module) (shape, error) {
	nothing := wasmbin.FuncType{}
	number := wasmbin.FuncType{Results: []wasmbin.ValueType{wasmbin.I32}}
	call := wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I32}}
	var errs []error
	has := func(name string, want wasmbin.FuncType) bool {
		e, ok := m.Export(name)
		switch {
		case !ok:
		case e.Kind != wasmbin.KindFunction:
			errs = append(errs, fmt.Errorf("the export %s is a %s: it must be a function %s", name, e.Kind, want))
		case e.Type.String() != want.String():
			errs = append(errs, fmt.Errorf("the export %s is declared as %s: it must be %s", name, e.Type, want))
		}
		return ok
	}
	s := shape{initialize: has(exportInitialize, nothing), warm: has(exportWarm, nothing), describe: has(exportDescribe, number)}
	if !has(exportCall, call) {
		s.command = true
		if !has(exportStart, nothing) {
			errs = append(errs, fmt.Errorf("there is neither an export %s %s nor %s %s: export the first, as the SDKs do, or build a plain WASI program",
				exportCall, call, exportStart, nothing))
		}
	}
	return s, errors.Join(errs...)
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

// funcType returns the function's type as modules declare it.
func (f *hostFunc) funcType() wasmbin.FuncType {
	types := func(letters string) []wasmbin.ValueType {
		list := make([]wasmbin.ValueType, len(letters))
		for i, letter := range letters {
			list[i] = wasmbin.I32
			if letter == 'I' {
				list[i] = wasmbin.I64
			}
		}
		return list
	}
	return wasmbin.FuncType{Params: types(f.params), Results: types(f.results)}
}
