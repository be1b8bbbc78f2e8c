package linmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// When a page of a file is read, the kernel also maps its neighbours, up to 16 pages in all. A scan has to examine each of them after every call,
// which takes 35 ns per page. Resetting a Go guest of 53 granules that dirties 19 pages took 11 µs, and takes 2.5 with this turned off; one of 64
// granules with 100 scattered dirty pages took 40, and takes 14. The only way to turn this off is to register the mapping with userfaultfd for
// write protection. Nothing is ever protected, so no fault ever waits for this process.

// Constants of userfaultfd, the same on every architecture.
const (
	uffdUserModeOnly  = 1
	uffdAPI           = 0xaa
	uffdShmem         = 1 << 12 // write-protects mappings of memory files (Linux 5.19)
	uffdWriteProtect  = 2
	uffdioAPI         = 0xc018aa3f
	uffdioRegister    = 0xc020aa00
	noFaultDescriptor = -1
)

// openFaults returns a descriptor of userfaultfd, or noFaultDescriptor if the kernel is too old, or a container's filter forbids it. Then resets do
// the same, but take longer.
func openFaults() int {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return noFaultDescriptor
	}
	api := struct{ api, features, ioctls uint64 }{uffdAPI, uffdShmem, 0}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		_ = unix.Close(int(fd))
		return noFaultDescriptor
	}
	return int(fd)
}

// faultAlone makes the kernel map only those pages of a mapped file that are touched. It reports whether the kernel will do so.
func (p *pagemap) faultAlone(mapping []byte) bool {
	if p.faults == noFaultDescriptor || len(mapping) == 0 {
		return false
	}
	arg := struct{ start, length, mode, ioctls uint64 }{
		start:  uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mapping)))),
		length: uint64(len(mapping)),
		mode:   uffdWriteProtect,
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p.faults), uffdioRegister, uintptr(unsafe.Pointer(&arg)))
	return errno == 0
}
