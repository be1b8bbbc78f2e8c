// Package wasmbin reads and writes WebAssembly binaries: sections, declarations, instructions and custom sections.
//
// Modules come from strangers. [Parse] reads every count and size in a module and refuses those that exceed the bytes behind them: a compiler that
// allocates by a hostile count ends the whole process, and no recover helps. Parse does not read the bodies of functions. The compiler validates
// them, and an [Instruction] reads them one by one.
package wasmbin

import (
	"crypto/sha256"
	"iter"
	"slices"
	"sync"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
)

// A Module is a module that Parse has checked. It shares memory with the bytes from which it was parsed, which must not change. It is safe for
// concurrent use.
type Module struct {
	data      []byte
	types     []FuncType
	imports   []Import
	functions []uint32 // type of each function, imported ones first
	tables    []Table
	memories  []Memory
	globals   []GlobalType // imported ones first
	exports   []Export
	places    [len(sections)]section // for a missing section, the end is 0

	sums sync.Once
	sum  [sha256.Size]byte // what Sum returns

	// These are used by Parse.
	last      int  // order of the last section
	named     bool // there was a name section
	customs   int  // number of custom sections
	imported  int  // number of imported functions
	bodies    int  // number of function bodies
	segments  int  // number of data segments
	announced int  // number of data segments according to the data count section, or -1
}

// Parse checks a module: its header, the order and sizes of its sections, every count, and the indices in its declarations. It accepts what the
// compiler accepts, except recursive and typed references, exceptions, components, and sizes that no compiler makes; for these, the error wraps
// ErrUnsupported. Errors give the section, the offset and the reason.
func Parse(module []byte) (*Module, error) {
	m := &Module{data: module, announced: -1}
	r := &Reader{Data: module, End: len(module)}
	r.readHeader()
	for r.Left() > 0 {
		if s := r.next(); r.Err == nil {
			m.take(r, s)
		}
	}
	m.checkCounts(r)
	if r.Err != nil {
		return nil, r.Err
	}
	return m, nil
}

// take checks the place of the section that r has just skipped, and reads its content.
func (m *Module) take(r *Reader, s section) {
	if s.id == SectionCustom {
		if m.customs++; m.customs > maxCustoms {
			r.Fail(s.start, "more than %d custom sections are %w: strip the module", maxCustoms, ErrUnsupported)
			return
		}
		if string(s.name) != NameSection {
			return
		}
		if m.named {
			r.Fail(s.start, "a second %q section", NameSection)
		}
		m.named = true
	} else {
		order := sections[s.id].order
		if order == m.last {
			r.Fail(s.start, "a second %s section", r.Section)
		} else if order < m.last {
			r.Fail(s.start, "the section comes too late: sections have a fixed order")
		}
		m.last = order
		m.places[s.id] = s
	}
	if r.Err != nil {
		return
	}
	content := s.within(r.Data)
	m.read(s.id, content)
	if content.Left() > 0 {
		content.Fail(content.Pos, "%d bytes are left over", content.Left())
	}
	r.Err = content.Err
}

// read reads the content of a section.
func (m *Module) read(id int, r *Reader) {
	switch id {
	case SectionCustom:
		r.checkNames()
	case SectionType:
		m.readTypes(r)
	case SectionImport:
		m.readImports(r)
	case SectionFunction:
		m.readFunctions(r)
	case SectionTable:
		m.readTables(r)
	case SectionMemory:
		m.readMemories(r)
	case SectionGlobal:
		m.readGlobals(r)
	case SectionExport:
		m.readExports(r)
	case SectionStart:
		m.readStart(r)
	case SectionElement:
		r.checkElements()
	case SectionDataCount:
		m.announced = int(r.U32("the number of data segments"))
	case SectionCode:
		m.bodies = r.checkBodies()
	case SectionData:
		m.segments = r.checkData()
	default:
		r.Fail(r.Pos, "%s sections are %w", sections[id].name, ErrUnsupported)
	}
}

// checkCounts compares the counts of sections that belong together.
func (m *Module) checkCounts(r *Reader) {
	if r.Err != nil {
		return
	}
	r.Section = ""
	if own := len(m.functions) - m.imported; own != m.bodies {
		r.Fail(r.End, "%d functions are declared, but %d have a body", own, m.bodies)
	}
	if m.announced >= 0 && m.announced != m.segments {
		r.Fail(r.End, "the data count section says %d segments, but the data section has %d", m.announced, m.segments)
	}
}

// Bytes returns the bytes from which the module was parsed. They must not be changed.
func (m *Module) Bytes() []byte { return m.data }

// Types returns the types that the module declares. The slice belongs to the caller.
func (m *Module) Types() []FuncType { return slices.Clone(m.types) }

// Functions returns the index of each function's type, imported functions first. The slice belongs to the caller.
func (m *Module) Functions() []uint32 { return slices.Clone(m.functions) }

