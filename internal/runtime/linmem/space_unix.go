//go:build unix && !linux

package linmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserveSpace reserves address space, which must be committed before it is used.
func reserveSpace(size int) ([]byte, error) {
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(start), size), nil
}

// commit makes whole pages of reserved space usable. They are zero.
func commit(pages []byte) error {
	return unix.Mprotect(pages, unix.PROT_READ|unix.PROT_WRITE)
}

// release gives back what reserveSpace has reserved.
func release(space []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(space)), uintptr(len(space)))
}
