package wasmbin

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
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
		r.section = fmt.Sprintf("custom %q", text.Short(string(s.name)))
	}
	return r
}

// constant passes over a constant expression.
func (r *reader) constant() {
	for r.err == nil {
		start := r.pos
		switch op := r.byte("a constant expression"); op {
		case 0x0b: // end
			return
		case 0x41: // i32.const
			r.skipSigned(32, "an i32 constant")
		case 0x42: // i64.const
			r.skipSigned(64, "an i64 constant")
		case 0x43: // f32.const
			r.bytes(4, "an f32 constant")
		case 0x44: // f64.const
			r.bytes(8, "an f64 constant")
		case 0x23: // global.get
			r.u32("a global's index")
		case 0xd0: // ref.null
			r.refType()
		case 0xd2: // ref.func
			r.u32("a function's index")
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub, mul of i32 and i64 (extended constants)
		case 0xfd: // v128.const
			if sub := r.byte("a constant expression"); sub != 0x0c {
				r.fail(start, "instruction 0xfd %#x is %w in a constant expression", sub, ErrUnsupported)
			}
			r.bytes(16, "a v128 constant")
		default:
			r.fail(start, "instruction %#x is %w in a constant expression", op, ErrUnsupported)
		}
	}
}

// The bits of an element segment's form.
const (
	elementPassive     = 1 // or declared, with elementExplicit
	elementExplicit    = 2 // of an active one: the table's index is there
	elementExpressions = 4
)

// checkElements passes over the element section.
func (r *reader) checkElements() {
	for range r.count(maxElements, "element segments") {
		start := r.pos
		form := r.u32("an element segment's form")
		if form > elementPassive|elementExplicit|elementExpressions {
			r.fail(start, "an element segment of form %d is %w", form, ErrUnsupported)
		}
		if form&elementPassive == 0 {
			if form&elementExplicit != 0 {
				r.u32("a table's index")
			}
			r.constant()
		}
		typed := form&(elementPassive|elementExplicit) != 0
		if form&elementExpressions != 0 {
			if typed {
				r.refType()
			}
			for range r.count(maxElements, "elements") {
				r.constant()
				if r.err != nil {
					return
				}
			}
		} else {
			if typed {
				if kind := r.byte("an element kind"); kind != 0 {
					r.fail(r.pos-1, "element kind %#x is %w", kind, ErrUnsupported)
				}
			}
			for range r.count(maxElements, "elements") {
				r.u32("a function's index")
				if r.err != nil {
					return
				}
			}
		}
		if r.err != nil {
			return
		}
	}
}

// checkBodies passes over the code section and returns the number of bodies. Locals are written in runs: ten bytes can
// ask for four billion, in every function. So a function may have maxLocals, and all functions together as many as
// the section has bytes beside that; code that uses a local takes two.
func (r *reader) checkBodies() int {
	n := r.count(maxFunctions, "bodies")
	section := r.end
	locals, most := int64(0), int64(r.left())+maxLocals
	for i := range n {
		start := r.pos
		size := int64(r.u32("a body's size"))
		switch {
		case size > int64(r.left()):
			r.fail(start, "body %d: %d bytes are announced, %d are there", i, size, r.left())
		case size > maxBody:
			r.fail(start, "body %d: %d bytes are %w: the most are %d", i, size, ErrUnsupported, maxBody)
		}
		if r.err != nil {
			return 0
		}
		r.end = r.pos + int(size)
		own := int64(0)
		for range r.count(maxLocals, "runs of locals") {
			own += int64(r.u32("a number of locals"))
			r.valueType("locals")
			if own > maxLocals {
				r.fail(start, "body %d: more than %d locals are %w", i, maxLocals, ErrUnsupported)
			}
			if r.err != nil {
				return 0
			}
		}
		if locals += own; locals > most {
			r.fail(start, "body %d: %d locals in %d bytes of code are %w", i, locals, section, ErrUnsupported)
		}
		if r.left() == 0 || r.data[r.end-1] != 0x0b {
			r.fail(start, "body %d does not end with the instruction end", i)
		}
		if r.err != nil {
			return 0
		}
		r.pos, r.end = r.end, section
	}
	return n
}

// checkData passes over the data section and returns the number of segments.
func (r *reader) checkData() int {
	n := r.count(maxDataSegments, "data segments")
	for range n {
		start := r.pos
		switch form := r.u32("a data segment's form"); form {
		case 0:
			r.constant()
		case 1: // passive
		case 2:
			r.u32("a memory's index")
			r.constant()
		default:
			r.fail(start, "a data segment of form %d is %w", form, ErrUnsupported)
		}
		r.bytes(int(r.u32("a data segment's size")), "a data segment")
		if r.err != nil {
			return 0
		}
	}
	return n
}

// ErrUnsupported is in the chain of an error of Parse where the module may be valid, but uses a proposal that is not
// taken here, or is larger than any compiler makes one.
var ErrUnsupported = errors.New("not supported")

