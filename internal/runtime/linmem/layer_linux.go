package linmem

import (
	"errors"
	"fmt"
)

// newLayer makes a layer over the memory's image, whose pages the memory shares unless they are dirty.
func (s *Store) newLayer(m *Memory) (*Image, error) {
	base := m.image
	if m.size%granule != 0 {
		return nil, fmt.Errorf("an image of %d bytes: the size must be a multiple of %d, a page of WebAssembly", m.size, granule)
	}
	differ, err := m.differing()
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
	return i, nil
}

// fill writes the pages of the layer's runs to its slot, but for those that are all zeros.
func (i *Image) fill(m *Memory, differ []extent) error {
	for _, r := range i.layer.runs {
		for offset := r.offset; offset < r.end(); offset += i.page {
			for len(differ) > 0 && differ[0].end() <= offset {
				differ = differ[1:]
			}
			// Where the memory has what its image has, a look at the memory would make the kernel store zeros that are a hole.
			content := i.layer.base.content(offset)
			if len(differ) > 0 && differ[0].offset <= offset {
				if content = m.space[offset : offset+i.page]; isZero(content) {
					content = nil
				}
			}
			if content != nil {
				if err := i.slot.write(content, len(i.blank)*i.page); err != nil {
					return err
				}
				i.filled++
			}
			i.blank = append(i.blank, content == nil)
		}
	}
	return nil
}

// differing returns the runs of pages that are not as in the memory's image.
func (m *Memory) differing() (differ []extent, err error) {
	p, base := m.image.slot.pagemap, m.base()
	m.finder.found = nil // the finder is used for something else
	for at, end := base, base+uint64(wholePages(m.size)); at < end; {
		runs, next, err := p.find(&m.finder, at, end)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
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
	return differ, nil
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
