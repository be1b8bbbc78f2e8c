package wasmbin

import (
	"bytes"
	"crypto/sha256"
)

// Made is a module that was made of an engine and a bundle, and is not put together: so many modules share one engine.
type Made struct {
	Module *Module // the engine
	Bundle []byte  // for the address that the engine exports; nil: the module is whole as it is
}

// Size returns how many bytes the two have.
func (m Made) Size() int { return len(m.Module.data) + len(m.Bundle) }

// A Bundle is what makes a tool of an engine, a language's interpreter: the data segment that AppendData has put at the address which
// the engine exports. Without it, the module is the engine, which is the same for all of its tools.
type Bundle struct {
	// Address is where the bundle belongs in the memory. Whether it lies inside has not been checked.
	Address uint32
	// Content shares memory with the module.
	Content []byte

	module *Module
	start  int // offset of the segment
}

// Bundle returns the module's bundle: its last data segment, if it is at the address that the module exports by that name. ok is
// false where the module is not of an engine, or is the engine itself.
func (m *Module) Bundle(export string) (b Bundle, ok bool) {
	address, ok := m.Constant(export)
	if !ok {
		return b, false
	}
	ok = false
	r := m.Open(SectionData)
	if r.Left() == 0 {
		return b, false
	}
	r.U32("data segments")
	for i := range m.segments {
		b = Bundle{module: m, start: r.Pos}
		form := r.U32("a data segment's form")
		if form == 2 {
			r.U32("a memory's index")
		}
		ok = false
		if form != 1 {
			b.Address, ok = r.I32Constant()
		}
		b.Content = r.Bytes(int(r.U32("a data segment's size")), "a data segment")
		ok = ok && form == 0 && b.Address == address && i == m.segments-1
	}
	return b, ok && r.Err == nil
}

// parts yields the engine in parts, as Bare would return it, but for the header.
func (b Bundle) parts(yield func([]byte)) {
	m := b.module
	r := &Reader{Data: m.data, Pos: len(Header), End: len(m.data)}
	for r.Left() > 0 {
		s := r.next()
		switch {
		case s.id == SectionCustom && string(s.name) != NameSection:
		case s.id == SectionDataCount:
			yield(appendSection(nil, SectionDataCount, AppendU32(nil, uint32(m.segments-1))))
		case s.id == SectionData && m.segments == 1: // the engine has no such section
		case s.id == SectionData:
			all := s.within(m.data)
			all.U32("the number of data segments")
			count, rest := AppendU32(nil, uint32(m.segments-1)), m.data[all.Pos:b.start]
			yield(append(AppendU32([]byte{SectionData}, uint32(len(count)+len(rest))), count...))
			yield(rest)
		default:
			yield(m.data[s.start:s.end])
		}
	}
}

// EngineSum returns the Sum of the engine.
func (b Bundle) EngineSum() (sum [sha256.Size]byte) {
	h := sha256.New()
	b.parts(func(part []byte) { h.Write(part) })
	h.Sum(sum[:0])
	return sum
}

// IsOf reports whether engine is what Engine returns.
func (b Bundle) IsOf(engine []byte) bool {
	rest, ok := bytes.CutPrefix(engine, []byte(Header))
	b.parts(func(part []byte) {
		if ok {
			rest, ok = bytes.CutPrefix(rest, part)
		}
	})
	return ok && len(rest) == 0
}

// Engine returns a copy of the engine, as Bare returns it.
func (b Bundle) Engine() []byte {
	out := append(make([]byte, 0, len(b.module.data)), Header...)
	b.parts(func(part []byte) { out = append(out, part...) })
	return out
}
