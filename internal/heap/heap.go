// Package heap has Go's collector use the available memory, and no more.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// spare is how much garbage may lie around before it is collected, in bytes. A server whose own data are small, with Go's
	// default of as much garbage as data, spends a quarter of its processors' time on collecting.
	spare = 256 << 20
	// most and least bound the garbage in percent of what is alive.
	most, least = 400, 100
	period      = 5 * time.Second
)

// Keep keeps Go's heap below limit bytes as far as it can, with as few collections as there is memory for, until ctx ends. What
// the environment says in GOGC and GOMEMLIMIT holds instead.
func Keep(ctx context.Context, limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for now := 0; ; {
		if next := percent(alive(), limit); next != now {
			debug.SetGCPercent(next)
			now = next
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Brief makes Go collect seldom, for a program that ends in a moment. What the environment says in GOGC holds instead.
func Brief() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(most)
	}
}

// Release gives back to the system, once after a time, the memory that the start of a program has left over, unless ctx ends before.
// It is for programs that must be small rather than fast.
func Release(ctx context.Context, after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		debug.FreeOSMemory()
	case <-ctx.Done():
	}
}

// percent returns how much garbage may lie around, in percent of what is alive, rounded so that it seldom changes.
func percent(alive, limit int64) int {
	garbage := min(spare, limit/4)
	return int(min(most, max(least, garbage*100/max(alive, 1)/25*25)))
}

// alive returns the bytes of the heap that the last collection found in use.
func alive() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return spare
	}
	return int64(sample[0].Value.Uint64())
}
