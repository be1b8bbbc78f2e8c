// Package wasmbin reads and rewrites WebAssembly binaries: sections, custom sections, imports and exports.
//
// Modules come from strangers. [Parse] reads every count and size of a module and accepts none that the bytes do not
// hold, because a compiler that allocates by a hostile count takes the whole process down, and no recover helps. What
// stands inside a function's body is left to the compiler, which validates it instruction by instruction. [Rewrite] reads
// the bodies, too, and makes of the module one that can be metered, stopped and reset.
package wasmbin

import "slices"

// A Module is a module whose frame has been checked. It shares memory with the bytes it was parsed from, so these must
// not change. It is safe for concurrent use.
type Module struct {
	data      []byte
	types     []FuncType
	imports   []Import
	functions []uint32 // type of each function, imported ones first
	tables    []Table
	memories  []Memory
	globals   int
	exports   []Export

	globalTypes []GlobalType // imported ones first

	// What Parse needs to know on its way.
	last      int  // order of the last section
	named     bool // there was a name section
	imported  int  // number of imported functions
	bodies    int  // number of function bodies
	segments  int  // number of data segments
	announced int  // number of data segments in the data count section, or -1
}

// Parse checks a module: header, order and sizes of the sections, every count, and the indices of what it declares. It
// accepts what the compiler accepts, without these: recursive and typed references, exceptions, components, and sizes
// that no compiler makes (errors.Is(err, ErrUnsupported)). Errors say section, offset and what is wrong.
func Parse(module []byte) (*Module, error) {
	m := &Module{data: module, announced: -1}
	r := &reader{data: module, end: len(module)}
	r.readHeader()
	for r.left() > 0 {
		if s := r.next(); r.err == nil {
			m.take(r, s)
		}
	}
	m.checkCounts(r)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// take checks the place of a section that r has just passed, and takes in its content.
func (m *Module) take(r *reader, s section) {
	if s.id == sectionCustom {
		if string(s.name) != nameSection {
			return
		}
		if m.named {
			r.fail(s.start, "a second %q section", nameSection)
		}
		m.named = true
	} else {
		order := sections[s.id].order
		if order == m.last {
			r.fail(s.start, "a second %s section", r.section)
		} else if order < m.last {
			r.fail(s.start, "the section stands too late: the order of sections is fixed")
		}
		m.last = order
	}
	if r.err != nil {
		return
	}
	content := s.within(r.data)
	m.read(s.id, content)
	if content.left() > 0 {
		content.fail(content.pos, "%d bytes are left over", content.left())
	}
	r.err = content.err
}

// read takes in the content of a section.
func (m *Module) read(id int, r *reader) {
	switch id {
	case sectionCustom:
		r.checkNames()
	case sectionType:
		m.readTypes(r)
	case sectionImport:
		m.readImports(r)
	case sectionFunction:
		m.readFunctions(r)
	case sectionTable:
		m.readTables(r)
	case sectionMemory:
		m.readMemories(r)
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		m.readExports(r)
	case sectionStart:
		m.readStart(r)
	case sectionElement:
		r.checkElements()
	case sectionDataCount:
		m.announced = int(r.u32("the number of data segments"))
	case sectionCode:
		m.bodies = r.checkBodies()
	case sectionData:
		m.segments = r.checkData()
	default:
		r.fail(r.pos, "%s sections are %w", sections[id].name, ErrUnsupported)
	}
}

// checkCounts compares the sections that must be of one length.
func (m *Module) checkCounts(r *reader) {
	if r.err != nil {
		return
	}
	r.section = ""
	if own := len(m.functions) - m.imported; own != m.bodies {
		r.fail(r.end, "%d functions are declared, %d have a body", own, m.bodies)
	}
	if m.announced >= 0 && m.announced != m.segments {
		r.fail(r.end, "the data count section says %d segments, the data section has %d", m.announced, m.segments)
	}
}

// Imports returns what the module imports, in its order. The slice is the caller's.
func (m *Module) Imports() []Import { return slices.Clone(m.imports) }

// Exports returns what the module exports, in its order. No two have the same name. The slice is the caller's.
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
