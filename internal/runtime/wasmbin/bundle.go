package wasmbin

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
)

// Made is a module in two parts, an engine and a bundle, so that many modules share one engine.
type Made struct {
	Module *Module // the engine
	Bundle []byte  // what is written at the address that the engine exports; nil: the engine alone is the module
}

// Size returns the size of both parts in bytes.
func (m Made) Size() int { return len(m.Module.data) + len(m.Bundle) }

// A Bundle is what turns an engine, the interpreter of a language, into a tool: the data segment that AppendData has put at the address that the
// engine exports. Without the bundle, the module is the engine, which is the same for all of its tools.
type Bundle struct {
	// Address is where the bundle belongs in the memory. Whether it fits into the memory has not been checked.
	Address uint32
	// Content shares memory with the module.
	Content []byte

	module *Module
	start  int // offset of the segment
}

// Bundle returns the module's bundle: its last data segment, if that is at the address that the module exports by that name. ok is false if the
// module is the engine itself, or has none.
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

// parts yields the parts of the engine, as Bare would return it, without the header.
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

// IsOf reports whether engine equals what Engine returns.
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

// Constant returns the value of the immutable i32 global that the module exports by that name. ok is false if there is no such export, or if the
// global's initial value is not a plain constant.
func (m *Module) Constant(name string) (value uint32, ok bool) {
	e, ok := m.Export(name)
	if !ok || e.Kind != KindGlobal || e.Global != (GlobalType{Type: I32}) {
		return 0, false
	}
	index, imported := m.exportedIndex(name), 0
	for _, i := range m.imports {
		if i.Kind == KindGlobal {
			imported++
		}
	}
	r := m.Open(SectionGlobal)
	r.U32("the number of globals")
	for i := imported; i < index; i++ {
		r.globalType()
		r.constant()
	}
	r.globalType()
	// For an imported global, the reader is now at its end or at another global. Whatever it reads is not that global's value.
	value, ok = r.I32Constant()
	return value, ok && index >= imported
}

// exportedIndex returns the index of an existing export.
func (m *Module) exportedIndex(name string) int {
	r := m.Open(SectionExport)
	for r.U32("the number of exports"); r.Left() > 0; {
		is := string(r.Name("an export's name")) == name
		r.Byte("an export's kind")
		if index := r.U32("an export's index"); is {
			return int(index)
		}
	}
	return -1
}

// AppendData returns a copy of the module's bytes with one more data segment after the existing ones, which puts content at address when an instance
// starts. Every other section stays the same, byte for byte, except the data count section, if there is one. The content has to fit into the memory
// as it is declared.
func (m *Module) AppendData(address uint32, content []byte) ([]byte, error) {
	if len(m.memories) == 0 {
		return nil, fmt.Errorf("wasm: the module has no memory for a data segment of %d bytes", len(content))
	}
	if end := uint64(address) + uint64(len(content)); end > m.memories[0].Min<<16 {
		return nil, fmt.Errorf("wasm: a data segment of %d bytes at %#x does not fit into the memory of %d bytes", len(content), address, m.memories[0].Min<<16)
	}
	if m.segments == maxDataSegments || len(m.data)+len(content) > maxModule-len(Header)*8 {
		return nil, fmt.Errorf("wasm: with a data segment of %d bytes the module is larger than the limit", len(content))
	}
	segment := AppendS32([]byte{0, opcode.I32Const}, int32(address))
	segment = AppendU32(append(segment, opcode.End), uint32(len(content)))
	segment = append(segment, content...)

	out := append(make([]byte, 0, len(m.data)+len(segment)+16), Header...) // 16: the counts and sizes grow by at most that many bytes
	r := &Reader{Data: m.data, Pos: len(Header), End: len(m.data)}
	found := false
	for r.Left() > 0 {
		s := r.next()
		switch s.id {
		case SectionData:
			found = true
			old := s.within(m.data)
			old.U32("the number of data segments")
			out = appendSection(out, SectionData, AppendU32(nil, uint32(m.segments+1)), m.data[old.Pos:s.end], segment)
		case SectionDataCount:
			out = appendSection(out, SectionDataCount, AppendU32(nil, uint32(m.segments+1)))
		default:
			out = append(out, m.data[s.start:s.end]...)
		}
	}
	if !found {
		out = appendSection(out, SectionData, AppendU32(nil, 1), segment)
	}
	return out, r.Err
}

// appendSection appends a section whose content is the parts, one after another.
func appendSection(module []byte, id byte, parts ...[]byte) []byte {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	module = AppendU32(append(module, id), uint32(size))
	for _, part := range parts {
		module = append(module, part...)
	}
	return module
}
