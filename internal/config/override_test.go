package config_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

func TestLaterOverridesWin(t *testing.T) {
	t.Parallel()
	c := parse(t, `
[limits]
fuel = 100
queue = 3
[[override]]
match = "math"
timeout = "1s"
memory = "1MiB"
[[override]]
match = "math/add"
timeout = "2s"
fuel = 0
queue = 0
[[override]]
match = "*/sub"
timeout = "3s"
concurrency = 1
[[override]]
match = "math/sub"
concurrency = 0
`)
	d := config.Default().Limits
	tests := map[string]func(l *limits.Limits){
		"/web/get":  func(l *limits.Limits) {},
		"/math/mul": func(l *limits.Limits) { l.Timeout, l.Memory = time.Second, 1<<20 },
		"/math/add": func(l *limits.Limits) { l.Timeout, l.Memory, l.Fuel, l.Queue = 2*time.Second, 1<<20, 0, -1 },
		"/math/sub": func(l *limits.Limits) { l.Timeout, l.Memory = 3*time.Second, 1<<20 },
		"/web/sub":  func(l *limits.Limits) { l.Timeout, l.Concurrency = 3*time.Second, 1 },
	}
	for path, change := range tests {
		want := d
		want.Fuel, want.Queue = 100, 3
		change(&want)
		if got := configured.Limits(c, path); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// TestOverridesMadeByHand shows that a program needs no TOML.
func TestOverridesMadeByHand(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Overrides = []config.Override{{Match: "math/*", Limits: limits.Limits{Fuel: 5}}, {Match: "**/add", Limits: limits.Limits{Fuel: -1, Queue: 2}}}
	if got := configured.Limits(c, "/math/sub").Fuel; got != 5 {
		t.Errorf("/math/sub: got fuel %d, want 5", got)
	}
	if got := configured.Limits(c, "/math/add"); got.Fuel != 0 || got.Queue != 2 || got.Timeout != c.Limits.Timeout {
		t.Errorf("/math/add: got %+v", got)
	}
}

func TestLimitsForAllocatesNothing(t *testing.T) {
	c := parse(t, "[[override]]\nmatch = '**/a/*b*/c'\nqueue = 1\n")
	if n := testing.AllocsPerRun(100, func() { configured.Limits(c, "/a/a/a/xbx/c/d") }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkLimitsFor(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		c := config.Default()
		for i := range n {
			c.Overrides = append(c.Overrides, config.Override{Match: fmt.Sprintf("namespace-%d/*", i), Limits: limits.Limits{Queue: i}})
		}
		b.Run(fmt.Sprintf("overrides=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				configured.Limits(c, "/namespace-50/tool")
			}
		})
	}
}
