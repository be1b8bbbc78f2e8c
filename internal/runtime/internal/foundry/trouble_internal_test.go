package foundry

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestTroubleInLog makes trouble with the cache begin, go on, end and begin again.
func TestTroubleInLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		f := &furnace{log: log.Logger(slog.LevelInfo)}
		f.trouble.warn = map[string]*seldom{notKept: {}}
		want := func(when string, begun, over int) {
			t.Helper()
			if a, b := log.Count("level=WARN", notKept), log.Count("level=INFO", "well again"); a != begun || b != over {
				t.Errorf("%s: the beginning is told %d times and the end %d times, want %d and %d", when, a, b, begun, over)
			}
		}
		wrong := errors.New("no space left on device")
		f.over(notKept, "well again")
		want("before", 0, 0)
		f.warn(notKept, wrong)
		f.warn(notKept, wrong)
		f.over(notKept, "well again")
		want("while it comes and goes", 1, 0)
		time.Sleep(2 * time.Second)
		f.over(notKept, "well again")
		f.over(notKept, "well again")
		want("when it is over", 1, 1)
		f.warn(notKept, wrong)
		want("when it begins again", 2, 1)
		time.Sleep(warnTime + time.Second)
		f.warn(notKept, wrong)
		want("when it goes on", 3, 1)
	})
}
