package sandbox

import "crypto/sha256"

// An ID identifies a program, or a program's code.
type ID [sha256.Size]byte

// A Holding says how much a tool's program holds of the resources that [Config] bounds.
type Holding struct {
	// Program identifies the program; all its tools have the same Holding. Code identifies its code, which the programs of one interpreter share.
	Program, Code ID
	// Memory is how many bytes the program's snapshot and instances take, including those of running calls. Mappings is how many mappings of the address
	// space they take.
	Memory, Mappings int64
	// CodeMemory is how many bytes the code takes, and CodeMappings how many mappings. Base is the size in bytes of the memory that the interpreter's
	// programs begin with.
	CodeMemory, CodeMappings, Base int64
}

// Holding returns what the tool's program holds. The only cost for calls is that each of them stores a number for Holding.
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
		h.Memory += i.claimed - i.told.Load() // a call has given memory back since
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

// add counts an instance of the module until it is discarded.
func (m *module) add(i *instance) {
	i.tell()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = map[*instance]struct{}{}
	}
	m.made[i] = struct{}{}
}
