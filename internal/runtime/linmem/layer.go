package linmem

import (
	"cmp"
	"slices"
)

// A layer is an image that differs from another image, its base, only in some pages. Those pages are stored, one run after another, and
// mapped over the base.
type layer struct {
	base   *Image
	runs   []extent // in order of their offsets in the memory, no two adjacent; everything behind the base's content is in one run
	own    []int32  // for each page up to the image's end: its number among the stored pages, or -1 if it is the base's
	pieces int      // mappings of files in each memory of the layer
}

// An extent is a range of whole pages.
type extent struct{ offset, size int }

func (e extent) end() int { return e.offset + e.size }

const (
	// mostRuns bounds the mappings of each memory of a layer, two for each run: a process has some 65,000. It also bounds what the mappings add to a
	// reset, 1 µs for 32 runs.
	mostRuns = 32
	// leastShared is how many shared pages between two runs are worth a mapping. Fewer are stored with the runs.
	leastShared = 8
)

// newRuns returns runs that contain all pages that differ from the base, and few others.
func newRuns(differ []extent, base *Image) []extent {
	if len(differ) == 0 {
		return nil
	}
	// Everything behind the base's content must be in one run. Zeros in it cost nothing.
	if last := &differ[len(differ)-1]; last.end() > base.end {
		first, _ := slices.BinarySearchFunc(differ, base.end, func(e extent, end int) int { return cmp.Compare(e.end(), end+1) })
		from := min(differ[first].offset, base.end)
		differ = append(slices.Clone(differ[:first]), extent{from, last.end() - from})
	}
	shared := make([]int, len(differ)) // for each run, the shared pages between it and the previous one
	for n := 1; n < len(differ); n++ {
		for offset := differ[n-1].end(); offset < differ[n].offset; offset += base.page {
			if base.content(offset) != nil {
				shared[n]++
			}
		}
	}
	apart := slices.Repeat([]bool{true}, len(differ)) // whether a run is separate from the previous one
	byShared := make([]int, 0, len(differ))
	for n := 1; n < len(differ); n++ {
		byShared = append(byShared, n)
	}
	slices.SortStableFunc(byShared, func(a, b int) int { return shared[b] - shared[a] })
	for k, n := range byShared {
		apart[n] = k < mostRuns-1 && shared[n] >= leastShared
	}
	runs := []extent{differ[0]}
	for n := 1; n < len(differ); n++ {
		if last := &runs[len(runs)-1]; !apart[n] {
			last.size = differ[n].end() - last.offset
		} else {
			runs = append(runs, differ[n])
		}
	}
	return runs
}

// newLayer returns a layer with the given runs, and the image's end.
func newLayer(base *Image, runs []extent) (l *layer, end int) {
	l, end = &layer{base: base, runs: runs}, base.end
	if len(runs) > 0 {
		end = max(end, runs[len(runs)-1].end())
	}
	l.own = slices.Repeat([]int32{-1}, end/base.page)
	stored, at := int32(0), 0
	for _, r := range runs {
		if r.offset > at {
			l.pieces++
		}
		for offset := r.offset; offset < r.end(); offset += base.page {
			l.own[offset/base.page] = stored
			stored++
		}
		l.pieces++
		at = r.end()
	}
	if at < end {
		l.pieces++
	}
	return l, end
}

// content implements Image.content for the layer's image.
func (l *layer) content(i *Image, offset int) []byte {
	n := offset / i.page
	if n >= len(l.own) {
		return nil
	}
	own := int(l.own[n])
	switch {
	case own < 0:
		return l.base.content(offset)
	case i.blank[own]:
		return nil
	}
	return i.stored[own*i.page : (own+1)*i.page]
}
