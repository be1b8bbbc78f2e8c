package wasmbin

import (
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Custom returns the content of the custom section of that name, which shares the module's memory. ok is false where
// there is none. Two of one name are an error: each reader would take another one for the truth.
func (m *Module) Custom(name string) (content []byte, ok bool, err error) {
	r := &reader{data: m.data, pos: len(header), end: len(m.data)}
	first := 0
	for r.left() > 0 {
		s := r.next()
		if s.id != sectionCustom || string(s.name) != name {
			continue
		}
		if ok {
			return nil, false, fmt.Errorf("wasm: two custom sections are named %q, at offsets %#x and %#x: remove one", text.Short(name), first, s.start)
		}
		content, ok, first = m.data[s.data:s.end:s.end], true, s.start
	}
	return content, ok, r.err
}

// Sum returns the SHA-256 of what Rewrite reads: of the module without its custom sections, "name" excepted. Two modules of one
// sum are rewritten to the same.
func (m *Module) Sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	r := &reader{data: m.data, pos: len(header), end: len(m.data)}
	for r.left() > 0 {
		if s := r.next(); s.id != sectionCustom || string(s.name) == nameSection {
			h.Write(m.data[s.start:s.end])
		}
	}
	h.Sum(sum[:0])
	return sum
}

// Bare returns a copy of the module without what Sum leaves out. Both are rewritten to the same.
func (m *Module) Bare() []byte {
	size := len(header)
	r := &reader{data: m.data, pos: len(header), end: len(m.data)}
	for r.left() > 0 {
		if s := r.next(); s.id != sectionCustom || string(s.name) == nameSection {
			size += s.end - s.start
		}
	}
	bare := append(make([]byte, 0, size), header[:]...)
	for r.pos = len(header); r.left() > 0; {
		if s := r.next(); s.id != sectionCustom || string(s.name) == nameSection {
			bare = append(bare, m.data[s.start:s.end]...)
		}
	}
	return bare
}

// SetCustom returns a copy of module that has content in a custom section of that name, as its last section. Whatever
// custom sections of the name were there are gone; all other sections are as they were, byte for byte.
func SetCustom(module []byte, name string, content []byte) ([]byte, error) {
	if _, err := Parse(module); err != nil {
		return nil, err
	}
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("wasm: the custom section name %q is not UTF-8", text.Short(name))
	}
	if len(name) > maxModule || len(content) > maxModule || len(module)+len(name)+len(content) > maxModule-len(header)*2 {
		return nil, fmt.Errorf("wasm: %d bytes in a custom section make the module larger than %d", len(content), maxModule)
	}
	if name == nameSection {
		r := &reader{data: content, end: len(content), section: fmt.Sprintf("custom %q", nameSection)}
		r.checkNames()
		if r.err != nil {
			return nil, r.err
		}
	}
	length := appendU32(nil, uint32(len(name)))
	size := len(length) + len(name) + len(content)
	out := make([]byte, 0, len(module)+size+6) // 6: the id and the longest size
	out = append(out, header[:]...)
	r := &reader{data: module, pos: len(header), end: len(module)}
	for r.left() > 0 {
		if s := r.next(); s.id != sectionCustom || string(s.name) != name {
			out = append(out, module[s.start:s.end]...)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	out = append(out, sectionCustom)
	out = appendU32(out, uint32(size))
	out = append(out, length...)
	out = append(out, name...)
	return append(out, content...), nil
}

// nameSection is the custom section with the names for traces. The compiler reads it and allocates by its counts, so
// it must be whole although it means nothing to the program.
const nameSection = "name"

// The subsections of the name section that the compiler reads.
const (
	namesModule    = 0
	namesFunctions = 1
	namesLocals    = 2
	namesGlobals   = 7
)

// checkNames passes over a name section.
func (r *reader) checkNames() {
	whole := r.end
	for r.left() > 0 {
		start := r.pos
		id := r.byte("a subsection's id")
		size := int64(r.u32("a subsection's size"))
		if size > int64(r.left()) {
			r.fail(start, "subsection %d: %d bytes are announced, %d are there", id, size, r.left())
			return
		}
		r.end = r.pos + int(size)
		switch id {
		case namesModule:
			r.name("the module's name")
		case namesFunctions:
			r.nameMap()
		case namesLocals:
			for range r.count(maxFunctions, "functions with names") {
				r.u32("a function's index")
				r.nameMap()
				if r.err != nil {
					return
				}
			}
		default:
			r.pos = r.end
		}
		// What a subsection leaves over, the compiler would take for the next one.
		if r.left() > 0 {
			r.fail(r.pos, "subsection %d has %d bytes left over, which is %w", id, r.left(), ErrUnsupported)
		}
		r.end = whole
	}
}

func (r *reader) nameMap() {
	for range r.count(maxFunctions, "names") {
		r.u32("an index")
		r.name("a name")
		if r.err != nil {
			return
		}
	}
}
