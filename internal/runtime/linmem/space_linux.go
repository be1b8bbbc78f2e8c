package linmem

import (
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// strict reports whether the system counts writable memory before it is touched, because of its overcommit mode or a limit on the process's data.
// Then space is made writable only when it is used, which takes one more mapping.
var strict = sync.OnceValue(func() bool {
	mode, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
	var data unix.Rlimit
	return err != nil || strings.TrimSpace(string(mode)) == "2" ||
		unix.Getrlimit(unix.RLIMIT_DATA, &data) != nil || data.Cur != unix.RLIM_INFINITY
})

// reserveSpace reserves address space, which must be committed before it is used.
func reserveSpace(size int) ([]byte, error) {
	protection, flags := unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE
	if strict() {
		protection, flags = unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON
	}
	start, err := unix.MmapPtr(-1, 0, nil, uintptr(size), protection, flags)
	if err != nil {
		return nil, err
	}
	space := unsafe.Slice((*byte)(start), size)
	// A write would make a whole huge page dirty, so huge pages are turned off. A kernel without huge pages refuses, which is just as good.
	_ = unix.Madvise(space, unix.MADV_NOHUGEPAGE)
	return space, nil
}

// commit makes whole pages of reserved space usable. They are zero.
func commit(pages []byte) error {
	if !strict() {
		return nil // they are already usable
	}
	return unix.Mprotect(pages, unix.PROT_READ|unix.PROT_WRITE)
}

// release gives back what reserveSpace has reserved.
func release(space []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(space)), uintptr(len(space)))
}

// tails returns how many mappings the unused part of a reserved memory takes.
func tails() int {
	if strict() {
		return 1
	}
	return 0
}
