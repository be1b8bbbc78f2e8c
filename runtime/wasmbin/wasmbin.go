// Package wasmbin reads and writes WebAssembly binaries: sections, declarations, instructions and custom sections.
//
// Modules come from strangers. [Parse] reads every count and size in a module and refuses those that exceed the bytes
// behind them: a compiler that allocates by a hostile count takes the whole process down, and no recover helps. Parse does
// not look into the bodies of functions. The compiler validates them, and an [Instruction] reads them one by one.
package wasmbin

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// A Module is a module that Parse has checked. It shares memory with the bytes that it was parsed from, which must not
// change. It is safe for concurrent use.
type Module struct {
	data      []byte
	types     []FuncType
	imports   []Import
	functions []uint32 // type of each function, imported ones first
	tables    []Table
	memories  []Memory
	globals   []GlobalType // imported ones first
	exports   []Export
	places    [len(sections)]section // of which the end is 0 where there is none

	sums sync.Once
	sum  [sha256.Size]byte // what Sum returns

	// These are for Parse.
	last      int  // order of the last section
	named     bool // there was a name section
	customs   int  // number of custom sections
	imported  int  // number of imported functions
	bodies    int  // number of function bodies
	segments  int  // number of data segments
	announced int  // number of data segments in the data count section, or -1
}

// Parse checks a module: its header, the order and sizes of its sections, every count, and the indices in its
// declarations. It accepts what the compiler accepts, except for recursive and typed references, exceptions, components,
// and sizes that no compiler makes: errors.Is(err, ErrUnsupported). Errors give the section, the offset and the reason.
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

// take checks the place of the section that r has just passed, and reads its content.
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

// Bytes returns what the module was parsed from. It must not be changed.
func (m *Module) Bytes() []byte { return m.data }

// Types returns the types that the module declares. The slice is the caller's.
func (m *Module) Types() []FuncType { return slices.Clone(m.types) }

// Functions returns the index of each function's type, imported functions first. The slice is the caller's.
func (m *Module) Functions() []uint32 { return slices.Clone(m.functions) }

// ImportedFunctions returns how many of the functions are imported.
func (m *Module) ImportedFunctions() int { return m.imported }

// Globals returns the types of all globals, imported ones first. The slice is the caller's.
func (m *Module) Globals() []GlobalType { return slices.Clone(m.globals) }

// Imports returns the imports in the module's order. The slice is the caller's.
func (m *Module) Imports() []Import { return slices.Clone(m.imports) }

// Exports returns the exports in the module's order. No two have the same name. The slice is the caller's.
func (m *Module) Exports() []Export { return slices.Clone(m.exports) }

// Export returns the export of that name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Memories returns all memories, imported ones first. The slice is the caller's.
func (m *Module) Memories() []Memory { return slices.Clone(m.memories) }

// Tables returns all tables, imported ones first. The slice is the caller's.
func (m *Module) Tables() []Table { return slices.Clone(m.tables) }
