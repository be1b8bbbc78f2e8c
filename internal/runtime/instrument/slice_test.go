package instrument_test

import (
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
)

// guest runs slices of a call that takes that many nanoseconds for a unit, and returns how many units the next slice has.
func guest(p *instrument.Pace, slice int32, slices int, perUnit float64) int32 {
	for range slices {
		slice = p.Next(int64(slice), time.Duration(float64(slice)*perUnit))
	}
	return slice
}

// Slices grow to what a guest runs in 200 µs, shrink at once when it becomes slow, and stay small for a while.
// Proves: A tool stops
func TestSlices(t *testing.T) {
	t.Parallel()
	var module instrument.Paces
	p, first := module.Begin()
	if first != 100_000 {
		t.Errorf("the first slice has %d units, want 100000", first)
	}
	near := func(what string, got, want int32) {
		t.Helper()
		if got < want-want/100 || got > want+want/100 {
			t.Errorf("%s: a slice has %d units, want about %d", what, got, want)
		}
	}
	slice := guest(&p, first, 20, 0.5)
	near("a fast guest", slice, 400_000)
	slice = guest(&p, slice, 1, 20)
	near("it becomes slow", slice, 10_000)
	slice = guest(&p, slice, 60, 0.5)
	near("it is fast again", slice, 10_000)
	slice = guest(&p, slice, 20, 0.5)
	near("it has been fast for a while", slice, 400_000)
	slice = guest(&p, slice, 1, 4000)
	near("a pause of the machine", slice, 2_500)
	slice = p.Next(0, 0)
	near("a pause for others", slice, 2_500)
	slice = guest(&p, slice, 80, 0.5)
	near("it is fast after the pauses", slice, 400_000)
	near("others ran", p.Next(0, 0), 5_000)
	near("the guest is fast after others ran", guest(&p, 5_000, 1, 0.5), 400_000)
	near("others ran again", p.Next(0, 0), 5_000)
	near("the guest is slow after others ran", guest(&p, 5_000, 1, 10), 20_000)
}

// A module's first and largest slices are as small as its slowest guest requires. One slow slice may be the machine's fault; two in a row are the
// guest's. The module forgets this in time.
// Proves: A tool stops
func TestSlicesOfAModule(t *testing.T) {
	t.Parallel()
	var module instrument.Paces
	p, slice := module.Begin()
	guest(&p, guest(&p, slice, 1, 100), 1, 0.5)
	if _, first := module.Begin(); first != 100_000 {
		t.Errorf("after a slow slice, the first one of the next call has %d units, want 100000", first)
	}
	other, slice := module.Begin()
	slice = guest(&other, slice, 20, 0.5)
	slow, first := module.Begin()
	guest(&slow, first, 2, 100)
	var fast instrument.Pace
	fast, first = module.Begin()
	if first != 20_000 {
		t.Errorf("after two slow slices, the first one of the next call has %d units, want 20000: 2 ms", first)
	}
	if got := guest(&other, slice, 1, 0.5); got > 20_100 {
		t.Errorf("after two slow slices, the next slice of another running call has %d units, want 20000", got)
	}
	if got := guest(&fast, first, 200, 0.5); got > 25_000 {
		t.Errorf("a fast guest of the module gets %d units, want 20000 or a few more", got)
	}
	if got := guest(&fast, 20_000, 30_000, 0.5); got != 400_000 {
		t.Errorf("after 30,000 fast slices a guest gets %d units, want 400000", got)
	}
}
