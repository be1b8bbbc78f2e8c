package sandbox

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

// pageSize is the size in bytes of a page, the unit in which memories grow.
const pageSize = 64 << 10

// maxMemory is the largest limit of a memory: one page less than 4 GiB, so that its size fits into 32 bits.
const maxMemory = 4<<30 - pageSize

// A memory is a guest's linear memory with a limit. It belongs to one instance.
type memory struct {
	owner  *instance
	linear *linmem.Memory
	limit  int64 // bytes
	grown  bool
	shrunk []byte // if not nil, Reallocate returns this for every size
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// Allocate returns m: a module has only one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate makes the memory size bytes long, or returns nil if that is above the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if m.shrunk != nil {
		return m.shrunk
	}
	if b := m.linear.Bytes(); size <= uint64(len(b)) {
		return b[:size:size] // wazero begins with the size that the module declares
	}
	if size > uint64(m.limit) {
		return nil
	}
	m.owner.grow(int64(size))
	m.grown = true
	return m.linear.Grow(size)
}

// Free does nothing: the instance frees the memory, and can report an error.
func (m *memory) Free() {}
