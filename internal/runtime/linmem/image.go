package linmem

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// granule is the unit of an image's size: a page of WebAssembly, which is a multiple of every system's page.
const granule = 64 << 10

// An Image is the content of a memory at one moment. Any number of memories are made from it and reset to it. It is safe for
// concurrent use. On Linux it takes storage only for the pages that are not all zeros, however many memories share it.
type Image struct {
	size   int
	stored []byte // the content without the zeros at its end; for a layer, only its own part; whole pages; read-only
	blank  []bool // for each page of stored, whether it is all zeros
	page   int    // the system's page size
	filled int    // number of pages that are not all zeros
	end    int    // size in bytes of the content without the zeros at its end
	slot   *slot  // what memories map; if nil, they are plain copies of stored
	layer  *layer // nil: the image has all of its content itself

	mu     sync.Mutex
	users  int // number of memories that are not yet freed
	closed bool
	// foreseen are the pages that a memory of this image is likely to write if it becomes a layer. They are known once one such memory has become a
	// layer, and never change after that.
	foreseen []extent
}

// NewImage makes an image with a copy of content, whose length must be a multiple of 64 KiB. If the system can tell which pages of a memory were
// written (Linux with a readable /proc/self/pagemap), memories share the image's pages until they write them, and a reset copies back only written
// pages. Otherwise the image is like one of NewPlainImage.
func (s *Store) NewImage(content []byte) (*Image, error) {
	image, err := newImage(content)
	if err != nil {
		return nil, err
	}
	p := findPagemap()
	if p == nil {
		image.stored = append([]byte(nil), image.stored...)
		return image, nil
	}
	image.slot, err = s.newSlot(len(image.stored), p)
	if err == nil {
		if err = image.slot.writePages(image.stored, image.blank, image.page); err != nil {
			err = errors.Join(err, image.slot.close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("keep an image of %d bytes: %w", len(content), err)
	}
	image.stored = image.slot.view
	return image, nil
}

// NewPlainImage makes an image with a copy of content on Go's heap. Each of its memories is a whole copy, and each reset copies everything. It is the
// simple twin of Store.NewImage, for systems with nothing better, and for tests that compare the two.
func NewPlainImage(content []byte) (*Image, error) {
	image, err := newImage(content)
	if err != nil {
		return nil, err
	}
	image.stored = append([]byte(nil), image.stored...)
	return image, nil
}

// newImage returns an image whose stored bytes still belong to the caller.
func newImage(content []byte) (*Image, error) {
	if len(content)%granule != 0 {
		return nil, fmt.Errorf("an image of %d bytes: the size must be a multiple of %d, a page of WebAssembly", len(content), granule)
	}
	if uint64(len(content)) > maxReserve {
		return nil, fmt.Errorf("an image of %d bytes: a memory has at most %d", len(content), uint64(maxReserve))
	}
	i := &Image{size: len(content), page: os.Getpagesize()}
	if granule%i.page != 0 {
		return nil, fmt.Errorf("pages of %d bytes: at most %d are supported", i.page, granule)
	}
	end := len(content)
	for end > 0 && isZero(content[end-i.page:end]) {
		end -= i.page
	}
	i.keep(content[:end])
	i.end = end
	return i, nil
}

// keep stores whole pages in the image itself.
func (i *Image) keep(pages []byte) {
	i.stored = pages
	i.blank = make([]bool, len(pages)/i.page)
	for n := range i.blank {
		if i.blank[n] = isZero(pages[n*i.page : (n+1)*i.page]); !i.blank[n] {
			i.filled++
		}
	}
}

// content returns the page at offset, or nil if it is all zeros. Writing zeros is faster than copying them, and the image's file need not
// contain the page.
func (i *Image) content(offset int) []byte {
	if i.layer != nil {
		return i.layer.content(i, offset)
	}
	if offset >= len(i.stored) || i.blank[offset/i.page] {
		return nil
	}
	return i.stored[offset : offset+i.page]
}

// Size returns the size of the image in bytes, including the zeros at its end.
func (i *Image) Size() int { return i.size }

// Resident returns how many bytes the image takes, whether or not it has memories. A layer does not count the pages that it shares.
func (i *Image) Resident() int { return i.filled * i.page }

// Mappings returns how many of the process's mappings a memory of the image takes at most.
func (i *Image) Mappings() int {
	if i.layer != nil {
		return i.layer.pieces + 1 + tails()
	}
	return MaxMappings
}

// Map returns a memory with the image's content that can grow to reserve bytes: at least the image's size, at most 4 GiB.
func (i *Image) Map(reserve uint64) (*Memory, error) {
	if reserve < uint64(i.size) {
		return nil, fmt.Errorf("reserve %d bytes: the image has %d", reserve, i.size)
	}
	if err := i.use(); err != nil {
		return nil, err
	}
	m, err := New(reserve)
	if err != nil {
		return nil, errors.Join(err, i.unuse())
	}
	m.image = i
	if err := m.fill(); err != nil {
		return nil, errors.Join(fmt.Errorf("map an image of %d bytes: %w", i.size, err), m.Free())
	}
	return m, nil
}

// Close says that no more memories will be made. The image's memory is freed with its last user. Close can be called twice.
func (i *Image) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	return i.drop()
}

func (i *Image) use() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return errors.New("map an image: it is closed")
	}
	i.users++
	return nil
}

func (i *Image) unuse() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.users--
	return i.drop()
}

// drop frees what the image holds, once nobody needs it. i.mu is held.
func (i *Image) drop() error {
	if !i.closed || i.users > 0 {
		return nil
	}
	var errs [2]error
	if i.slot != nil {
		errs[0] = i.slot.close()
	}
	if i.layer != nil {
		errs[1] = i.layer.base.unuse()
	}
	i.stored, i.blank = nil, nil
	return errors.Join(errs[:]...)
}
