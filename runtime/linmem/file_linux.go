package linmem

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A file holds the stored part of an image in memory, sealed, for memories to map.
type file struct {
	fd      int
	view    []byte // all of it, read-only
	pagemap *pagemap
}

// newFile keeps a copy of stored. Blank pages are holes in the file: they cost nothing until somebody touches them.
func newFile(stored []byte, blank []bool, page int, p *pagemap) (*file, error) {
	if len(stored) == 0 {
		return &file{fd: -1, pagemap: p}, nil
	}
	fd, err := unix.MemfdCreate("toolsrv-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create a memory file: %w", err)
	}
	f := &file{fd: fd, pagemap: p}
	if err := f.write(stored, blank, page); err != nil {
		return nil, errors.Join(err, f.close())
	}
	// Private though it is never written: before Linux 6.7 a file that is sealed against writes can't be mapped shared.
	start, err := unix.MmapPtr(fd, 0, nil, uintptr(len(stored)), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map a memory file: %w", err), f.close())
	}
	f.view = unsafe.Slice((*byte)(start), len(stored))
	return f, nil
}

func (f *file) write(stored []byte, blank []bool, page int) error {
	if err := unix.Ftruncate(f.fd, int64(len(stored))); err != nil {
		return fmt.Errorf("size a memory file: %w", err)
	}
	for n := 0; n < len(blank); {
		first := n
		for n < len(blank) && blank[n] == blank[first] {
			n++
		}
		if blank[first] {
			continue
		}
		for from, to := first*page, n*page; from < to; {
			written, err := unix.Pwrite(f.fd, stored[from:to], int64(from))
			if err != nil && err != unix.EINTR {
				return fmt.Errorf("write a memory file: %w", err)
			}
			from += max(written, 0)
		}
	}
	// Nobody, this process included, can change what memories see or shrink the file below a mapping of it.
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_ADD_SEALS,
		unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return fmt.Errorf("seal a memory file: %w", err)
	}
	return nil
}

// overlay maps the file over the start of space: usable, as the file is, and copied page by page where it is written.
func (f *file) overlay(space []byte) error {
	if len(f.view) == 0 {
		return nil
	}
	_, err := unix.MmapPtr(f.fd, 0, unsafe.Pointer(unsafe.SliceData(space)), uintptr(len(f.view)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

func (f *file) close() error {
	var err error
	if f.view != nil {
		err = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(f.view)), uintptr(len(f.view)))
		f.view = nil
	}
	if f.fd >= 0 {
		err = errors.Join(err, unix.Close(f.fd))
		f.fd = -1
	}
	return err
}

// avoidHugePages keeps pages small, because a huge one is dirty as a whole. A kernel without huge pages refuses,
// which is as good.
func avoidHugePages(space []byte) {
	_ = unix.Madvise(space, unix.MADV_NOHUGEPAGE)
}
