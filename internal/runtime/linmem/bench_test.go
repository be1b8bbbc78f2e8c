package linmem_test

import (
	"fmt"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

// guests are the sizes of real guests: their pages of 64 KiB, and how many of these are not empty.
var guests = []struct {
	name          string
	pages, filled int
}{
	{"rust", 18, 2},
	{"go", 64, 40},
}

func guestImage(pages, filledPages int) []byte {
	// A stack of zeros, the data, and heap that was never used.
	return filled(pages*granule, func(b []byte) { sprinkle(b[len(b)/2-filledPages*granule/2:][:filledPages*granule], 1) })
}

func BenchmarkNewImage(b *testing.B) {
	for _, g := range guests {
		for _, kind := range kinds[:1:1] {
			b.Run(g.name, func(b *testing.B) {
				content := guestImage(g.pages, g.filled)
				b.ReportAllocs()
				for b.Loop() {
					image, err := kind.make(content)
					if err != nil {
						b.Fatal(err)
					}
					if err := image.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkMapFree(b *testing.B) {
	for _, g := range guests {
		for _, kind := range kinds {
			b.Run(g.name+"/"+kind.name, func(b *testing.B) {
				image, err := kind.make(guestImage(g.pages, g.filled))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					m, err := image.Map(64 << 20)
					if err != nil {
						b.Fatal(err)
					}
					if err := m.Free(); err != nil {
						b.Fatal(err)
					}
				}
				if err := image.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkReset writes a byte to each of some pages, spread over the memory, and resets it.
func BenchmarkReset(b *testing.B) {
	for _, g := range []struct{ pages, dirty int }{
		{1, 1}, {18, 0}, {18, 3}, {18, 30}, {64, 3}, {64, 30}, {64, 100}, {64, 500}, {1000, 3}, {1000, 100}, {1000, 500},
	} {
		content := guestImage(g.pages, max(1, g.pages/2))
		for _, kind := range kinds {
			b.Run(fmt.Sprintf("pages=%d/dirty=%d/%s", g.pages, g.dirty, kind.name), func(b *testing.B) {
				_, m := mapped(b, kind.make, content, 64<<20)
				memory := m.Bytes()
				b.ReportAllocs()
				for b.Loop() {
					for n := range g.dirty {
						memory[len(memory)/4096*n/g.dirty*4096]++
					}
					if _, err := m.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkWatchedReset is BenchmarkReset with the same pages written each time, under Watch.
func BenchmarkWatchedReset(b *testing.B) {
	for _, g := range []struct{ pages, dirty int }{{18, 3}, {64, 30}, {1000, 3}} {
		b.Run(fmt.Sprintf("pages=%d/dirty=%d", g.pages, g.dirty), func(b *testing.B) {
			_, m := mapped(b, new(linmem.Store).NewImage, guestImage(g.pages, max(1, g.pages/2)), 64<<20)
			memory := m.Bytes()
			b.ReportAllocs()
			for b.Loop() {
				m.Watch()
				for n := range g.dirty {
					memory[len(memory)/4096*n/g.dirty*4096]++
				}
				if _, err := m.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkResetAfterReads reads pages that were never written, such as those with a guest's constants.
func BenchmarkResetAfterReads(b *testing.B) {
	_, m := mapped(b, new(linmem.Store).NewImage, guestImage(18, 2), 64<<20)
	memory := m.Bytes()
	b.ReportAllocs()
	for b.Loop() {
		for _, at := range []int{8 * granule, 8*granule + 5*4096, 9 * granule} {
			if memory[at] == 0 {
				b.Fatal("nothing to read")
			}
		}
		memory[7*granule]++
		memory[9*granule+9*4096]++
		memory[16*granule]++
		if _, err := m.Reset(); err != nil {
			b.Fatal(err)
		}
	}
}
