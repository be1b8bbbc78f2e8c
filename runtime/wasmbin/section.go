package wasmbin

import (
	"bytes"
	"fmt"
)

// The ids of sections.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sectionTag
)

// sections holds, for each id, the name and the place in the order that a module must keep. Custom sections may stand
// anywhere.
var sections = [...]struct {
	name  string
	order int
}{
	sectionCustom:    {"custom", 0},
	sectionType:      {"type", 1},
	sectionImport:    {"import", 2},
	sectionFunction:  {"function", 3},
	sectionTable:     {"table", 4},
	sectionMemory:    {"memory", 5},
	sectionTag:       {"tag", 6},
	sectionGlobal:    {"global", 7},
	sectionExport:    {"export", 8},
	sectionStart:     {"start", 9},
	sectionElement:   {"element", 10},
	sectionDataCount: {"data count", 11},
	sectionCode:      {"code", 12},
	sectionData:      {"data", 13},
}

// What a module may have at most. The numbers are those of the WebAssembly JavaScript interface ("implementation-defined
// limits"): no browser runs more, so no compiler makes more. They bound what a few hostile bytes can make the
// compiler allocate.
const (
	maxModule       = 1 << 30 // bytes
	maxTypes        = 1_000_000
	maxParams       = 1_000
	maxResults      = 1_000
	maxImports      = 1_000_000
	maxFunctions    = 1_000_000
	maxTables       = 100_000
	maxTableSize    = 10_000_000
	maxMemories     = 100
	maxGlobals      = 1_000_000
	maxExports      = 1_000_000
	maxElements     = 10_000_000
	maxBody         = 7_654_321 // bytes
	maxLocals       = 50_000
	maxDataSegments = 100_000
)

var header = [8]byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// A section is one section's place in a module.
type section struct {
	id      int
	start   int // offset of the id
	content int // offset of what follows the size
	end     int
	name    []byte // of a custom section; its data follow at data
	data    int
}

// readHeader reads the magic number and the version.
func (r *reader) readHeader() {
	if len(r.data) > maxModule {
		r.fail(0, "a module of %d bytes is %w: the most are %d", len(r.data), ErrUnsupported, maxModule)
		return
	}
	if !bytes.HasPrefix(r.data, header[:4]) {
		r.fail(0, `this is no WebAssembly module: it does not begin with "\0asm"`)
		return
	}
	if len(r.data) < len(header) {
		r.fail(4, "the version is cut off")
		return
	}
	version := [4]byte(r.data[4:])
	switch {
	case version == [4]byte{0x0d, 0, 1, 0}:
		r.fail(4, "a component is %w: build a core module", ErrUnsupported)
	case version != [4]byte(header[4:]):
		r.fail(4, "version % x is %w: build a module of version 1", version, ErrUnsupported)
	}
	r.pos = len(header)
}

// next reads the frame of one section; r.pos is behind the section then. r.err is set where the frame is wrong.
func (r *reader) next() section {
	r.section = ""
	s := section{start: r.pos}
	s.id = int(r.byte("a section's id"))
	if s.id >= len(sections) {
		r.fail(s.start, "section id %d is unknown", s.id)
		return s
	}
	r.section = sections[s.id].name
	size := int64(r.u32("the section's size"))
	if size > int64(r.left()) {
		r.fail(s.start, "%d bytes are announced, %d are there", size, r.left())
		return s
	}
	s.content = r.pos
	s.end = r.pos + int(size)
	if s.id == sectionCustom {
		whole := r.end
		r.end = s.end
		s.name = r.name("a custom section's name")
		s.data = r.pos
		r.end = whole
	}
	if r.err == nil {
		r.pos = s.end
	}
	return s
}

// within returns a reader of the section's content, behind the name where the section is a custom one.
func (s section) within(data []byte) *reader {
	r := &reader{data: data, pos: s.content, end: s.end, section: sections[s.id].name}
	if s.id == sectionCustom {
		r.pos = s.data
		r.section = fmt.Sprintf("custom %q", clip(string(s.name)))
	}
	return r
}
