//go:build !linux

package linmem

import "errors"

// A Store keeps the content of images. It needs no closing.
type Store struct{}

// A slot is shared by memories on Linux. On other systems there is none.
type slot struct{ view []byte }

// A finder finds dirty pages on Linux. On other systems it does nothing.
type finder struct{}

// Watch and Unwatch may make Reset faster on Linux. On other systems they do nothing.
func (m *Memory) Watch() {}

// Unwatch does nothing.
func (m *Memory) Unwatch() {}

// Pause does nothing.
func (m *Memory) Pause() bool { return false }

// Resume does nothing.
func (m *Memory) Resume() {}

// A pagemap tells which pages are dirty. Only Linux has one.
type pagemap struct{}

func findPagemap() *pagemap { return nil }

func (*Store) newSlot(int, *pagemap) (*slot, error) {
	return nil, errors.ErrUnsupported
}

func (f *slot) writePages([]byte, []bool, int) error { return errors.ErrUnsupported }

func (i *Image) overlay([]byte) error { return errors.ErrUnsupported }

func (m *Memory) provide() {}

func (s *Store) newLayer(m *Memory) (*Image, error) { return s.NewImage(m.Bytes()) }

func (f *slot) close() error { return nil }

func (m *Memory) resetDirty() (int, error) { return 0, errors.ErrUnsupported }

func (m *Memory) resident() (int, error) { return m.reach, nil }

func tails() int { return 1 }
