// Package linmem keeps the linear memories of WebAssembly guests: it reserves address space up to a limit, takes snapshots of a memory's content, and
// resets a memory to a snapshot after every call.
//
// A [Memory] of an [Image] shares the image's pages until it writes them. Reset finds the pages that were written and copies them back. Its cost
// depends on what a call has written, not on the size of the memory. A page that can't be shown to be clean counts as dirty. Nothing may use the
// memory during Reset.
//
// A memory takes no file descriptor, and one or two mappings, or three if the system counts untouched memory. On Linux a process may have 65,530
// mappings by default (vm.max_map_count). All images of a [Store] are in a few files, with one mapping and one descriptor for each gibibyte. The
// process has two more descriptors, for /proc/self/pagemap and userfaultfd.
//
// A snapshot of a memory that was made from an image is a layer: it stores the pages that differ from the image's. Memories map both, with up
// to 67 mappings.
//
// Reserved address space costs no memory. What can't be mapped is an error, never a panic. The slices that a memory returned must not be touched once
// it is freed: that is a fault that Go can't turn into an error.
package linmem

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
)

// MaxMappings is how many of the process's mappings a memory takes at most, unless it belongs to a layer: see Image.Mappings.
const MaxMappings = 3

// maxReserve is the largest size of a WebAssembly memory.
const maxReserve = 4 << 30

var (
	errFreed   = errors.New("the memory is freed")
	errNoImage = errors.New("the memory was not made from an image")
)

// A Memory is a range of address space that is reserved up to a limit and can be used up to its size. It is not safe
// for concurrent use.
type Memory struct {
	space  []byte // the reserved pages; nil once freed
	limit  uint64 // how many bytes of it may ever be used
	size   int    // how many bytes of it can be used now
	reach  int    // how many bytes of it have ever been used, in whole pages, at least size: everything after that is untouched
	image  *Image // nil: made by New
	resets uint
	kept   int    // roughly the bytes of pages that differed from the image's at the last search
	finder finder // of dirty pages
}

// New returns a memory of size 0 that can grow up to reserve bytes, 4 GiB at most. Its bytes are zero.
func New(reserve uint64) (*Memory, error) {
	page := uint64(os.Getpagesize())
	rounded := max(page, (reserve+page-1)/page*page)
	if reserve > maxReserve || rounded > math.MaxInt {
		return nil, fmt.Errorf("reserve %d bytes: at most %d are possible", reserve, uint64(min(maxReserve, math.MaxInt)))
	}
	space, err := reserveSpace(int(rounded))
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", reserve, err)
	}
	return &Memory{space: space, limit: reserve}, nil
}

// fill gives a new memory its image's content and size.
func (m *Memory) fill() error {
	stored := 0
	if m.image.slot != nil {
		stored = m.image.end
		if err := m.image.overlay(m.space); err != nil {
			return err
		}
		m.provide()
	}
	if stored < m.image.size {
		if err := commit(m.space[stored:m.image.size]); err != nil {
			return err
		}
	}
	m.size, m.reach = m.image.size, m.image.size
	if m.image.slot == nil {
		copy(m.space[:m.size], m.image.stored)
	}
	return nil
}

// Grow makes the memory at least size bytes large and returns its first size bytes, which never move. New bytes are zero. It returns nil if size is
// more than was reserved, if the system has no more memory, or once the memory is freed. A size below the present one changes nothing.
func (m *Memory) Grow(size uint64) []byte {
	if m.space == nil || size > m.limit {
		return nil
	}
	n := int(size) // limit fits
	if n > m.size {
		if to := wholePages(n); m.reach < to {
			if commit(m.space[m.reach:to]) != nil {
				return nil
			}
			m.reach = to
		}
		m.size = n
	}
	return m.space[:n:n]
}

// Bytes returns the memory's content itself, not a copy: it is valid until Free. It returns nil once the memory is freed.
func (m *Memory) Bytes() []byte {
	if m.space == nil {
		return nil
	}
	return m.space[:m.size:m.size]
}

