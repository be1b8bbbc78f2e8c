package catalog

import (
	"math/bits"
	"slices"
	"sync"
)

// A buffers has large files read into the memory of those that were loaded before. The system takes as long to provide fresh memory as we take to
// hash a file: where a folder has ten files of 12 MB, each with an interpreter inside, a start takes a fifth less of the processors' time. It
// keeps nothing once all are read. It is safe for concurrent use; nil has each file read into memory of its own.
type buffers struct {
	most int64 // bytes that it keeps at most

	mu   sync.Mutex
	free [][]byte
	kept int64
}

// borrow returns size bytes with any content. They may be given back.
func (b *buffers) borrow(size int) []byte {
	if b == nil || size < largeFile {
		return make([]byte, size)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.free, func(f []byte) bool { return cap(f) >= size }); i >= 0 {
		found := b.free[i]
		b.free = slices.Delete(b.free, i, i+1)
		b.kept -= int64(cap(found))
		return found[:size]
	}
	return make([]byte, size, 1<<bits.Len(uint(size-1))) // the next file may be larger: small ones are read first
}

// giveBack has what borrow returned be used for another file. Nobody looks at it any more.
func (b *buffers) giveBack(f []byte) {
	if b == nil || cap(f) < largeFile {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept+int64(cap(f)) <= b.most {
		b.free = append(b.free, f)
		b.kept += int64(cap(f))
	}
}

// drop frees what is kept.
func (b *buffers) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free, b.kept = nil, 0
}
