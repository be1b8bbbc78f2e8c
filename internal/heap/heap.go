// Package heap sets Go's garbage collector so that it uses the available memory, and no more.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// spare is how much garbage may pile up before it is collected, in bytes. By Go's default it may be as much as the live data: a server with
	// little data would then spend a quarter of its processor time on collections.
	spare = 256 << 20
	// most and least bound the value of GOGC.
	most, least = 400, 100
	period      = 5 * time.Second
)

// Keep keeps Go's heap below limit bytes as far as it can, with as few collections as the memory allows, until ctx ends. GOGC and GOMEMLIMIT in the
// environment take precedence.
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

// Brief makes collections rare, for a program that ends in a moment. GOGC in the environment takes precedence.
func Brief() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(most)
	}
}

// Release waits for the given time, and then returns to the system the memory that the start of the program no longer needs, unless ctx ends first.
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

// percent returns the value of GOGC, rounded so that it rarely changes.
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
