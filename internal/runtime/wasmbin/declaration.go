package wasmbin

import (
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A Kind is what an import or export is.
type Kind byte

// The kinds, numbered as in the binary format.
const (
	KindFunction Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// String returns the kind in a word.
func (k Kind) String() string {
	switch k {
	case KindFunction:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// A ValueType is the type of a parameter, a result, a local or a global.
type ValueType byte

// The value types, numbered as in the binary format.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String returns the type as the text format writes it.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type %#x", byte(t))
}

// A FuncType is the type of a function. Its slices are shared and must not be changed.
type FuncType struct{ Params, Results []ValueType }

// String returns the type in the form "(i32, i32) -> (i64)".
func (t FuncType) String() string {
	list := func(types []ValueType) string {
		words := make([]string, len(types))
		for i, v := range types {
			words[i] = v.String()
		}
		return "(" + strings.Join(words, ", ") + ")"
	}
	return list(t.Params) + " -> " + list(t.Results)
}

// A GlobalType is the type of a global.
type GlobalType struct {
	Type    ValueType
	Mutable bool
}

// String returns the type as the text format writes it.
func (t GlobalType) String() string {
	if t.Mutable {
		return "(mut " + t.Type.String() + ")"
	}
	return t.Type.String()
}

// An Import is what a module needs from outside.
type Import struct {
	Module, Name string
	Kind         Kind
	// Type is the function's type if Kind is KindFunction. Global is the global's type if Kind is KindGlobal.
	Type   FuncType
	Global GlobalType
}

// An Export is what a module offers.
type Export struct {
	Name string
	Kind Kind
	// Type is the function's type if Kind is KindFunction. Global is the global's type if Kind is KindGlobal.
	Type   FuncType
	Global GlobalType
}

// A Memory is a linear memory that a module declares or imports.
type Memory struct {
	Imported bool
	// Min and Max are in pages of 64 KiB. Max is 0 unless HasMax.
	Min, Max uint64
	HasMax   bool
	Shared   bool
	Is64     bool
}

// A Table is a table that a module declares or imports.
type Table struct {
	Imported bool
	// Min and Max are numbers of elements. Max is 0 unless HasMax.
	Min, Max uint64
	HasMax   bool
}

func (m *Module) readTypes(r *Reader) {
	n := r.count(maxTypes, "types")
	m.types = make([]FuncType, 0, min(n, r.Left()/3))        // a type takes at least three bytes
	values := make([]ValueType, 0, min(r.Left(), maxValues)) // the values of all types; each takes a byte, so the slice never grows
	list := func(limit int, what string) []ValueType {
		start, at := len(values), r.Pos
		n := r.count(limit, what)
		if start+n > maxValues {
			r.Fail(at, "more than %d parameters and results in all types are %w", maxValues, ErrUnsupported)
			return nil
		}
		for range n {
			values = append(values, r.ValueType(what))
			if r.Err != nil {
				return nil
			}
		}
		return values[start:len(values):len(values)]
	}
	for range n {
		if form := r.Byte("a type"); form != 0x60 {
			r.Fail(r.Pos-1, "type form %#x is %w: only function types (0x60) are", form, ErrUnsupported)
		}
		m.types = append(m.types, FuncType{Params: list(maxParams, "parameters"), Results: list(maxResults, "results")})
		if r.Err != nil {
			return
		}
	}
}

func (m *Module) readImports(r *Reader) {
	n := r.count(maxImports, "imports")
	m.imports = make([]Import, 0, min(n, r.Left()/4))
	for range n {
		start := r.Pos
		i := Import{Module: string(r.Name("an import's module")), Name: string(r.Name("an import's name"))}
		i.Kind = Kind(r.Byte("an import's kind"))
		switch i.Kind {
		case KindFunction:
			index := r.U32("a type's index")
			i.Type = m.typeAt(r, start, index)
			m.functions = append(m.functions, index)
			m.imported++
		case KindTable:
			t := r.Table()
			t.Imported = true
			m.tables = append(m.tables, t)
		case KindMemory:
			memory := r.memory()
			memory.Imported = true
			m.memories = append(m.memories, memory)
		case KindGlobal:
			i.Global = r.globalType()
			m.globals = append(m.globals, i.Global)
		default:
			r.Fail(start, "import %q from %q has %s, which is %w", text.Short(i.Name), text.Short(i.Module), i.Kind, ErrUnsupported)
		}
		if r.Err != nil {
			return
		}
		m.imports = append(m.imports, i)
	}
}

// typeAt returns the function type with that index.
func (m *Module) typeAt(r *Reader, at int, index uint32) FuncType {
	if int64(index) >= int64(len(m.types)) {
		r.Fail(at, "type %d is not declared: there are %d", index, len(m.types))
		return FuncType{}
	}
	return m.types[index]
}

func (m *Module) readFunctions(r *Reader) {
	n := r.count(maxFunctions, "functions")
	all := make([]uint32, len(m.functions), len(m.functions)+n)
	copy(all, m.functions)
	for range n {
		start := r.Pos
		index := r.U32("a type's index")
		m.typeAt(r, start, index)
		if r.Err != nil {
			return
		}
		all = append(all, index)
	}
	m.functions = all
}

func (m *Module) readTables(r *Reader) {
	for range r.count(maxTables, "tables") {
		start := r.Pos
		initialised := r.Left() > 0 && r.Data[r.Pos] == 0x40
		if initialised {
			r.Pos++
			if b := r.Byte("a table"); b != 0 {
				r.Fail(start, "table form 0x40 %#x is unknown", b)
			}
		}
		m.tables = append(m.tables, r.Table())
		if initialised {
			r.constant()
		}
		if r.Err != nil {
			return
		}
	}
}

func (m *Module) readMemories(r *Reader) {
	for range r.count(maxMemories, "memories") {
		m.memories = append(m.memories, r.memory())
		if r.Err != nil {
			return
		}
	}
}

func (m *Module) readGlobals(r *Reader) {
	for range r.count(maxGlobals, "globals") {
		m.globals = append(m.globals, r.globalType())
		r.constant()
		if r.Err != nil {
			return
		}
	}
}

func (m *Module) readExports(r *Reader) {
	n := r.count(maxExports, "exports")
	m.exports = make([]Export, 0, min(n, r.Left()/3))
	seen := map[string]struct{}{}
	for range n {
		start := r.Pos
		e := Export{Name: string(r.Name("an export's name")), Kind: Kind(r.Byte("an export's kind"))}
		index := int64(r.U32("an export's index"))
		if _, twice := seen[e.Name]; twice {
			r.Fail(start, "two exports have the name %q", text.Short(e.Name))
		}
		seen[e.Name] = struct{}{}
		declared := 0
		switch e.Kind {
		case KindFunction:
			declared = len(m.functions)
			if index < int64(declared) {
				e.Type = m.types[m.functions[index]]
			}
		case KindTable:
			declared = len(m.tables)
		case KindMemory:
			declared = len(m.memories)
		case KindGlobal:
			declared = len(m.globals)
			if index < int64(declared) {
				e.Global = m.globals[index]
			}
		default:
			r.Fail(start, "export %q has %s, which is %w", text.Short(e.Name), e.Kind, ErrUnsupported)
		}
		if index >= int64(declared) {
			r.Fail(start, "export %q is %s %d, which is not declared: there are %d", text.Short(e.Name), e.Kind, index, declared)
		}
		if r.Err != nil {
			return
		}
		m.exports = append(m.exports, e)
	}
}

func (m *Module) readStart(r *Reader) {
	start := r.Pos
	index := int64(r.U32("the start function's index"))
	if index >= int64(len(m.functions)) {
		r.Fail(start, "function %d is not declared: there are %d", index, len(m.functions))
		return
	}
	if t := m.types[m.functions[index]]; len(t.Params)+len(t.Results) > 0 {
		r.Fail(start, "the start function is %s: it must be () -> ()", t)
	}
}

// ValueType reads a value type.
func (r *Reader) ValueType(what string) ValueType {
	t := ValueType(r.Byte(what))
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
	default:
		r.Fail(r.Pos-1, "value type %#x in %s is %w", byte(t), what, ErrUnsupported)
	}
	return t
}

func (r *Reader) refType() {
	if t := ValueType(r.Byte("a reference type")); t != FuncRef && t != ExternRef {
		r.Fail(r.Pos-1, "reference type %#x is %w: funcref and externref are", byte(t), ErrUnsupported)
	}
}

func (r *Reader) globalType() GlobalType {
	t := GlobalType{Type: r.ValueType("a global")}
	b := r.Byte("a global's mutability")
	if b > 1 {
		r.Fail(r.Pos-1, "a global's mutability is %#x, not 0 or 1", b)
	}
	t.Mutable = b == 1
	return t
}

// Table reads the type of a table.
func (r *Reader) Table() Table {
	start := r.Pos
	r.refType()
	flags := r.Byte("a table's limits")
	if flags > 1 {
		r.Fail(start, "a table with limits of form %#x is %w", flags, ErrUnsupported)
	}
	t := Table{HasMax: flags == 1, Min: uint64(r.U32("a table's minimum"))}
	if t.Min > maxTableSize {
		r.Fail(start, "a table of %d elements is %w: the limit is %d", t.Min, ErrUnsupported, maxTableSize)
	}
	if t.HasMax {
		t.Max = uint64(r.U32("a table's maximum"))
		r.checkLimits(start, "a table", t.Min, t.Max)
	}
	return t
}

// The bits of a memory's limits.
const (
	limitsMax    = 1
	limitsShared = 2
	limits64     = 4
)

func (r *Reader) memory() Memory {
	start := r.Pos
	flags := r.Byte("a memory's limits")
	if flags > limitsMax|limitsShared|limits64 {
		r.Fail(start, "a memory with limits of form %#x is %w", flags, ErrUnsupported)
	}
	m := Memory{HasMax: flags&limitsMax != 0, Shared: flags&limitsShared != 0, Is64: flags&limits64 != 0}
	width, most := 32, uint64(1)<<16
	if m.Is64 {
		width, most = 64, 1<<48
	}
	m.Min = r.unsigned(width, "a memory's minimum")
	if m.HasMax {
		m.Max = r.unsigned(width, "a memory's maximum")
		r.checkLimits(start, "a memory", m.Min, m.Max)
	}
	if m.Min > most || m.Max > most {
		r.Fail(start, "a memory of %d to %d pages is larger than its address space of %d", m.Min, m.Max, most)
	}
	return m
}

func (r *Reader) checkLimits(at int, what string, low, high uint64) {
	if low > high {
		r.Fail(at, "%s's minimum %d is above its maximum %d", what, low, high)
	}
}
