package linmem

import (
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// strict reports whether the system counts writable memory that nobody has touched yet, because of its overcommit mode or a limit
// on the data of the process. Then space is made writable only where it is used, which takes one more mapping.
var strict = sync.OnceValue(func() bool {
	mode, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
	var data unix.Rlimit
	return err != nil || strings.TrimSpace(string(mode)) == "2" ||
		unix.Getrlimit(unix.RLIMIT_DATA, &data) != nil || data.Cur != unix.RLIM_INFINITY
})

// reserveSpace reserves address space, which may not be used before it is committed.
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
	// A huge page is dirty as a whole. A kernel without huge pages refuses, which is as good.
	_ = unix.Madvise(space, unix.MADV_NOHUGEPAGE)
	return space, nil
}

// commit makes whole pages of reserved space usable. They are zero.
func commit(pages []byte) error {
	if !strict() {
		return nil // they are usable
	}
	return unix.Mprotect(pages, unix.PROT_READ|unix.PROT_WRITE)
}

// release gives back what reserveSpace took.
func release(space []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(space)), uintptr(len(space)))
}

// tails returns how many mappings the part of a memory takes that is reserved and not used yet.
func tails() int {
	if strict() {
		return 1
	}
	return 0
}
