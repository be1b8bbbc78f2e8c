package wasmbin

import (
	"fmt"

	"github.com/toolsrv/toolsrv/runtime/internal/opcode"
)

// Constant returns the value of the immutable i32 global that the module exports by that name. ok is false where there is no such
// export, and where the global begins as anything but a plain constant.
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
	// An imported global has no value here: then the reader is at its end, or at another's.
	value, ok = r.I32Constant()
	return value, ok && index >= imported
}

// exportedIndex returns the index of what is exported by that name, which is there.
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

// AppendData returns a copy of the module's bytes with one more data segment, behind those that are there: the one that puts
// content at address when an instance starts. Every other section is as it was, byte for byte, but for the data count section,
// where there is one. The content has to fit into the memory as it is declared.
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

	out := append(make([]byte, 0, len(m.data)+len(segment)+16), Header...) // 16: what counts and sizes can grow by
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

// appendSection appends a section whose content is the parts, one behind the other.
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
