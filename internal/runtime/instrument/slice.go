package instrument

import (
	"sync/atomic"
	"time"
)

// The host hands out fuel in slices, and looks at the clock between two. A unit takes between 0.05 ns (code of which the
// processor runs four or five instructions at once) and 16 ns (loads that miss every cache), and a look at the clock some
// 300 ns. So a slice has many units at first, and few as soon as the guest turns out to be slow.
const (
	firstSlice = 100_000 // units, of a module that nothing is known about
	minSlice   = 2_500
	maxSlice   = 500_000
	probe      = 5_000
	sliceTime  = 200 * time.Microsecond // aimed at
	worstTime  = 2 * time.Millisecond   // that a slice takes at most where the guest turns to the slowest pace of its module
	// keepSlices is for how many slices a guest keeps to its slowest pace. The smallest slice is half as fast as a large one, so after
	// a pause of the whole machine, which looks like a slow guest, that costs some 50 µs.
	keepSlices = 64
)

// Paces is what is known of the pace of a module's guests. Its zero value knows nothing. It is safe for concurrent use.
type Paces struct {
	slowest atomic.Int64 // picoseconds that a unit took; 0 means not known
}

// most returns how many units a slice may have.
func (p *Paces) most() int32 {
	slowest := p.slowest.Load()
	if slowest == 0 {
		return maxSlice
	}
	return units(worstTime, slowest)
}

// note takes note of a pace. The slowest is forgotten in some ten thousand slices in which guests were faster: whatever made them slow may be over, and
// small slices make all of them slower.
func (p *Paces) note(pace int64) {
	switch slowest := p.slowest.Load(); {
	case pace > slowest:
		p.slowest.CompareAndSwap(slowest, pace)
	case pace < slowest/2 && p.most() < maxSlice:
		p.slowest.CompareAndSwap(slowest, slowest-slowest>>12-1)
	}
}

// units returns how many units a slice needs to take so long at a pace.
func units(take time.Duration, pace int64) int32 {
	return int32(min(max(int64(take)*1000/max(pace, 1), minSlice), maxSlice))
}

// A Pace finds the size of the slices of one call of a module.
type Pace struct {
	module *Paces
	slice  int32
	keep   int   // slices in which it does not grow
	last   int64 // picoseconds that a unit of the slice before took; 0 means not known
	probes bool  // the next slice is a short one, to find out
}

// Begin returns the pace of a call that begins, and how many units its first slice should have.
func (p *Paces) Begin() (pace Pace, first int32) {
	pace = Pace{module: p, slice: min(firstSlice, p.most())}
	return pace, pace.slice
}

// Next returns how many units the next slice should have. The guest took so long for used units before; 0 if that is not known, because
// others ran meanwhile. Slices shrink at once and grow slowly, so that slices that take long are rare, however a guest changes its pace.
func (p *Pace) Next(used int64, took time.Duration) int32 {
	if used <= 0 || took <= 0 {
		p.last, p.probes = 0, true
		return min(p.slice, probe)
	}
	pace := int64(took) * 1000 / used
	// What the machine does meanwhile makes a slice look slow, but hardly two in a row.
	p.module.note(min(pace, p.last))
	probed := p.probes
	p.last, p.probes = pace, false
	switch fit := units(sliceTime, pace); {
	case fit < p.slice:
		p.slice, p.keep = fit, keepSlices
	case p.keep > 0:
		p.keep--
	case !probed:
		p.slice = min(2*p.slice, fit)
	}
	p.slice = min(p.slice, p.module.most())
	return p.slice
}