// ImportedFunctions returns how many of the functions are imported.
func (m *Module) ImportedFunctions() int { return m.imported }

// Globals returns the types of all globals, imported ones first. The slice belongs to the caller.
func (m *Module) Globals() []GlobalType { return slices.Clone(m.globals) }

// Imports returns the imports in the module's order. The slice belongs to the caller.
func (m *Module) Imports() []Import { return slices.Clone(m.imports) }

// Exports returns the exports in the module's order. No two have the same name. The slice belongs to the caller.
func (m *Module) Exports() []Export { return slices.Clone(m.exports) }

// Export returns the export with that name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Memories returns all memories, imported ones first. The slice belongs to the caller.
func (m *Module) Memories() []Memory { return slices.Clone(m.memories) }

// Tables returns all tables, imported ones first. The slice belongs to the caller.
func (m *Module) Tables() []Table { return slices.Clone(m.tables) }

// The features beyond WebAssembly 1.0 that Features detects, under the names of LLVM's target features.
const (
	featureBulkMemory = "bulk-memory"
	featureMultiValue = "multivalue"
	featureFPToInt    = "nontrapping-fptoint"
	featureReferences = "reference-types"
	featureSignExt    = "sign-ext"
	featureSIMD       = "simd128"
)

// Features returns the features beyond WebAssembly 1.0 that the types and the code of the module use, sorted. An unknown instruction is an error.
func (m *Module) Features() ([]string, error) {
	used := map[string]bool{featureBulkMemory: m.announced >= 0, featureReferences: len(m.tables) > 1}
	for _, t := range m.types {
		m.note(used, t.Params...)
		m.note(used, t.Results...)
		if len(t.Results) > 1 {
			used[featureMultiValue] = true
		}
	}
	if err := m.codeFeatures(used); err != nil {
		return nil, err
	}
	var list []string
	for name, is := range used {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// note records the features that value types need.
func (m *Module) note(used map[string]bool, types ...ValueType) {
	for _, t := range types {
		switch t {
		case V128:
			used[featureSIMD] = true
		case FuncRef, ExternRef:
			used[featureReferences] = true
		}
	}
}

// codeFeatures records the features that the code section uses.
func (m *Module) codeFeatures(used map[string]bool) error {
	var in Instruction
	r := m.Open(SectionCode)
	if r.Left() == 0 {
		return nil
	}
	section := r.End
	for range r.count(maxFunctions, "bodies") {
		size := int(r.U32("a body's size"))
		r.End = r.Pos + min(size, r.Left())
		for range r.count(maxLocals, "runs of locals") {
			r.U32("a number of locals")
			m.note(used, r.ValueType("locals"))
		}
		for r.Left() > 0 {
			in.Read(r)
			if name := m.featureOf(&in); name != "" {
				used[name] = true
			}
		}
		if r.Err != nil {
			return r.Err
		}
		r.End = section
	}
	return nil
}

// featureOf returns the feature that an instruction belongs to, or "".
func (m *Module) featureOf(in *Instruction) string {
	switch op := in.Op; {
	case op >= opcode.I32Extend8S && op <= opcode.I64Extend32S:
		return featureSignExt
	case op == opcode.TableGet, op == opcode.TableSet, op == opcode.RefNull, op == opcode.RefFunc, op == opcode.RefIsNull, op == opcode.SelectTyped,
		op == opcode.TableGrow, op == opcode.TableSize, op == opcode.TableFill, op == opcode.CallIndirect && in.B > 0:
		return featureReferences
	case op>>8 == opcode.Bulk && op&0xff < 8:
		return featureFPToInt
	case op >= opcode.MemoryInit && op <= opcode.TableCopy:
		return featureBulkMemory
	case op>>8 == opcode.Vector:
		return featureSIMD
	case op == opcode.Block, op == opcode.Loop, op == opcode.If:
		if in.Block >= 0 && in.Block < int64(len(m.types)) && (len(m.types[in.Block].Params) > 0 || len(m.types[in.Block].Results) > 1) {
			return featureMultiValue
		}
	}
	return ""
}

// Open returns a reader of the content of the section with that id, which must not be SectionCustom. If the module has no such section, the
// reader is empty.
func (m *Module) Open(id int) *Reader {
	s := m.places[id]
	return &Reader{Data: m.data, Pos: s.content, End: s.end, Section: sections[id].name}
}

// Sections yields the sections in their order.
func (m *Module) Sections() iter.Seq[Section] {
	return func(yield func(Section) bool) {
		r := &Reader{Data: m.data, Pos: len(Header), End: len(m.data)}
		for r.Left() > 0 {
			s := r.next()
			out := Section{Name: sections[s.id].name, Offset: s.start, Size: s.end - s.start}
			if s.id == SectionCustom {
				out.Name, out.Custom = string(s.name), true
			}
			if r.Err != nil || !yield(out) { // Parse has found no error
				return
			}
		}
	}
}
