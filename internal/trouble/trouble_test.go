package trouble_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// TestTrouble begins and ends a trouble again and again: each time is logged once.
func TestTrouble(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	away := trouble.New(log.Logger(slog.LevelInfo), slog.LevelWarn, "it is away", "it is back")
	for i, c := range []struct {
		why     error
		changed bool
	}{{nil, false}, {errors.New("one"), true}, {errors.New("two"), false}, {nil, true}, {nil, false}, {errors.New("three"), true}} {
		if away.Set(c.why) != c.changed {
			t.Errorf("step %d: Set(%v) reports a change: %t", i, c.why, !c.changed)
		}
	}
	for line, want := range map[[2]string]int{{"level=WARN", "it is away"}: 2, {"level=INFO", "it is back"}: 1, {"error=one", ""}: 1, {"error=two", ""}: 0, {"error=three", ""}: 1} {
		if n := log.Count(line[0], line[1]); n != want {
			t.Errorf("%q is logged %d times, want %d: %s", line, n, want, log)
		}
	}
}

// TestTroubleOfMany reports the same trouble from many goroutines at once: it is logged once.
func TestTroubleOfMany(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	away := trouble.New(log.Logger(slog.LevelInfo), slog.LevelWarn, "it is away", "it is back")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { away.Set(errors.New("away")) })
	}
	all.Wait()
	if n := log.Count("it is away"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, log)
	}
}
