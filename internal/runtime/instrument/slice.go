package instrument

import (
	"sync/atomic"
	"time"
)

// The host hands out fuel in slices, and reads the clock between two of them. A unit takes between 0.05 ns (the processor runs four or five
// instructions at once) and 16 ns (loads that miss every cache). Reading the clock takes some 300 ns. So a slice has many units at first, and few
// once the guest turns out to be slow.
const (
	firstSlice = 100_000 // units, for a module whose pace is not known
	minSlice   = 2_500
	maxSlice   = 500_000
	probe      = 5_000
	sliceTime  = 200 * time.Microsecond // aimed at
	worstTime  = 2 * time.Millisecond   // the most that a slice takes if the guest changes to the slowest pace of its module
	// keepSlices is the number of slices for which the size does not grow after it has shrunk. The smallest slices run at half the speed of
	// large ones. So a pause of the whole machine, which looks like a slow guest, costs some 50 µs.
	keepSlices = 64
)

// Paces is what is known about the pace of a module's guests. Its zero value knows nothing. It is safe for concurrent use.
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

// note records a pace. The slowest pace is forgotten after some ten thousand slices in which guests were faster: whatever made them slow may be over,
// and small slices slow down all guests.
func (p *Paces) note(pace int64) {
	switch slowest := p.slowest.Load(); {
	case pace > slowest:
		p.slowest.CompareAndSwap(slowest, pace)
	case pace < slowest/2 && p.most() < maxSlice:
		p.slowest.CompareAndSwap(slowest, slowest-slowest>>12-1)
	}
}

// units returns how many units take that long at a pace.
func units(take time.Duration, pace int64) int32 {
	return int32(min(max(int64(take)*1000/max(pace, 1), minSlice), maxSlice))
}

// A Pace determines the size of the slices of one call.
type Pace struct {
	module *Paces
	slice  int32
	keep   int   // slices in which the size does not grow
	last   int64 // picoseconds that a unit took in the previous slice; 0 means not known
	probes bool  // the next slice is a short one, to measure the pace
}

// Begin returns the Pace of a new call, and how many units its first slice should have.
func (p *Paces) Begin() (pace Pace, first int32) {
	pace = Pace{module: p, slice: min(firstSlice, p.most())}
	return pace, pace.slice
}

// Next returns how many units the next slice should have. took is how long the guest took for used units; either is 0 if that is not known, because
// others ran meanwhile. Slices shrink at once and grow slowly, so that slices that take long are rare, however a guest changes its pace.
func (p *Pace) Next(used int64, took time.Duration) int32 {
	if used <= 0 || took <= 0 {
		p.last, p.probes = 0, true
		return min(p.slice, probe)
	}
	pace := int64(took) * 1000 / used
	// A pause of the machine makes one slice look slow, but hardly two in a row.
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
