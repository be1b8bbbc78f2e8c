package command

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTellCompiling checks that nothing is printed if compiling is quick, and otherwise one line.
func TestTellCompiling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		busy []time.Duration // the durations of compiling, each followed by a pause
		want int
	}{
		{"nothing", nil, 0},
		{"soon done", []time.Duration{900 * time.Millisecond, 900 * time.Millisecond}, 0},
		{"an interpreter", []time.Duration{10 * time.Second}, 1},
		{"two, one after the other", []time.Duration{2 * time.Second, 500 * time.Millisecond, 3 * time.Second}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var busy atomic.Bool
				var said strings.Builder
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					tellCompiling(ctx, busy.Load, &said)
				}()
				for _, took := range c.busy {
					busy.Store(true)
					time.Sleep(took)
					busy.Store(false)
					time.Sleep(2 * lookInterval)
				}
				cancel()
				<-ended
				if got := strings.Count(said.String(), "\nCompiling: "); got != c.want {
					t.Errorf("printed %d times, want %d: %q", got, c.want, said.String())
				}
			})
		})
	}
}
