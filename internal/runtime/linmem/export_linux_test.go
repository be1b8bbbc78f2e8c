package linmem

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// NewReadImage is NewImage on a kernel without PAGEMAP_SCAN.
func NewReadImage(content []byte) (*Image, error) {
	image, err := new(Store).NewImage(content)
	if err == nil && image.slot != nil {
		image.slot.pagemap = &pagemap{fd: image.slot.pagemap.fd, faults: noFaultDescriptor}
	}
	return image, err
}

const KeepResident, AgeEvery = keepResident, ageEvery

// Provides reports whether the system can provide a memory's pages before they are written, and whether it then reports them as resident.
func Provides(t testing.TB, image *Image) bool {
	if image.slot == nil {
		return false
	}
	m, err := image.Map(uint64(image.size))
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Madvise(m.space[:image.page], unix.MADV_POPULATE_WRITE)
	resident, _ := m.Resident()
	if err := m.Free(); err != nil {
		t.Error(err)
	}
	return err == nil && resident == image.page
}

// Arenas returns how many files the store has.
func (s *Store) Arenas() int { return len(s.arenas) }

// Blocks returns how many bytes on disk the store's files take.
func (s *Store) Blocks(t testing.TB) (size int64) {
	for _, a := range s.arenas {
		var stat unix.Stat_t
		if err := unix.Fstat(a.fd, &stat); err != nil {
			t.Fatal(err)
		}
		size += stat.Blocks * 512
	}
	return size
}

// SystemMappings returns how many of the process's mappings are in the memory's address space.
func (m *Memory) SystemMappings(t testing.TB) (n int) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			t.Fatal(err)
		}
		// The system may have merged a mapping inside the space with a neighbour outside it, of the same kind.
		if start < m.base()+uint64(len(m.space)) && end > m.base() {
			n++
		}
	}
	return n
}
