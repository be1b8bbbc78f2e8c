package wasmbin

import (
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// Custom returns the content of the custom section with that name, which shares the module's memory. ok is false if there is none. Two sections with
// the same name are an error: readers would not agree on which one to use.
func (m *Module) Custom(name string) (content []byte, ok bool, err error) {
	r := &Reader{Data: m.data, Pos: len(Header), End: len(m.data)}
	first := 0
	for r.Left() > 0 {
		s := r.next()
		if s.id != SectionCustom || string(s.name) != name {
			continue
		}
		if ok {
			return nil, false, fmt.Errorf("wasm: two custom sections are named %q, at offsets %#x and %#x: remove one", text.Short(name), first, s.start)
		}
		content, ok, first = m.data[s.data:s.end:s.end], true, s.start
	}
	return content, ok, r.Err
}

// Sum returns the SHA-256 of what Rewrite reads: the module without its custom sections, except "name". Two modules with the same sum are rewritten
// to the same module. The sum is computed once: the module may be an interpreter, and a server may have thousands of its scripts.
func (m *Module) Sum() [sha256.Size]byte {
	m.sums.Do(func() { m.sum = m.makeSum() })
	return m.sum
}

func (m *Module) makeSum() (sum [sha256.Size]byte) {
	h := sha256.New()
	r := &Reader{Data: m.data, Pos: len(Header), End: len(m.data)}
	for r.Left() > 0 {
		if s := r.next(); s.id != SectionCustom || string(s.name) == NameSection {
			h.Write(m.data[s.start:s.end])
		}
	}
	h.Sum(sum[:0])
	return sum
}

// Bare returns a copy of the module without what Sum leaves out. Both are rewritten to the same module.
func (m *Module) Bare() []byte {
	size := len(Header)
	r := &Reader{Data: m.data, Pos: len(Header), End: len(m.data)}
	for r.Left() > 0 {
		if s := r.next(); s.id != SectionCustom || string(s.name) == NameSection {
			size += s.end - s.start
		}
	}
	bare := append(make([]byte, 0, size), Header...)
	for r.Pos = len(Header); r.Left() > 0; {
		if s := r.next(); s.id != SectionCustom || string(s.name) == NameSection {
			bare = append(bare, m.data[s.start:s.end]...)
		}
	}
	return bare
}

// SetCustom parses a module and returns a copy of it as [Module.SetCustom] does.
func SetCustom(module []byte, name string, content []byte) ([]byte, error) {
	m, err := Parse(module)
	if err != nil {
		return nil, err
	}
	return m.SetCustom(name, content)
}

// SetCustom returns a copy of the module's bytes whose last section is a custom section with that name and content. It replaces any custom sections
// with the same name. All other sections stay the same, byte for byte.
func (m *Module) SetCustom(name string, content []byte) ([]byte, error) {
	module := m.data
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("wasm: the custom section name %q is not UTF-8", text.Short(name))
	}
	if len(name) > maxModule || len(content) > maxModule || len(module)+len(name)+len(content) > maxModule-len(Header)*2 {
		return nil, fmt.Errorf("wasm: with a custom section of %d bytes the module is larger than the limit, %d bytes", len(content), maxModule)
	}
	if name == NameSection {
		r := &Reader{Data: content, End: len(content), Section: fmt.Sprintf("custom %q", NameSection)}
		r.checkNames()
		if r.Err != nil {
			return nil, r.Err
		}
	}
	out := make([]byte, 0, len(module)+len(name)+len(content)+11) // 11: the id and two numbers of the greatest length
	out = append(out, Header...)
	r := &Reader{Data: module, Pos: len(Header), End: len(module)}
	for r.Left() > 0 {
		if s := r.next(); s.id != SectionCustom || string(s.name) != name {
			out = append(out, module[s.start:s.end]...)
		}
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return AppendCustom(out, name, content), nil
}

// AppendCustom appends a custom section to a module that has none with that name.
func AppendCustom(module []byte, name string, content []byte) []byte {
	size := len(AppendU32(nil, uint32(len(name)))) + len(name) + len(content)
	module = AppendU32(append(module, SectionCustom), uint32(size))
	return append(AppendName(module, name), content...)
}

// NameSection is the custom section with the names for stack traces. The compiler reads it and allocates by its counts. So Parse checks it, although
// the program does not need it.
const NameSection = "name"

// The subsections of the name section that the compiler reads.
const (
	NamesModule    = 0
	NamesFunctions = 1
	namesLocals    = 2
	NamesGlobals   = 7
)
