package trouble_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// TestRecurring lets a trouble begin, continue, end and begin again.
func TestRecurring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		disk := trouble.NewRecurring(log.Logger(slog.LevelInfo), slog.LevelWarn, "the disk is not used", "the disk is used again")
		want := func(when string, begun, over int) {
			t.Helper()
			if a, b := log.Count("level=WARN", "the disk is not used"), log.Count("level=INFO", "the disk is used again"); a != begun || b != over {
				t.Errorf("%s: the beginning is logged %d times and the end %d times, want %d and %d", when, a, b, begun, over)
			}
		}
		wrong := errors.New("no space left on device")
		disk.Over()
		want("before", 0, 0)
		disk.Add(wrong, "file", "a")
		disk.Add(wrong, "file", "b")
		disk.Over()
		want("while it comes and goes", 1, 0)
		time.Sleep(2 * time.Second)
		disk.Over()
		disk.Over()
		want("when it is over", 1, 1)
		disk.Add(wrong, "file", "c")
		want("when it begins again", 2, 1)
		for range 5 {
			disk.Add(wrong, "file", "d")
		}
		time.Sleep(10*time.Minute + time.Second)
		disk.Add(wrong, "file", "e")
		want("when it goes on", 3, 1)
		for file, n := range map[string]int{"a": 1, "b": 0, "c": 1, "d": 0, "e": 1} {
			if got := log.Count("file=" + file); got != n {
				t.Errorf("%s is logged %d times, want %d", file, got, n)
			}
		}
		if log.Count("file=e", "not_logged=5") != 1 {
			t.Errorf("the log does not say how many failures got no line: %s", &log)
		}
	})
}