// A Section is one section's place in a module.
type Section struct {
	// Name is the section's kind, such as "code", or the own name of a custom section.
	Name   string
	Custom bool
	// Offset is where the section begins in the module. Size is what it takes there in bytes, its head included.
	Offset, Size int
}

// Sections goes through the sections in their order. There may be millions, all but empty.
func (m *Module) Sections() iter.Seq[Section] {
	return func(yield func(Section) bool) {
		r := &reader{data: m.data, pos: len(header), end: len(m.data)}
		for r.left() > 0 {
			s := r.next()
			out := Section{Name: sections[s.id].name, Offset: s.start, Size: s.end - s.start}
			if s.id == sectionCustom {
				out.Name, out.Custom = string(s.name), true
			}
			if r.err != nil || !yield(out) { // Parse has seen that there is no error
				return
			}
		}
	}
}

// A reader walks through part of a module. Its first error sticks: from then on every read returns zero at once, so
// callers check err at the end and in loops only.
type reader struct {
	data    []byte
	pos     int    // offset in data of the next byte
	end     int    // no byte at or after it is read
	section string // for errors
	err     error
}

// left is the number of bytes that can still be read, 0 after an error.
func (r *reader) left() int {
	if r.err != nil {
		return 0
	}
	return r.end - r.pos
}

// fail keeps the first error, with the place of the byte at offset at.
func (r *reader) fail(at int, format string, args ...any) {
	if r.err != nil {
		return
	}
	place := fmt.Sprintf("offset %#x", at)
	if r.section != "" {
		place = r.section + " section, " + place
	}
	r.err = fmt.Errorf("wasm: %s: "+format, append([]any{place}, args...)...)
}

// byte reads one byte.
func (r *reader) byte(what string) byte {
	if r.left() < 1 {
		r.fail(r.pos, "%s is cut off", what)
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

// bytes reads n bytes. The result shares the module's memory.
func (r *reader) bytes(n int, what string) []byte {
	if n < 0 || r.left() < n {
		r.fail(r.pos, "%s of %d bytes is cut off after %d", what, n, r.left())
		return nil
	}
	b := r.data[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// leb reads an unsigned LEB128 number of at most width bits, or says what is wrong with it. Padding is allowed as the
// specification has it, up to the bytes that the largest number takes.
func (r *reader) leb(width int) (value uint64, problem string) {
	for shift := 0; shift < width; shift += 7 {
		if r.left() < 1 {
			return 0, "is cut off"
		}
		b := r.data[r.pos]
		r.pos++
		if rest := width - shift; rest < 7 && b&0x7f>>rest != 0 {
			return 0, "overflows its bits"
		}
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, ""
		}
	}
	return 0, "is longer than its largest value"
}

// unsigned reads an unsigned number of at most width bits.
func (r *reader) unsigned(width int, what string) uint64 {
	start := r.pos
	value, problem := r.leb(width)
	if problem != "" {
		r.fail(start, "%s %s", what, problem)
	}
	return value
}

// u32 reads an unsigned number of 32 bits.
func (r *reader) u32(what string) uint32 { return uint32(r.unsigned(32, what)) }

// skipSigned passes over a signed LEB128 number of at most width bits. Nothing here needs its value, so the bits
// beyond the width are left to the compiler's check.
func (r *reader) skipSigned(width int, what string) {
	start := r.pos
	for shift := 0; shift < width; shift += 7 {
		if r.byte(what) < 0x80 {
			return
		}
	}
	r.fail(start, "%s is longer than its largest value", what)
}

// count reads the length of a vector. Each element takes a byte at least, so what is not there is never allocated.
func (r *reader) count(limit int, what string) int {
	start := r.pos
	value, problem := r.leb(32)
	n := int64(value)
	switch {
	case problem != "":
		r.fail(start, "the number of %s %s", what, problem)
	case n > int64(r.left()):
		r.fail(start, "%d %s do not fit into the %d bytes that are left", n, what, r.left())
	case n > int64(limit):
		r.fail(start, "%d %s are %w: the most are %d", n, what, ErrUnsupported, limit)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// name reads a length and that much UTF-8. The result shares the module's memory.
func (r *reader) name(what string) []byte {
	start := r.pos
	b := r.bytes(int(r.u32(what)), what)
	if !utf8.Valid(b) {
		r.fail(start, "%s is not UTF-8", what)
		return nil
	}
	return b
}

// appendU32 appends n in the fewest bytes of LEB128.
func appendU32(b []byte, n uint32) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

// appendS32 appends n in the fewest bytes of signed LEB128.
func appendS32(b []byte, n int32) []byte { return appendS64(b, int64(n)) }

// appendS64 appends n in the fewest bytes of signed LEB128.
func appendS64(b []byte, n int64) []byte {
	for n < -0x40 || n >= 0x40 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

// appendName appends the length of a name, and the name.
func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}