// Reset gives the memory the content and the size of its image. It returns how many bytes it has copied. These stay the memory's own, and are not
// shared with its image. Slices that reach beyond the image's size must not be used any more. After an error the content is undefined, and the memory
// can only be freed.
func (m *Memory) Reset() (copied int, err error) {
	switch {
	case m.space == nil:
		return 0, fmt.Errorf("reset: %w", errFreed)
	case m.image == nil:
		return 0, fmt.Errorf("reset: %w", errNoImage)
	case m.image.slot == nil:
		stored := copy(m.space, m.image.stored)
		clear(m.space[stored:m.size]) // what follows is zero
		copied = m.reach
	default:
		if copied, err = m.resetDirty(); err != nil {
			return copied, fmt.Errorf("reset: %w", err)
		}
	}
	m.size = m.image.size
	return copied, nil
}

// Equal reports whether the memory equals its image, byte by byte, and would get zeros if it grew. It reads the whole memory. It is for tests, and
// for a mode of operation that trusts nothing.
func (m *Memory) Equal() bool {
	if m.space == nil || m.image == nil || m.size != m.image.size {
		return false
	}
	for offset := 0; offset < m.image.end; offset += m.image.page {
		if !m.same(offset) {
			return false
		}
	}
	return isZero(m.space[m.image.end:m.reach])
}

// Mappings returns how many of the process's mappings the memory takes, at most MaxMappings. It is 0 once the memory is freed.
func (m *Memory) Mappings() int {
	switch {
	case m.space == nil:
		return 0
	case m.image == nil || m.image.slot == nil || m.image.end == 0:
		return 1 + tails()
	}
	pieces := 1
	if m.image.layer != nil {
		pieces = m.image.layer.pieces
	}
	if m.image.end == len(m.space) {
		return pieces
	}
	return pieces + 1 + tails()
}

// Resident returns how many bytes of its own the memory has: those that were written and have not been dropped since. If the system does not tell,
// it counts all bytes that were ever used.
func (m *Memory) Resident() (int, error) {
	if m.space == nil {
		return 0, fmt.Errorf("count resident bytes: %w", errFreed)
	}
	n, err := m.resident()
	if err != nil {
		return 0, fmt.Errorf("count resident bytes: %w", err)
	}
	return n, nil
}

// Free gives address space and pages back. It can be called twice; after an error it can be tried again.
func (m *Memory) Free() error {
	m.Unwatch()
	if m.space == nil {
		return nil
	}
	if err := release(m.space); err != nil {
		return fmt.Errorf("free %d bytes of address space: %w", len(m.space), err)
	}
	m.space, m.size, m.reach = nil, 0, 0
	if m.image == nil {
		return nil
	}
	return m.image.unuse()
}

// wholePages rounds a number of bytes up to whole pages of the system.
func wholePages(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}

// same reports whether the page at offset equals the image's.
func (m *Memory) same(offset int) bool {
	page := m.space[offset : offset+m.image.page]
	if want := m.image.content(offset); want != nil {
		return bytes.Equal(page, want)
	}
	return isZero(page)
}

// restore writes the image's content to the pages from offset to end.
func (m *Memory) restore(offset, end int) {
	for page := m.image.page; offset < end; offset += page {
		if content := m.image.content(offset); content != nil {
			copy(m.space[offset:offset+page], content)
		} else {
			clear(m.space[offset : offset+page])
		}
	}
}

// isZero reports whether all of p is zero: its first eight bytes are zero, and every later byte equals the byte eight places before it. That
// is a comparison of two ranges, for which the standard library uses vector instructions.
func isZero(p []byte) bool {
	head := min(8, len(p))
	for _, b := range p[:head] {
		if b != 0 {
			return false
		}
	}
	return bytes.Equal(p[head:], p[:len(p)-head])
}

// Snapshot makes an image with a copy of the memory's content, which nothing may change meanwhile. If the memory itself shares an image's pages, the
// new image is a layer over that one: it stores only the pages that differ. The other image stays as long as the layer does, even if it is closed. A
// layer over a layer stores everything.
func (m *Memory) Snapshot(s *Store) (*Image, error) {
	switch {
	case m.space == nil:
		return nil, fmt.Errorf("snapshot: %w", errFreed)
	case m.image == nil || m.image.slot == nil || m.image.layer != nil:
		return s.NewImage(m.Bytes())
	}
	return s.newLayer(m)
}
