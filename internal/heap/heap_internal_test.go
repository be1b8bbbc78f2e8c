package heap

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		alive, limit int64
		want         int
	}{
		{"an empty heap", 0, 8 << 30, 400},
		{"a small one", 20 << 20, 8 << 30, 400},
		{"a heap as large as the spare memory", 256 << 20, 8 << 30, 100},
		{"between", 128 << 20, 8 << 30, 200},
		{"a large one", 4 << 30, 8 << 30, 100},
		{"little memory", 30 << 20, 100 << 20, 100},
		{"none", 1 << 30, 0, 100},
	} {
		if got := percent(test.alive, test.limit); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// TestKeep is not parallel: it changes settings of the process, and restores them.
func TestKeep(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	limit, gc := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer debug.SetMemoryLimit(limit)
	defer debug.SetGCPercent(gc)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Keep(ctx, 3<<30)
	if got := debug.SetMemoryLimit(-1); got != 3<<30 {
		t.Errorf("the limit is %d, want 3 GiB", got)
	}
	if got := debug.SetGCPercent(100); got != 400 {
		t.Errorf("GOGC is %d, want 400", got)
	}
	t.Setenv("GOGC", "50")
	t.Setenv("GOMEMLIMIT", "1GiB")
	Keep(t.Context(), 2<<30) // returns at once
	if limit, gc := debug.SetMemoryLimit(-1), debug.SetGCPercent(100); limit != 3<<30 || gc != 100 {
		t.Errorf("got the limit %d and GOGC %d, want the values from the environment", limit, gc)
	}
}

// TestBrief is not parallel: it changes settings of the process, and restores them.
func TestBrief(t *testing.T) {
	gc := debug.SetGCPercent(100)
	defer debug.SetGCPercent(gc)
	t.Setenv("GOGC", "100")
	Brief()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d, want what the environment says", got)
	}
	t.Setenv("GOGC", "")
	Brief()
	if got := debug.SetGCPercent(100); got != 400 {
		t.Errorf("GOGC is %d, want 400", got)
	}
}

// TestRelease checks that garbage is returned after a time, but not if the program ends before that.
func TestRelease(t *testing.T) {
	const garbage = 64 << 20
	released := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	b := make([]byte, garbage)
	fill(b)
	before := released() // b is in use, so its memory is not among what was released
	runtime.KeepAlive(b)
	Release(t.Context(), time.Millisecond)
	if after := released(); after < before+garbage/2 {
		t.Errorf("%d bytes of the heap were released before and %d after, want %d more", before, after, garbage)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	Release(ended, time.Hour)
}

// fill writes to the memory, so that the system has to provide it.
func fill(b []byte) {
	for i := range b {
		b[i] = 1
	}
}
