package linmem

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// keepResident is how many bytes of dirty pages a reset copies back. It drops the rest, so that a call that wrote much does not cost memory
	// forever. Speed would be a reason to keep more: finding and copying a page takes 0.1 µs, while dropping it and a page fault in the next
	// call take 2 µs, for any number of pages. keepResident is also how many bytes of pages that were only read may stay. Each page adds 40 ns
	// to every scan: 10 ms after a call that has read a gigabyte.
	keepResident = 4 << 20
	// One reset in ageEvery compares each dirty page with the image, and drops those that the last call did not change. Otherwise the pages that one
	// rare call has dirtied would be copied back after every later call. For a page that every twentieth call writes, dropping costs as much as keeping.
	ageEvery = 32
	// young is how many bytes of pages are never dropped because of their age. Comparing and dropping them, and the page faults of the next call that
	// needs some after all, take 15 µs; copying eight pages back 32 times takes as long.
	young = 32 << 10
)

// resetDirty copies back the pages that are no longer the file's. Copied pages stay resident, so that the next call can write them
// without a page fault.
func (m *Memory) resetDirty() (copied int, err error) {
	m.resets++
	if m.untouched() {
		for _, run := range m.finder.found {
			copied += m.copyBack(run)
		}
		return copied, nil
	}
	m.finder.found = nil
	// A memory that is used once is faster if its pages are mapped many at a time. One that is being reset will be used again.
	if m.resets == 1 && m.image.slot.pagemap.faultAlone(m.space[:m.image.end]) && m.drop(0, m.reach) == nil {
		return 0, nil
	}
	w := walk{memory: m, aging: m.ages(m.resets) && (m.kept > young || m.reach > wholePages(m.size))}
	if end := wholePages(m.size); w.aging && end < m.reach {
		if err := m.drop(end, m.reach); err != nil {
			return 0, err
		}
		m.reach = end // nothing after that is in use until the memory grows again
	}
	err = w.pages()
	m.kept = w.copied + w.blank
	return w.copied, err
}

// A walk is the state of one reset's pass over the dirty pages of a memory.
type walk struct {
	memory *Memory
	aging  bool
	copied int // bytes
	blank  int // bytes that were only read
}

// pages finds the dirty pages and resets them. It also searches beyond the present size: a larger memory may have left a page there, and the next one
// may write it without a page fault.
func (w *walk) pages() error {
	m, p := w.memory, w.memory.image.slot.pagemap
	base := m.base()
	for at, end := base, base+uint64(m.reach); at < end; {
		runs, next, err := p.find(&m.finder, at, end)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if run.start < at || run.end > next || run.start >= run.end {
				return fmt.Errorf("dirty pages from %#x to %#x while looking from %#x to %#x", run.start, run.end, at, next)
			}
			if full, err := w.reset(int(run.start-base), int(run.end-base), m.blank(run)); full || err != nil {
				return err
			}
		}
		if at == base && next == end && p.counts && !w.aging {
			m.finder.found = runs
		}
		at = next
	}
	return nil
}

// reset resets the dirty pages from one offset to another. blank says that they were only read. Once keepResident bytes stay resident, it drops all
// later pages and returns full.
func (w *walk) reset(from, to int, blank bool) (full bool, err error) {
	m, room := w.memory, keepResident-w.copied
	switch {
	case blank:
		if w.blank += to - from; w.blank > keepResident {
			return true, m.drop(from, m.reach)
		}
		if w.aging {
			return false, m.drop(from, to)
		}
	case to-from > room:
		m.restore(from, from+room)
		w.copied = keepResident
		return true, m.drop(from+room, m.reach)
	case w.aging:
		kept, err := m.restoreOrDrop(from, to)
		w.copied += kept
		return false, err
	default:
		m.restore(from, to)
		w.copied += to - from
	}
	return false, nil
}

// ages reports whether the reset with that number compares pages.
func (m *Memory) ages(reset uint) bool { return reset%ageEvery == 0 }

// blank reports whether pages beyond the image's stored content were only read: the kernel has mapped its page of zeros there.
func (m *Memory) blank(run region) bool {
	return run.zero() && run.start-m.base() >= uint64(m.image.end)
}

// copyBack restores a run of dirty pages and returns how many bytes it copied.
func (m *Memory) copyBack(run region) int {
	if m.blank(run) {
		return 0
	}
	base := m.base()
	m.restore(int(run.start-base), int(run.end-base))
	return int(run.end - run.start)
}

// restoreOrDrop restores those pages from offset to end that differ from the image, and drops the others. It returns how many bytes it has copied.
func (m *Memory) restoreOrDrop(offset, end int) (copied int, err error) {
	for offset < end {
		first, same := offset, m.same(offset)
		for offset < end && m.same(offset) == same {
			offset += m.image.page
		}
		if !same {
			m.restore(first, offset)
			copied += offset - first
		} else if err := m.drop(first, offset); err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// drop gives private pages back. The next access finds the image's pages or, beyond them, zeros.
func (m *Memory) drop(offset, end int) error {
	if err := unix.Madvise(m.space[offset:end], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("drop pages: %w", err)
	}
	return nil
}

func (m *Memory) resident() (int, error) {
	p := findPagemap()
	if p == nil {
		return m.reach, nil // the system does not tell
	}
	m.finder.found = nil // the finder is used for another search
	return p.resident(&m.finder, m.base(), m.reach)
}

func (p *pagemap) resident(f *finder, base uint64, size int) (int, error) {
	var sum uint64
	for at, end := base, base+uint64(size); at < end; {
		runs, next, err := p.find(f, at, end)
		if err != nil {
			return 0, err
		}
		for _, run := range runs {
			if !run.zero() {
				sum += run.end - run.start
			}
		}
		at = next
	}
	return int(sum), nil
}

func (m *Memory) base() uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.space)))) }
