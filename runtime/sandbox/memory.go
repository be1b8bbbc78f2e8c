package sandbox

import "github.com/tetratelabs/wazero/experimental"

// pageSize is the unit in which memories grow, in bytes.
const pageSize = 64 << 10

// maxMemory is the largest limit of a memory: one page below 4 GiB, so that its size fits into 32 bits.
const maxMemory = 4<<30 - pageSize

// A memory is a guest's linear memory with a limit. It belongs to one instance.
type memory struct {
	bytes []byte
	limit int64
	// refused tells that the guest asked for more than the limit. What breaks after that broke for want of memory.
	refused bool
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// Allocate returns m: a module has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate makes the memory size bytes long, or returns nil where that is above the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(m.limit) {
		m.refused = true
		return nil
	}
	if size <= uint64(cap(m.bytes)) {
		m.bytes = m.bytes[:size]
		return m.bytes
	}
	// Half as much again, so that a guest that grows page by page is not copied page by page.
	room := min(max(size, uint64(cap(m.bytes))*3/2), uint64(m.limit))
	grown := make([]byte, size, room)
	copy(grown, m.bytes)
	m.bytes = grown
	return grown
}

// Free lets go of the memory.
func (m *memory) Free() { m.bytes = nil }
