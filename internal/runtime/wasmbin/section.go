package wasmbin

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/text"
)

// The ids of sections.
const (
	SectionCustom = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
	SectionTag
)

// sections holds the name of each section and its place in the order that a module must keep. Custom sections may be
// anywhere.
var sections = [...]struct {
	name  string
	order int
}{
	SectionCustom:    {"custom", 0},
	SectionType:      {"type", 1},
	SectionImport:    {"import", 2},
	SectionFunction:  {"function", 3},
	SectionTable:     {"table", 4},
	SectionMemory:    {"memory", 5},
	SectionTag:       {"tag", 6},
	SectionGlobal:    {"global", 7},
	SectionExport:    {"export", 8},
	SectionStart:     {"start", 9},
	SectionElement:   {"element", 10},
	SectionDataCount: {"data count", 11},
	SectionCode:      {"code", 12},
	SectionData:      {"data", 13},
}

// The limits of a module. They come from the WebAssembly JavaScript interface ("implementation-defined limits"): no browser accepts more, so no
// compiler makes more. They bound how much a few hostile bytes can make the compiler allocate.
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
	maxExports      = 100_000 // the interface has had this limit for a long time; making an instance visits each segment, in 15 ns
	maxElements     = 10_000_000
	maxBody         = 7_654_321 // bytes
	maxLocals       = 50_000
	maxDataSegments = 100_000
)

// maxValues is how many parameters and results the types of a module may have together. The interface has no limit for that. Python's
// interpreter has 458.
const maxValues = 1_000_000

// maxCustoms is how many custom sections a module may have. The interface has no limit for that either. Compilers write some twenty. A file of 64 MiB
// has room for 22 million, and each pass over the sections would visit them all.
const maxCustoms = 10_000

// Header is the beginning of a module: a magic number, and the version of the format.
const Header = "\x00asm\x01\x00\x00\x00"

// A section is the place of a section in a module.
type section struct {
	id      int
	start   int // offset of the id
	content int // offset of the first byte after the size
	end     int
	name    []byte // name of a custom section, whose data begins at data
	data    int
}

// readHeader reads the magic number and the version.
func (r *Reader) readHeader() {
	if len(r.Data) > maxModule {
		r.Fail(0, "a module of %d bytes is %w: the limit is %d", len(r.Data), ErrUnsupported, maxModule)
		return
	}
	if !bytes.HasPrefix(r.Data, []byte(Header[:4])) {
		r.Fail(0, `this is not a WebAssembly module: it does not begin with "\0asm"`)
		return
	}
	if len(r.Data) < len(Header) {
		r.Fail(4, "the version is cut off")
		return
	}
	version := [4]byte(r.Data[4:])
	switch {
	case version == [4]byte{0x0d, 0, 1, 0}:
		r.Fail(4, "a component is %w: build a core module", ErrUnsupported)
	case string(version[:]) != Header[4:]:
		r.Fail(4, "version % x is %w: build a module of version 1", version, ErrUnsupported)
	}
	r.Pos = len(Header)
}

// next reads the header of a section and moves past the section. If the header is wrong, it sets r.Err.
func (r *Reader) next() section {
	r.Section = ""
	s := section{start: r.Pos}
	s.id = int(r.Byte("a section's id"))
	if s.id >= len(sections) {
		r.Fail(s.start, "section id %d is unknown", s.id)
		return s
	}
	r.Section = sections[s.id].name
	size := int64(r.U32("the section's size"))
	if size > int64(r.Left()) {
		r.Fail(s.start, "%d bytes are declared, but only %d are left", size, r.Left())
		return s
	}
	s.content = r.Pos
	s.end = r.Pos + int(size)
	if s.id == SectionCustom {
		whole := r.End
		r.End = s.end
		s.name = r.Name("a custom section's name")
		s.data = r.Pos
		r.End = whole
	}
	if r.Err == nil {
		r.Pos = s.end
	}
	return s
}

// within returns a reader of the section's content. For a custom section, it begins after the name.
func (s section) within(data []byte) *Reader {
	r := &Reader{Data: data, Pos: s.content, End: s.end, Section: sections[s.id].name}
	if s.id == SectionCustom {
		r.Pos = s.data
		r.Section = fmt.Sprintf("custom %q", text.Short(string(s.name)))
	}
	return r
}

// The bits of an element segment's form.
const (
	ElementPassive     = 1 // or declared, with elementExplicit
	ElementExplicit    = 2 // an active one has the index of its table
	ElementExpressions = 4
)

