package linmem

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// newLayer makes a layer over the memory's image. The memory shares the image's pages except the dirty ones.
func (s *Store) newLayer(m *Memory) (*Image, error) {
	base := m.image
	if m.size%granule != 0 {
		return nil, fmt.Errorf("an image of %d bytes: the size must be a multiple of %d, a page of WebAssembly", m.size, granule)
	}
	differ, dirty, err := m.differing()
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if err := base.use(); err != nil {
		return nil, err
	}
	i := &Image{size: m.size, page: base.page}
	i.layer, i.end = newLayer(base, newRuns(differ, base))
	size := 0
	for _, r := range i.layer.runs {
		size += r.size
	}
	if i.slot, err = s.newSlot(size, base.slot.pagemap); err != nil {
		return nil, fmt.Errorf("keep a layer of %d bytes: %w", size, errors.Join(err, base.unuse()))
	}
	if err := i.fill(m, differ); err != nil {
		return nil, fmt.Errorf("keep a layer of %d bytes: %w", size, errors.Join(err, i.slot.close(), base.unuse()))
	}
	i.stored = i.slot.view
	base.foresee(dirty)
	return i, nil
}

// mostForeseen is how many bytes of pages a memory gets before they are written. More would be a risk, since one guest may have written more
// than others will.
const mostForeseen = 8 << 20

// foresee records which of the image's pages were written in a memory that becomes a layer, unless there are too many. The next such memory is likely
// to write the same ones.
func (i *Image) foresee(dirty []extent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.foreseen != nil {
		return
	}
	foreseen, size := make([]extent, 0, len(dirty)), 0
	for _, e := range dirty {
		if e.size = min(e.end(), i.end) - e.offset; e.size <= 0 {
			break
		}
		foreseen, size = append(foreseen, e), size+e.size
	}
	if size <= mostForeseen {
		i.foreseen = foreseen
	}
}

// provide gives a new memory pages of its own where it is likely to write. A guest reads most of them before it writes them. When a page that was
// read is then written, it must be unmapped on all processors that run threads of the process. That was 12 of the 26 ms of processor time that the
// start of a script in Python took (bench/cmd/scale -engine python -scripts 400, with two processors). A system that can't provide pages (before
// Linux 5.14) goes the slow way.
func (m *Memory) provide() {
	m.image.mu.Lock()
	foreseen := m.image.foreseen
	m.image.mu.Unlock()
	for _, e := range foreseen {
		if unix.Madvise(m.space[e.offset:e.end()], unix.MADV_POPULATE_WRITE) != nil {
			return
		}
	}
}

// fill writes the pages of the layer's runs to its slot, except those that are all zeros.
func (i *Image) fill(m *Memory, differ []extent) error {
	stored := 0
	for _, r := range i.layer.runs {
		first := r.offset // start of the pages that will be written together
		write := func(end int) error { return i.slot.write(m.space[first:end], stored+first-r.offset) }
		for offset := r.offset; offset < r.end(); offset += i.page {
			for len(differ) > 0 && differ[0].end() <= offset {
				differ = differ[1:]
			}
			// If the memory's page is the image's, don't read it in the memory: that would make the kernel store the zeros of a hole.
			blank := i.layer.base.content(offset) == nil
			if len(differ) > 0 && differ[0].offset <= offset {
				blank = isZero(m.space[offset : offset+i.page])
			}
			i.blank = append(i.blank, blank)
			if !blank {
				i.filled++
				continue
			}
			if err := write(offset); err != nil {
				return err
			}
			first = offset + i.page
		}
		if err := write(r.end()); err != nil {
			return err
		}
		stored += r.size
	}
	return nil
}

// differing returns the runs of pages that differ from the memory's image, and the runs of all pages that were written.
func (m *Memory) differing() (differ, dirty []extent, err error) {
	p, base := m.image.slot.pagemap, m.base()
	m.finder.found = nil // the finder is used for another search
	for at, end := base, base+uint64(wholePages(m.size)); at < end; {
		runs, next, err := p.find(&m.finder, at, end)
		if err != nil {
			return nil, nil, err
		}
		for _, run := range runs {
			dirty = append(dirty, extent{int(run.start - base), int(run.end - run.start)})
			for offset := int(run.start - base); offset < int(run.end-base); offset += m.image.page {
				if m.same(offset) {
					continue
				}
				if last := len(differ) - 1; last >= 0 && differ[last].end() == offset {
					differ[last].size += m.image.page
				} else {
					differ = append(differ, extent{offset, m.image.page})
				}
			}
		}
		at = next
	}
	return differ, dirty, nil
}

// overlay maps the image over the start of space, as far as it has content.
func (i *Image) overlay(space []byte) error {
	if i.layer == nil {
		return i.slot.overlay(space)
	}
	if err := i.layer.base.slot.overlay(space); err != nil {
		return err
	}
	stored := 0
	for _, r := range i.layer.runs {
		if err := i.slot.overlayPart(space[r.offset:], extent{stored, r.size}); err != nil {
			return err
		}
		stored += r.size
	}
	return nil
}
