package linmem

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// reserveSpace reserves address space, which must be committed before it is used.
func reserveSpace(size int) ([]byte, error) {
	address, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, err
	}
	// The address is not in Go's memory, so the number is as good as a pointer. Vet would reject a direct conversion.
	start := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	return unsafe.Slice((*byte)(start), size), nil
}

// commit makes whole pages of reserved space usable. They are zero.
func commit(pages []byte) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	_, err := windows.VirtualAlloc(start, uintptr(len(pages)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

// release gives back what reserveSpace has reserved.
func release(space []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(space))), 0, windows.MEM_RELEASE)
}
