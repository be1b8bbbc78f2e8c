package linmem_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

const granule = 64 << 10

// kinds are the ways of making an image, all of which must have the same effect.
var kinds = []struct {
	name string
	make func([]byte) (*linmem.Image, error)
}{
	{"image", new(linmem.Store).NewImage},
	{"image without PAGEMAP_SCAN", linmem.NewReadImage},
	{"plain", linmem.NewPlainImage},
	{"layer", newLayer},
}

// newLayer makes an image of content as a layer over a smaller image that differs here and there.
func newLayer(content []byte) (*linmem.Image, error) {
	var store linmem.Store
	under := bytes.Clone(content[:len(content)/granule/2*granule])
	page := os.Getpagesize()
	for at := 0; at < len(under); at += 3 * page {
		under[at] ^= 0x55
		if at%2 == 0 {
			clear(under[at : at+page])
		}
	}
	base, err := store.NewImage(under)
	if err != nil {
		return nil, err
	}
	m, err := base.Map(uint64(len(content)))
	if err != nil {
		return nil, err
	}
	m.Grow(uint64(len(content)))
	for at := 0; at < len(content); at += page {
		part := content[at:min(at+page, len(content))]
		if b := m.Bytes()[at : at+len(part)]; !bytes.Equal(b, part) {
			copy(b, part)
		}
	}
	layer, err := m.Snapshot(&store)
	return layer, errors.Join(err, m.Free(), base.Close())
}

// contents are possible contents of images.
var contents = []struct {
	name string
	size int
	fill func(b []byte)
}{
	{"nothing", 0, func([]byte) {}},
	{"zeros", 2 * granule, func([]byte) {}},
	{"first byte", granule, func(b []byte) { b[0] = 1 }},
	{"last byte", 2 * granule, func(b []byte) { b[len(b)-1] = 1 }},
	{"everywhere", 3 * granule, func(b []byte) { sprinkle(b, 1) }},
	{"zeros at the end", 4 * granule, func(b []byte) { sprinkle(b[:granule+5000], 2) }},
	{"zeros at the start", 4 * granule, func(b []byte) { sprinkle(b[3*granule:], 3) }},
	{"zeros in between", 5 * granule, func(b []byte) { sprinkle(b[:8192], 4); sprinkle(b[4*granule:], 5) }},
	{"one byte in every other page", 2 * granule, func(b []byte) {
		for at := 0; at < len(b); at += 8192 {
			b[at+at/8192] = 1
		}
	}},
}

// sprinkle writes bytes that differ by place and by seed, none of them zero.
func sprinkle(b []byte, seed int) {
	for n := range b {
		b[n] = byte((n*7+n/4096+seed)%255 + 1)
	}
}

func filled(size int, fill func([]byte)) []byte {
	b := make([]byte, size)
	fill(b)
	return b
}

// mapped returns an image of content and a memory of it. Both are closed at the end of the test.
func mapped(t testing.TB, newImage func([]byte) (*linmem.Image, error), content []byte, reserve uint64) (*linmem.Image, *linmem.Memory) {
	t.Helper()
	image, err := newImage(content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := image.Map(reserve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(); err != nil {
			t.Error(err)
		}
		if err := image.Close(); err != nil {
			t.Error(err)
		}
	})
	return image, m
}

func TestMap(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for _, c := range contents {
			t.Run(kind.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				content := filled(c.size, c.fill)
				given := bytes.Clone(content)
				image, m := mapped(t, kind.make, given, 4<<30)
				clear(given) // the image must not change because of that
				if got := image.Size(); got != c.size {
					t.Errorf("Size: got %d, want %d", got, c.size)
				}
				if !bytes.Equal(m.Bytes(), content) {
					t.Error("the memory's content is not the image's")
				}
				if !m.Equal() {
					t.Error("Equal: got false for a new memory")
				}
				if m.Bytes() == nil {
					t.Error("Bytes: got nil")
				}
			})
		}
	}
}

func TestMemoriesAreApart(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			content := filled(2*granule, func(b []byte) { sprinkle(b[:granule], 1) })
			image, first := mapped(t, kind.make, content, 2*granule)
			second, err := image.Map(2 * granule)
			if err != nil {
				t.Fatal(err)
			}
			defer free(t, second)
			for n := range first.Bytes() {
				first.Bytes()[n] = 0xee
			}
			if first.Equal() {
				t.Error("Equal: got true after a write")
			}
			if !bytes.Equal(second.Bytes(), content) {
				t.Error("a write shows in another memory of the image")
			}
			third, err := image.Map(2 * granule)
			if err != nil {
				t.Fatal(err)
			}
			defer free(t, third)
			if !bytes.Equal(third.Bytes(), content) {
				t.Error("a write shows in the image")
			}
		})
	}
}

func free(t testing.TB, m *linmem.Memory) {
	t.Helper()
	if err := m.Free(); err != nil {
		t.Error(err)
	}
}

func TestImageErrors(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 4096, granule - 1, granule + 1} {
				if _, err := kind.make(make([]byte, size)); err == nil || !strings.Contains(err.Error(), "multiple of 65536") {
					t.Errorf("an image of %d bytes: got error %v", size, err)
				}
			}
			image, _ := mapped(t, kind.make, make([]byte, granule), granule)
			for _, c := range []struct {
				reserve uint64
				want    string
			}{
				{0, "the image has 65536"},
				{granule - 1, "the image has 65536"},
				{4<<30 + 1, "at most"},
				{1<<64 - 1, "at most"},
			} {
				if _, err := image.Map(c.reserve); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Map(%d): got error %v, want one with %q", c.reserve, err, c.want)
				}
			}
		})
	}
}

func TestCloseWhileMapped(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			content := filled(2*granule, func(b []byte) { sprinkle(b, 1) })
			image, m := mapped(t, kind.make, content, 2*granule)
			for range 2 {
				if err := image.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			if _, err := image.Map(2 * granule); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("Map of a closed image: got error %v", err)
			}
			clear(m.Bytes())
			if _, err := m.Reset(); err != nil || !bytes.Equal(m.Bytes(), content) {
				t.Errorf("a memory can't be reset once its image is closed (error %v)", err)
			}
			free(t, m)
		})
	}
}

// TestImageIsShared has many goroutines make, use and free memories of one image, which is closed meanwhile.
func TestImageIsShared(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			content := filled(3*granule, func(b []byte) { sprinkle(b[:2*granule], 1) })
			image, err := kind.make(content)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for worker := range 8 {
				m, err := image.Map(4 << 20)
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					for turn := range 20 {
						b := m.Bytes()
						for at := worker * 1000; at < len(b); at += 9000 {
							b[at] = byte(worker + turn)
						}
						if _, err := m.Reset(); err != nil || !bytes.Equal(m.Bytes(), content) {
							t.Errorf("worker %d, turn %d: not restored (error %v)", worker, turn, err)
						}
						if turn%5 != 4 {
							continue
						}
						other, err := image.Map(3 * granule)
						if err != nil {
							continue // closed by now
						}
						if !other.Equal() {
							t.Error("a new memory differs from its image")
						}
						free(t, other)
					}
					free(t, m)
				})
			}
			if err := image.Close(); err != nil {
				t.Error(err)
			}
			all.Wait()
		})
	}
}
