package linmem_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// over returns a layer over an image. The function change makes the changes, in a memory with room for size bytes.
func over(t testing.TB, store *linmem.Store, base *linmem.Image, size int, change func(b []byte)) *linmem.Image {
	t.Helper()
	m, err := base.Map(uint64(size))
	if err != nil {
		t.Fatal(err)
	}
	defer free(t, m)
	change(m.Grow(uint64(size)))
	layer, err := m.Snapshot(store)
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func shut(t testing.TB, image *linmem.Image) {
	t.Helper()
	if err := image.Close(); err != nil {
		t.Error(err)
	}
}

// TestLayerStoresWhatDiffers makes layers of several forms over an image of 800 pages and as many zeros. It checks what they store, and how many
// mappings their memories take.
func TestLayerStoresWhatDiffers(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	page := os.Getpagesize()
	if page != 4096 {
		t.Skip("the numbers are those of pages of 4 KiB")
	}
	content := filled(100*granule, func(b []byte) { sprinkle(b[:50*granule], 1) })
	at := func(pages ...int) func(b []byte) {
		return func(b []byte) {
			for _, n := range pages {
				b[n*page+5] ^= 0xff
			}
		}
	}
	every := func(step, count int) func(b []byte) {
		return func(b []byte) {
			for n := range count {
				b[n*step*page] ^= 0xff
			}
		}
	}
	for _, c := range []struct {
		name          string
		size          int // in granules
		change        func(b []byte)
		pages, pieces int
	}{
		{"nothing", 100, func([]byte) {}, 0, 1},
		{"writes of the bytes that were there", 100, func(b []byte) { copy(b, bytes.Clone(b)) }, 0, 1},
		{"one page", 100, at(7), 1, 3},
		{"the first page", 100, at(0), 1, 2},
		{"the last page", 100, at(799), 1, 2},
		{"two pages far apart", 100, at(7, 30), 2, 5},
		{"two pages too close for another mapping", 100, at(7, 15), 9, 3},
		{"a page that became zero", 100, func(b []byte) { clear(b[9*page : 10*page]) }, 0, 3},
		{"behind the content", 100, at(1000, 1400), 2, 2},
		{"across the end of the content", 100, at(795, 1400), 6, 2},
		{"grown", 110, at(1700), 1, 2},
		{"grown by zeros", 110, func([]byte) {}, 0, 1},
		{"in too many places", 100, every(20, 40), 40 + 8*19, 64},
		{"everywhere", 100, func(b []byte) { sprinkle(b, 3) }, 1600, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var store linmem.Store
			base, err := store.NewImage(content)
			if err != nil {
				t.Fatal(err)
			}
			want := filled(c.size*granule, func(b []byte) { copy(b, content) })
			c.change(want)
			layer := over(t, &store, base, c.size*granule, c.change)
			m, err := layer.Map(uint64(c.size+10) * granule)
			if err != nil {
				t.Fatal(err)
			}
			if m.Mappings() > layer.Mappings() {
				t.Errorf("a memory takes %d mappings, the image says %d at most", m.Mappings(), layer.Mappings())
			}
			if got := m.SystemMappings(t); got > m.Mappings() {
				t.Errorf("a memory has %d mappings, and says %d", got, m.Mappings())
			}
			if copied, err := m.Reset(); err != nil || copied != 0 {
				t.Errorf("Reset of a new memory: got %d, %v", copied, err)
			}
			if !bytes.Equal(m.Bytes(), want) || !m.Equal() {
				t.Error("the memory's content is not the layer's")
			}
			if plain, err := m.Resident(); err == nil && plain == len(m.Bytes()) {
				t.Skip("this system does not report what was written: images are whole copies")
			}
			if got := layer.Resident() / page; got != c.pages {
				t.Errorf("it stores %d pages, want %d", got, c.pages)
			}
			if got := m.Mappings() - 1; got != c.pieces && m.Mappings() != layer.Mappings() {
				t.Errorf("a memory takes %d mappings of files, want %d", got, c.pieces)
			}
			free(t, m)
			for _, i := range []*linmem.Image{base, layer} {
				if err := i.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPagesAreForeseen makes layers from memories of an image. From its start, the next memory of the image has pages of its own, with the image's
// content, where the first of those memories wrote. A memory that wrote more than the bound costs the others nothing.
func TestPagesAreForeseen(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	const size = 400 * granule
	content := filled(size, func(b []byte) { sprinkle(b[:390*granule], 1) })
	var store linmem.Store
	base, err := store.NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, base)
	if !linmem.Provides(t, base) {
		t.Skip("the system does not report which pages were written, or can't provide them before")
	}
	for _, c := range []struct {
		name   string
		change func(b []byte)
		want   int // pages
	}{
		{"everything", func(b []byte) { sprinkle(b, 7) }, 0},
		{"pages 10 to 109 as they were, page 200, and zeros at the end", func(b []byte) {
			copy(b[10*page:110*page], content[10*page:])
			b[200*page], b[size-1] = 0, 1
		}, 101},
		{"pages 300 to 399", func(b []byte) { sprinkle(b[300*page:400*page], 4) }, 101},
		{"nothing", func([]byte) {}, 101},
	} {
		shut(t, over(t, &store, base, size, c.change))
		m, err := base.Map(size)
		if err != nil {
			t.Fatal(err)
		}
		resident, err := m.Resident()
		if err != nil {
			t.Error(err)
		}
		if got := resident / page; got != c.want {
			t.Errorf("after a layer that wrote %s: got %d pages that are a new memory's own, want %d", c.name, got, c.want)
		}
		if !m.Equal() || !bytes.Equal(m.Bytes(), content) {
			t.Errorf("after a layer that wrote %s: a new memory differs from its image", c.name)
		}
		free(t, m)
	}
}

// TestLayersAreApart makes layers over one image and memories of them, and closes them and the image in every order. What one of them writes never
// shows in another, and those that stay keep their content.
// Proves: A tool touches no memory but its own
func TestLayersAreApart(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	content := filled(40*granule, func(b []byte) { sprinkle(b[:30*granule], 1) })
	change := func(seed int) func([]byte) {
		return func(b []byte) {
			sprinkle(b[seed*granule:(seed+1)*granule], seed)
			b[35*granule] = byte(seed)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 20
	if testkit.Emulated() { // under an emulator, each turn takes ten times as long
		rounds = 5
	}
	for range rounds {
		var store linmem.Store
		base, err := store.NewImage(content)
		if err != nil {
			t.Fatal(err)
		}
		images := []*linmem.Image{base}
		wants := [][]byte{content}
		for seed := 1; seed <= 3; seed++ {
			images = append(images, over(t, &store, base, 40*granule, change(seed)))
			want := bytes.Clone(content)
			change(seed)(want)
			wants = append(wants, want)
		}
		var memories []*linmem.Memory
		for k, i := range images {
			m, err := i.Map(64 * granule)
			if err != nil {
				t.Fatal(err)
			}
			sprinkle(m.Bytes()[k*5*granule:], 77+k) // another memory must not see this
			memories = append(memories, m)
		}
		for _, n := range r.Perm(2 * len(images)) {
			if n < len(images) {
				if err := images[n].Close(); err != nil {
					t.Error(err)
				}
				continue
			}
			n -= len(images)
			m := memories[n]
			if _, err := m.Reset(); err != nil || !bytes.Equal(m.Bytes(), wants[n]) {
				t.Fatalf("memory %d differs from its image (error %v)", n, err)
			}
			m.Grow(50 * granule)[45*granule]++
			if _, err := m.Reset(); err != nil || !bytes.Equal(m.Bytes(), wants[n]) || !m.Equal() {
				t.Fatalf("memory %d, which has grown, differs from its image (error %v)", n, err)
			}
			free(t, m)
		}
		if n := store.Arenas(); n != 0 {
			t.Fatalf("%d files are left when everything is closed", n)
		}
		if _, err := base.Map(64 * granule); err == nil {
			t.Error("a closed image can be mapped because of a layer")
		}
	}
}

// TestLayerOfClosedImage makes a snapshot of a memory whose image is closed. That can't be a layer, so it is an error.
func TestLayerOfClosedImage(t *testing.T) {
	t.Parallel()
	var store linmem.Store
	_, m := mapped(t, store.NewImage, filled(granule, func(b []byte) { b[0] = 1 }), granule)
	layer, err := m.Snapshot(&store)
	if err != nil {
		t.Fatal(err)
	}
	again := over(t, &store, layer, granule, func(b []byte) { b[1] = 2 }) // over a layer
	two, err := again.Map(granule)
	if err != nil {
		t.Fatal(err)
	}
	if b := two.Bytes(); b[0] != 1 || b[1] != 2 {
		t.Errorf("got % x, want 01 02", b[:2])
	}
	free(t, two)
	for _, i := range []*linmem.Image{layer, again} {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	free(t, m)
	if _, err := m.Snapshot(&store); err == nil {
		t.Error("a memory that is freed has a snapshot")
	}
}

// TestZerosStayHoles makes an image with a region of zeros that was never touched, and a layer over it. The region takes no memory in either,
// although all of it is compared, reset and searched for differences.
func TestZerosStayHoles(t *testing.T) {
	t.Parallel()
	var store linmem.Store
	base, err := store.NewImage(filled(300*granule, func(b []byte) { sprinkle(b[:granule], 1); sprinkle(b[299*granule:], 2) }))
	if err != nil {
		t.Fatal(err)
	}
	layer := over(t, &store, base, 300*granule, func(b []byte) { b[3], b[298*granule], b[290*granule] = 9, 9, 9 })
	m, err := layer.Map(400 * granule)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		m.Bytes()[5]++
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if got, most := store.Blocks(t), int64(5*granule); got > most {
		t.Errorf("the files take %d bytes, want %d at most", got, most)
	}
	free(t, m)
	for _, i := range []*linmem.Image{base, layer} {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLayerTakesNoHeap makes a layer whose runs span 16 MiB of zeros, which are neither copied nor read. It is not parallel, since other tests'
// allocations would count.
func TestLayerTakesNoHeap(t *testing.T) {
	var store linmem.Store
	_, m := mapped(t, store.NewImage, filled(300*granule, func(b []byte) { b[0], b[299*granule] = 1, 1 }), 300*granule)
	m.Bytes()[granule], m.Bytes()[290*granule] = 2, 2
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	layer, err := m.Snapshot(&store)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("a layer of two pages takes %d bytes of the heap", took)
	}
	if err := layer.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzLayer changes an image in random places. It compares the layer, and its memories after calls that write, with a plain copy.
// Proves: A tool touches no memory but its own
func FuzzLayer(f *testing.F) {
	f.Add(uint64(1), uint8(10), uint8(10), uint8(3))
	f.Add(uint64(2), uint8(1), uint8(200), uint8(0))
	f.Add(uint64(3), uint8(40), uint8(41), uint8(255))
	f.Fuzz(func(t *testing.T, seed uint64, granules, grown, changes uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		page := os.Getpagesize()
		size := int(granules%12) * granule
		content := make([]byte, size)
		scatter := func(b []byte, times int) {
			for range times {
				if len(b) == 0 {
					return
				}
				at := r.IntN(len(b)) / page * page
				end := min(len(b), at+page*(1+r.IntN(8)))
				switch r.IntN(3) {
				case 0:
					clear(b[at:end])
				case 1:
					b[at+r.IntN(page)] = byte(r.Int())
				default:
					sprinkle(b[at:end], r.IntN(256))
				}
			}
		}
		scatter(content, 40)
		var store linmem.Store
		base, err := store.NewImage(content)
		if err != nil {
			t.Fatal(err)
		}
		size = max(size, int(grown%12)*granule)
		want := append(content, make([]byte, size-len(content))...)
		r = rand.New(rand.NewPCG(seed, 1))
		scatter(want, int(changes))
		r = rand.New(rand.NewPCG(seed, 1))
		layer := over(t, &store, base, size, func(b []byte) { scatter(b, int(changes)) })
		m, err := layer.Map(uint64(size + granule))
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 3 {
			if !bytes.Equal(m.Bytes(), want) || !m.Equal() {
				t.Fatalf("turn %d: the memory is not as it should be", turn)
			}
			scatter(m.Bytes(), 20)
			if turn == 1 {
				scatter(m.Grow(uint64(size+granule)), 5)
			}
			if _, err := m.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		free(t, m)
		for _, i := range []*linmem.Image{base, layer} {
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := store.Arenas(); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}
