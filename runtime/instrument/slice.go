package instrument

import "time"

// The host hands out fuel in slices, and looks at the clock between two. A unit takes between 0.05 ns (code of which the
// processor runs four or five instructions at once) and 16 ns (loads that miss every cache), and a look at the clock some
// 300 ns. So a slice has many units at first, and few as soon as the guest turns out to be slow.
const (
	FirstSlice = 100_000 // units
	minSlice   = 2_500
	maxSlice   = 500_000
	sliceTime  = 200 * time.Microsecond // aimed at
)

// NextSlice returns how many units the next slice should have, after one of units took that long. Slices grow slowly and
// shrink at once, so that slices that take long are rare, however a guest changes its pace.
func NextSlice(units int32, took time.Duration) int32 {
	next := int64(units) * 2
	if took > 0 {
		next = min(next, int64(units)*int64(sliceTime)/int64(took))
	}
	return int32(min(max(next, minSlice), maxSlice))
}
