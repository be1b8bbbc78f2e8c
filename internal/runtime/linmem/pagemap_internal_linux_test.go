package linmem

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDirty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		entry uint64
		want  bool
	}{
		{"never touched", 0, false},
		{"never touched, with flags that mean nothing", 1<<55 | 1<<56 | 1<<57 | 1<<58, false},
		{"present and the file's", entryPresent | entryFile, false},
		{"present and the file's, with a frame number and flags", entryPresent | entryFile | 1<<55 | 0x1234, false},
		{"present and written", entryPresent, true},
		{"present and written, with a frame number and flags", entryPresent | 1<<55 | 1<<56 | 0x1234, true},
		{"swapped", entrySwapped, true},
		{"swapped, with an offset", entrySwapped | 0x1234, true},
		{"swapped and the file's", entrySwapped | entryFile, true},
		{"swapped and present, which can't be", entrySwapped | entryPresent, true},
		{"everything", 1<<64 - 1, true},
		{"only the file's flag, as for a page that does not exist", entryFile, false},
	} {
		if got := dirty(c.entry); got != c.want {
			t.Errorf("%s (%#x): got %v, want %v", c.name, c.entry, got, c.want)
		}
	}
}

func TestDirtyRuns(t *testing.T) {
	t.Parallel()
	const page, start = 0x1000, 0x70000
	for _, c := range []struct {
		name  string
		pages string // d: dirty, c: clean
		room  int
		want  []region
		next  uint64
	}{
		{"nothing", "", 4, nil, start},
		{"clean", "cccc", 4, nil, start + 4*page},
		{"all dirty", "dddd", 1, []region{{start: start, end: start + 4*page}}, start + 4*page},
		{"at both ends", "dccd", 2, []region{{start: start, end: start + page}, {start: start + 3*page, end: start + 4*page}}, start + 4*page},
		{"no room for the second", "ddcd", 1, []region{{start: start, end: start + 2*page}}, start + 3*page},
		{"no room but none needed", "cddc", 1, []region{{start: start + page, end: start + 3*page}}, start + 4*page},
		{"no room at all", "cd", 0, nil, start + page},
	} {
		entries := []byte{}
		for _, p := range c.pages {
			entry := uint64(entryPresent | entryFile)
			if p == 'd' {
				entry = entryPresent
			}
			entries = binary.NativeEndian.AppendUint64(entries, entry)
		}
		got, next := dirtyRuns(make([]region, 0, c.room), entries, start, page)
		if !slices.Equal(got, c.want) || next != c.next {
			t.Errorf("%s: got %#x up to %#x, want %#x up to %#x", c.name, got, next, c.want, c.next)
		}
	}
}

// TestPagemapIsTested uses pagemaps that don't tell the truth.
func TestPagemapIsTested(t *testing.T) {
	t.Parallel()
	for _, scan := range []bool{true, false} {
		if err := (&pagemap{fd: -1, scan: scan, faults: noFaultDescriptor}).check(); err == nil {
			t.Errorf("a pagemap of a closed file was trusted (scan %v)", scan)
		}
	}
}

// TestWaysAgree finds the same pages in both ways.
// Proves: Nothing is left of a call
func TestWaysAgree(t *testing.T) {
	t.Parallel()
	p := findPagemap()
	if p == nil || !p.scan {
		t.Skip("the kernel has no PAGEMAP_SCAN")
	}
	content := make([]byte, 40*granule)
	for n := range 20 * granule {
		content[n] = byte(n) | 1
	}
	image, err := new(Store).NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Map(40 * granule)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Free(); err != nil {
			t.Error(err)
		}
		if err := image.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages := m.size / image.page
	for n := 0; n < pages; n += 1 + n%5 { // more runs than one scan returns
		m.space[n*image.page+n]++
	}
	all := func(p *pagemap) (pages []uint64) {
		for at, end := m.base(), m.base()+uint64(m.size); at < end; {
			runs, next, err := p.find(&m.finder, at, end)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				for a := run.start; a < run.end; a += uint64(image.page) {
					pages = append(pages, a-m.base())
				}
			}
			at = next
		}
		return pages
	}
	scanned, read := all(p), all(&pagemap{fd: p.fd, faults: noFaultDescriptor})
	if len(scanned) < regionsPerScan || !slices.Equal(scanned, read) {
		t.Errorf("PAGEMAP_SCAN finds %d dirty pages; reading finds %d, or different ones", len(scanned), len(read))
	}
}

// TestAdvisedMemory makes the kernel treat the pages of a memory in ways that it sometimes chooses by itself.
// Proves: Nothing is left of a call
func TestAdvisedMemory(t *testing.T) {
	t.Parallel()
	const size = 8 << 20 // four huge pages
	content := make([]byte, size)
	for n := range size / 2 {
		content[n] = byte(n) | 1
	}
	for _, c := range []struct {
		name   string
		before int // advice before the memory is written
		after  int // advice between the write and the reset; 0: none
	}{
		{"huge pages", unix.MADV_HUGEPAGE, 0},
		{"huge pages, split", unix.MADV_HUGEPAGE, unix.MADV_PAGEOUT},
		{"paged out", unix.MADV_NOHUGEPAGE, unix.MADV_PAGEOUT},
		{"cold", unix.MADV_RANDOM, unix.MADV_COLD},
		{"merged", unix.MADV_MERGEABLE, 0},
		{"all there from the start", unix.MADV_POPULATE_READ, 0},
		{"all private from the start", unix.MADV_POPULATE_WRITE, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			image, err := new(Store).NewImage(content)
			if err != nil {
				t.Fatal(err)
			}
			m, err := image.Map(size)
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if err := unix.Madvise(m.space, c.before); err != nil {
					t.Skipf("the kernel does not take the advice: %v", err)
				}
				for at := 0; at < size; at += 100_000 {
					m.space[at]++
				}
				clear(m.space[size/4 : size/4+10*image.page]) // zeros where the image has none
				if c.after != 0 {
					if err := unix.Madvise(m.space, c.after); err != nil {
						t.Skipf("the kernel does not take the advice: %v", err)
					}
				}
				if _, err := m.Reset(); err != nil {
					t.Fatal(err)
				}
				if !m.Equal() {
					t.Fatal("the memory is not restored")
				}
			}
			if err := m.Free(); err != nil {
				t.Error(err)
			}
			if err := image.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLockedMemory locks pages, which the kernel will not drop.
// Proves: Nothing is left of a call
func TestLockedMemory(t *testing.T) {
	t.Parallel()
	content := make([]byte, 2*granule)
	content[0], content[granule] = 1, 2
	image, err := new(Store).NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Map(2 * granule)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mlock(m.space); err != nil {
		t.Skipf("the system does not lock memory: %v", err)
	}
	for range 3 {
		m.space[granule]++
		m.space[5]++
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if !m.Equal() {
			t.Fatal("the memory is not restored")
		}
	}
	if err := m.Free(); err != nil {
		t.Error(err)
	}
	if err := image.Close(); err != nil {
		t.Error(err)
	}
}
