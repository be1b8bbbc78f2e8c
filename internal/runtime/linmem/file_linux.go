package linmem

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arenaSizes are the sizes of arenas to try, in bytes. If the process's address space is limited, a large one may not fit.
var arenaSizes = [...]int{1 << 30, 64 << 20, 1 << 20}

// A Store keeps the content of images in a few memory files, each with many images. So an image needs neither a descriptor nor a mapping of its own.
// The zero Store is ready for use and needs no closing: a slot is given back with its last image. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex
	arenas []*arena
}

// An arena is a memory file of a fixed size. Parts that were never written are holes, which cost nothing.
type arena struct {
	fd   int
	view []byte   // the whole file, mapped read-only
	free []extent // free parts, in order of their offsets; no two are adjacent
}

// A slot is the stored part of an image, in an arena. Memories map it.
type slot struct {
	store   *Store
	arena   *arena // nil: nothing is stored
	offset  int
	view    []byte // the whole slot, mapped read-only
	pagemap *pagemap
}

// newSlot returns a slot of size bytes, all of them zeros. Parts that are never written are holes, and cost nothing until they are read.
func (s *Store) newSlot(size int, p *pagemap) (*slot, error) {
	f := &slot{store: s, pagemap: p}
	if size == 0 {
		return f, nil
	}
	return f, s.place(f, size)
}

// place finds size bytes for f. If there is no room, it makes a new arena.
func (s *Store) place(f *slot, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.arenas {
		if offset, ok := a.take(size); ok {
			f.arena, f.offset, f.view = a, offset, a.view[offset:offset+size:offset+size]
			return nil
		}
	}
	a, err := newArena(size)
	if err != nil {
		return err
	}
	s.arenas = append(s.arenas, a)
	offset, _ := a.take(size)
	f.arena, f.offset, f.view = a, offset, a.view[offset:offset+size:offset+size]
	return nil
}

// newArena makes an arena with room for size bytes.
func newArena(size int) (*arena, error) {
	fd, err := unix.MemfdCreate("toolsrv-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create a memory file: %w", err)
	}
	a := &arena{fd: fd}
	for _, try := range arenaSizes {
		try = max(try, size)
		if err = unix.Ftruncate(fd, int64(try)); err != nil {
			err = fmt.Errorf("size a memory file: %w", err)
			break
		}
		var start unsafe.Pointer
		if start, err = unix.MmapPtr(fd, 0, nil, uintptr(try), unix.PROT_READ, unix.MAP_SHARED); err == nil {
			a.view, a.free = unsafe.Slice((*byte)(start), try), []extent{{0, try}}
			break
		}
		err = fmt.Errorf("map a memory file of %d bytes: %w", try, err)
	}
	if err == nil {
		// Nobody, not even this process, can shrink the file below a mapping of it.
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
			err = fmt.Errorf("seal a memory file: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// take takes the first free range of size bytes.
func (a *arena) take(size int) (offset int, ok bool) {
	for n := range a.free {
		e := &a.free[n]
		if e.size < size {
			continue
		}
		offset = e.offset
		e.offset, e.size = e.offset+size, e.size-size
		if e.size == 0 {
			a.free = slices.Delete(a.free, n, n+1)
		}
		return offset, true
	}
	return 0, false
}

// give gives back what take took.
func (a *arena) give(e extent) {
	n, _ := slices.BinarySearchFunc(a.free, e.offset, func(f extent, offset int) int { return f.offset - offset })
	a.free = slices.Insert(a.free, n, e)
	if n+1 < len(a.free) && e.offset+e.size == a.free[n+1].offset {
		a.free[n].size += a.free[n+1].size
		a.free = slices.Delete(a.free, n+1, n+2)
	}
	if n > 0 && a.free[n-1].offset+a.free[n-1].size == e.offset {
		a.free[n-1].size += a.free[n].size
		a.free = slices.Delete(a.free, n, n+1)
	}
}

// close frees the arena's mapping and its file.
func (a *arena) close() error {
	var err error
	if a.view != nil {
		err = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(a.view)), uintptr(len(a.view)))
	}
	return errors.Join(err, unix.Close(a.fd))
}

// write writes to the slot at offset.
func (f *slot) write(content []byte, offset int) error {
	for len(content) > 0 {
		written, err := unix.Pwrite(f.arena.fd, content, int64(f.offset+offset))
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("write a memory file: %w", err)
		}
		written = max(written, 0)
		content, offset = content[written:], offset+written
	}
	return nil
}

// writePages writes all pages of stored except blank ones.
func (f *slot) writePages(stored []byte, blank []bool, page int) error {
	for n := 0; n < len(blank); {
		first := n
		for n < len(blank) && blank[n] == blank[first] {
			n++
		}
		if blank[first] {
			continue
		}
		if err := f.write(stored[first*page:n*page], first*page); err != nil {
			return err
		}
	}
	return nil
}

// overlay maps the slot over the start of space.
func (f *slot) overlay(space []byte) error { return f.overlayPart(space, extent{0, len(f.view)}) }

// overlayPart maps part of the slot over the start of space, readable and writable. A page is copied when it is first written.
func (f *slot) overlayPart(space []byte, part extent) error {
	if part.size == 0 {
		return nil
	}
	_, err := unix.MmapPtr(f.arena.fd, int64(f.offset+part.offset), unsafe.Pointer(unsafe.SliceData(space[:part.size])), uintptr(part.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

// close gives the slot's place back. No memory may map it any more.
func (f *slot) close() error {
	if f.arena == nil {
		return nil
	}
	a, place := f.arena, extent{f.offset, len(f.view)}
	// The next image in this place must find zeros where it writes nothing.
	if err := unix.Fallocate(a.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(place.offset), int64(place.size)); err != nil {
		return fmt.Errorf("empty a memory file: %w", err) // and the place is never used again
	}
	f.arena, f.view = nil, nil
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	a.give(place)
	if a.free[0].size < len(a.view) {
		return nil
	}
	f.store.arenas = slices.DeleteFunc(f.store.arenas, func(other *arena) bool { return other == a })
	return a.close()
}
