package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ yes, no []string }{
		"math/add":    {yes: []string{"/math/add", "math/add", "/math/add/below"}, no: []string{"/math", "/math/ad", "/math/added", "/x/math/add", "/Math/add", "/"}},
		"math":        {yes: []string{"/math/add", "/math/deep/er/add", "/math"}, no: []string{"/maths/add", "/x/math", "/ma/th"}},
		"/math":       {yes: []string{"/math/add"}, no: []string{"/x/math"}},
		"math/*":      {yes: []string{"/math/add", "/math/deep/add"}, no: []string{"/math", "/maths/add"}},
		"*":           {yes: []string{"/add", "/math/add", "/a/b/c"}, no: []string{"/"}},
		"*/add":       {yes: []string{"/math/add", "/x/add", "/x/add/below"}, no: []string{"/add", "/a/b/add", "/math/sub"}},
		"**/add":      {yes: []string{"/add", "/math/add", "/a/b/c/add", "/add/add", "/a/add/b"}, no: []string{"/math/sub", "/adder", "/a/badd"}},
		"a/**/z":      {yes: []string{"/a/z", "/a/b/z", "/a/b/c/z", "/a/z/z", "/a/b/z/c"}, no: []string{"/a", "/z", "/b/a/z", "/a/b/zz"}},
		"**":          {yes: []string{"/add", "/a/b/c"}},
		"**/**":       {yes: []string{"/add", "/a/b/c"}},
		"**/*":        {yes: []string{"/add", "/a/b/c"}},
		"**/a/b":      {yes: []string{"/a/b", "/a/a/b", "/x/a/a/b"}, no: []string{"/a/x/b", "/a"}},
		"**/a/**/b/c": {yes: []string{"/a/b/c", "/a/b/x/b/c", "/x/a/x/b/b/c/x"}, no: []string{"/b/c", "/a/b/x/c", "/a/c/b"}},
		"m*h/a*":      {yes: []string{"/math/add", "/mh/a", "/mathhh/abc"}, no: []string{"/math/sub", "/maths/add"}},
		"*a*b*":       {yes: []string{"/ab", "/xaxbx", "/aab", "/abab"}, no: []string{"/ba", "/a/b", "/b"}},
		"*ab":         {yes: []string{"/ab", "/aab", "/abab"}, no: []string{"/aba"}},
	}
	for pattern, tt := range tests {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			c := parse(t, fmt.Sprintf("[[override]]\nmatch = %q\nqueue = 7\n", pattern))
			for _, path := range tt.yes {
				if c.LimitsFor(path).Queue != 7 {
					t.Errorf("%q does not match %q", pattern, path)
				}
			}
			for _, path := range tt.no {
				if c.LimitsFor(path).Queue == 7 {
					t.Errorf("%q matches %q", pattern, path)
				}
			}
		})
	}
}

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
	tests := map[string]func(l *config.Limits){
		"/web/get":  func(l *config.Limits) {},
		"/math/mul": func(l *config.Limits) { l.Timeout, l.Memory = time.Second, 1<<20 },
		"/math/add": func(l *config.Limits) { l.Timeout, l.Memory, l.Fuel, l.Queue = 2*time.Second, 1<<20, 0, -1 },
		"/math/sub": func(l *config.Limits) { l.Timeout, l.Memory = 3*time.Second, 1<<20 },
		"/web/sub":  func(l *config.Limits) { l.Timeout, l.Concurrency = 3*time.Second, 1 },
	}
	for path, change := range tests {
		want := d
		want.Fuel, want.Queue = 100, 3
		change(&want)
		if got := c.LimitsFor(path); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// TestOverridesMadeByHand shows that a program needs no TOML.
func TestOverridesMadeByHand(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Overrides = []config.Override{{Match: "math/*", Limits: config.Limits{Fuel: 5}}, {Match: "**/add", Limits: config.Limits{Fuel: -1, Queue: 2}}}
	if got := c.LimitsFor("/math/sub").Fuel; got != 5 {
		t.Errorf("/math/sub: got fuel %d, want 5", got)
	}
	if got := c.LimitsFor("/math/add"); got.Fuel != 0 || got.Queue != 2 || got.Timeout != c.Limits.Timeout {
		t.Errorf("/math/add: got %+v", got)
	}
}

func TestLimitsForAllocatesNothing(t *testing.T) {
	c := parse(t, "[[override]]\nmatch = '**/a/*b*/c'\nqueue = 1\n")
	if n := testing.AllocsPerRun(100, func() { c.LimitsFor("/a/a/a/xbx/c/d") }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// TestHostilePattern matches patterns that make simple matchers try everything.
func TestHostilePattern(t *testing.T) {
	t.Parallel()
	path := strings.Repeat("/a", 10_000) + "/" + strings.Repeat("a", 10_000)
	for _, pattern := range []string{strings.Repeat("**/a/", 25) + "b", strings.Repeat("**/*a*a*a*a*/", 9) + "b", strings.Repeat("a*", 60) + "b"} {
		c := config.Default()
		c.Overrides = []config.Override{{Match: pattern, Limits: config.Limits{Queue: 7}}}
		if c.LimitsFor(path).Queue == 7 {
			t.Errorf("%q matches", pattern)
		}
	}
}

func BenchmarkLimitsFor(b *testing.B) {
	for _, n := range []int{0, 1, 100} {
		c := config.Default()
		for i := range n {
			c.Overrides = append(c.Overrides, config.Override{Match: fmt.Sprintf("namespace-%d/*", i), Limits: config.Limits{Queue: i}})
		}
		b.Run(fmt.Sprintf("overrides=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.LimitsFor("/namespace-50/tool")
			}
		})
	}
}
