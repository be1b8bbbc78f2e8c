package heap

import (
	"context"
	"runtime/debug"
	"testing"
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
		{"one as large as the spare memory", 256 << 20, 8 << 30, 100},
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

// TestKeep is not parallel: it changes the process, and changes it back.
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
		t.Errorf("got the limit %d and GOGC %d, want what the environment says to be left alone", limit, gc)
	}
}
