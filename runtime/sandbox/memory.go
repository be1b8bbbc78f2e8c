package sandbox

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/toolsrv/toolsrv/runtime/linmem"
)

// pageSize is the unit in which memories grow, in bytes.
const pageSize = 64 << 10

// maxMemory is the largest limit of a memory: one page below 4 GiB, so that its size fits into 32 bits.
const maxMemory = 4<<30 - pageSize

// A memory is a guest's linear memory with a limit. It belongs to one instance.
type memory struct {
	owner  *instance
	linear *linmem.Memory
	limit  int64 // bytes
	grown  bool
	shrunk []byte // what Reallocate gives, whatever is asked for; nil: what is asked for
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// Allocate returns m: a module has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate makes the memory size bytes long, or returns nil where that is above the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if m.shrunk != nil {
		return m.shrunk
	}
	if b := m.linear.Bytes(); size <= uint64(len(b)) {
		return b[:size:size] // wazero begins with what the module declares
	}
	if size > uint64(m.limit) {
		return nil
	}
	m.owner.grow(int64(size))
	m.grown = true
	return m.linear.Grow(size)
}

// Free is for wazero. close frees the memory, and can tell of an error.
func (m *memory) Free() {}
