package linmem

import (
	"cmp"
	"slices"
)

// A layer is an image whose content is another image's but for some pages. Those are stored, one run of them after the other, and
// mapped over the other image's.
type layer struct {
	base   *Image
	runs   []extent // in the memory, by their offsets, never two that touch; whatever lies behind the base's content is in one
	own    []int32  // for each page up to the image's end: its number among the stored ones, or -1: it is the base's
	pieces int      // mappings of files that a memory takes
}

// An extent is a range of whole pages.
type extent struct{ offset, size int }

func (e extent) end() int { return e.offset + e.size }

const (
	// mostRuns bounds the mappings that every memory of a layer takes, two for each run: a process has some 65,000. It also bounds
	// what they cost a reset, 1 µs for 32 runs.
	mostRuns = 32
	// leastShared is how many pages between two runs are worth a mapping. Fewer are stored with the runs.
	leastShared = 8
)

// newRuns returns runs that hold all pages that differ from the base, and few others.
func newRuns(differ []extent, base *Image) []extent {
	if len(differ) == 0 {
		return nil
	}
	// What lies behind the base's content must be in one run, and what is zero there costs nothing.
	if last := &differ[len(differ)-1]; last.end() > base.end {
		first, _ := slices.BinarySearchFunc(differ, base.end, func(e extent, end int) int { return cmp.Compare(e.end(), end+1) })
		from := min(differ[first].offset, base.end)
		differ = append(slices.Clone(differ[:first]), extent{from, last.end() - from})
	}
	shared := make([]int, len(differ)) // shared pages before each run, unless it is joined to the one before
	for n := 1; n < len(differ); n++ {
		for offset := differ[n-1].end(); offset < differ[n].offset; offset += base.page {
			if base.content(offset) != nil {
				shared[n]++
			}
		}
	}
	apart := slices.Repeat([]bool{true}, len(differ)) // from the one before
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

// newLayer returns a layer with those runs, and the image's end.
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

// content is Image.content of the layer's image.
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