// checkElements checks and skips the element section.
func (r *Reader) checkElements() {
	for range r.count(maxElements, "element segments") {
		start := r.Pos
		form := r.U32("an element segment's form")
		if form > ElementPassive|ElementExplicit|ElementExpressions {
			r.Fail(start, "an element segment of form %d is %w", form, ErrUnsupported)
		}
		if form&ElementPassive == 0 {
			if form&ElementExplicit != 0 {
				r.U32("a table's index")
			}
			r.constant()
		}
		typed := form&(ElementPassive|ElementExplicit) != 0
		if form&ElementExpressions != 0 {
			if typed {
				r.refType()
			}
			for range r.count(maxElements, "elements") {
				r.constant()
				if r.Err != nil {
					return
				}
			}
		} else {
			if typed {
				if kind := r.Byte("an element kind"); kind != 0 {
					r.Fail(r.Pos-1, "element kind %#x is %w", kind, ErrUnsupported)
				}
			}
			for range r.count(maxElements, "elements") {
				r.U32("a function's index")
				if r.Err != nil {
					return
				}
			}
		}
		if r.Err != nil {
			return
		}
	}
}

// checkBodies checks and skips the code section, and returns the number of bodies. Locals are written in runs, so ten bytes can ask for four billion
// of them, in every function. A function may have maxLocals. All functions together may have one for each byte of the section, plus maxLocals: code
// that uses a local takes two bytes.
func (r *Reader) checkBodies() int {
	n := r.count(maxFunctions, "bodies")
	section, size := r.End, r.Left()
	locals, most := int64(0), int64(size)+maxLocals
	for i := range n {
		start := r.Pos
		length := int64(r.U32("a body's size"))
		switch {
		case length > int64(r.Left()):
			r.Fail(start, "body %d: %d bytes are declared, but only %d are left", i, length, r.Left())
		case length > maxBody:
			r.Fail(start, "body %d: %d bytes are %w: the limit is %d", i, length, ErrUnsupported, maxBody)
		}
		if r.Err != nil {
			return 0
		}
		r.End = r.Pos + int(length)
		own := int64(0)
		for range r.count(maxLocals, "runs of locals") {
			own += int64(r.U32("a number of locals"))
			r.ValueType("locals")
			if own > maxLocals {
				r.Fail(start, "body %d: more than %d locals are %w", i, maxLocals, ErrUnsupported)
			}
			if r.Err != nil {
				return 0
			}
		}
		if locals += own; locals > most {
			r.Fail(start, "body %d: %d locals in %d bytes of code are %w", i, locals, size, ErrUnsupported)
		}
		if r.Left() == 0 || r.Data[r.End-1] != 0x0b {
			r.Fail(start, "body %d does not end with the instruction end", i)
		}
		if r.Err != nil {
			return 0
		}
		r.Pos, r.End = r.End, section
	}
	return n
}

// checkData checks and skips the data section, and returns the number of segments.
func (r *Reader) checkData() int {
	n := r.count(maxDataSegments, "data segments")
	for range n {
		start := r.Pos
		switch form := r.U32("a data segment's form"); form {
		case 0:
			r.constant()
		case 1: // passive
		case 2:
			r.U32("a memory's index")
			r.constant()
		default:
			r.Fail(start, "a data segment of form %d is %w", form, ErrUnsupported)
		}
		r.Bytes(int(r.U32("a data segment's size")), "a data segment")
		if r.Err != nil {
			return 0
		}
	}
	return n
}

// ErrUnsupported is wrapped by errors about modules that may be valid, but use a proposal that is not supported here, or are larger than any
// compiler makes them.
var ErrUnsupported = errors.New("not supported")

// A Section is the place of a section in a module.
type Section struct {
	// Name is the section's kind, such as "code", or the name of a custom section.
	Name   string
	Custom bool
	// Offset is where the section begins in the module. Size is its length in bytes, including its id and its size.
	Offset, Size int
}

// checkNames checks and skips a name section.
func (r *Reader) checkNames() {
	whole := r.End
	var seen [256]bool
	for r.Left() > 0 {
		start := r.Pos
		id := r.Byte("a subsection's id")
		if seen[id] { // otherwise the names would be read and kept as many times as they fit into the section
			r.Fail(start, "a second subsection %d is %w", id, ErrUnsupported)
		}
		seen[id] = true
		size := int64(r.U32("a subsection's size"))
		if size > int64(r.Left()) {
			r.Fail(start, "subsection %d: %d bytes are declared, but only %d are left", id, size, r.Left())
			return
		}
		r.End = r.Pos + int(size)
		switch id {
		case NamesModule:
			r.Name("the module's name")
		case NamesFunctions:
			r.nameMap()
		case namesLocals:
			for range r.count(maxFunctions, "functions with names") {
				r.U32("a function's index")
				r.nameMap()
				if r.Err != nil {
					return
				}
			}
		default:
			r.Pos = r.End
		}
		// The compiler would take the rest for the next subsection.
		if r.Left() > 0 {
			r.Fail(r.Pos, "subsection %d has %d bytes left over, which is %w", id, r.Left(), ErrUnsupported)
		}
		r.End = whole
	}
}

func (r *Reader) nameMap() {
	for range r.count(maxFunctions, "names") {
		r.U32("an index")
		r.Name("a name")
		if r.Err != nil {
			return
		}
	}
}
