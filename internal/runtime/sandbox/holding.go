package sandbox

import "crypto/sha256"

// An ID tells programs, or their code, from others.
type ID [sha256.Size]byte

// A Holding is what the program of a tool holds of what the [Config] bounds.
type Holding struct {
	// Program is the program's, whose tools all have the same holding. Code is its code's, which the programs of one engine share.
	Program, Code ID
	// Memory is how many bytes its snapshot and its instances take, those of running calls among them, and Mappings how many mappings of the
	// address space these have.
	Memory, Mappings int64
	// CodeMemory is how many bytes the code takes, and CodeMappings how many mappings. Base is how many bytes of memory there are that programs of
	// the engine begin with.
	CodeMemory, CodeMappings, Base int64
}

// Holding tells what the tool's program holds. It costs calls nothing but that each notes a number for it.
func (t *Tool) Holding() Holding {
	m := t.module
	h := Holding{Program: ID(m.sum), Code: ID(m.code.sum)}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.made {
		h.Memory += i.told.Load()
		h.Mappings += i.mappings
	}
	for _, i := range m.idle {
		h.Memory += i.claimed - i.told.Load() // a call has given something back since
	}
	if m.snapshot != nil {
		h.Memory += m.snapshot.resident()
	}
	if _, h.CodeMemory = m.code.State(); h.CodeMemory > 0 {
		h.CodeMappings = 1
	}
	m.code.mu.Lock()
	defer m.code.mu.Unlock()
	if b := m.code.base; b != nil {
		h.Base = b.resident()
	}
	return h
}

// add makes an instance one of the module's, until it is discarded.
func (m *module) add(i *instance) {
	i.tell()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = map[*instance]struct{}{}
	}
	m.made[i] = struct{}{}
}
