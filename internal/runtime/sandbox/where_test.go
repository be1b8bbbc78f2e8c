package sandbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestWhere ends guests at a limit. When asked, they say where they were, or try something else.
func TestWhere(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/where"))
	if _, err := p.Tool("x", 0, limits.Limits{Timeout: time.Minute, Fuel: 1000}).Call(t.Context(), sandbox.CallSpec{}); err == nil { // so that it is compiled
		t.Fatal("a call that should have reached a limit succeeded")
	}
	for index, c := range []struct{ name, want string }{
		{"a place", "; it was at slow.x:3."},
		{"a loop", "."},
		{"a trap", "."},
		{"a wild address", "."},
		{"a text without an end", "."},
		{"not UTF-8", "."},
		{"control characters", "."},
		{"words of other kinds", "; it was at slow.x:3."},
		{"memory", "; it was at kept:1."},
		{"endless recursion", "."},
		{"its end", "."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for limit, l := range map[string]limits.Limits{
				"The tool ran for more than its limit of 1000000 instructions": {Timeout: time.Minute, Fuel: 1_000_000},
				"The tool ran longer than its limit of 1s":                     {Timeout: time.Second}, // enough for a late start on a busy machine
			} {
				var heard listener
				began := time.Now()
				out, err := p.Tool("x", int32(index), l).Call(t.Context(), sandbox.CallSpec{Listener: &heard})
				var ended *sandbox.Error
				if !errors.As(err, &ended) || ended.Message != limit+c.want {
					t.Errorf("got %v, want %q", err, limit+c.want)
				}
				if len(out) > 0 || heard.text.Len() > 0 {
					t.Errorf("the guest said %q and logged %q after its end", out, heard.text.String())
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %s", took)
				}
			}
		})
	}
}

// TestWhereIsPaidFor asks a guest in an inner call where it was. The guest computes for as long as it may, and the outer call pays.
func TestWhereIsPaidFor(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/hostile/where"))
	burnt := func(index int32) int64 {
		var o outer
		if _, err := p.Tool("x", index, limits.Limits{Fuel: 1_000_000}).Call(t.Context(), sandbox.CallSpec{Outer: &o}); err == nil {
			t.Fatal("a call that should have reached a limit succeeded")
		}
		return o.burnt
	}
	if short, long := burnt(0), burnt(1); short < 1_000_000 || long < short+1_000_000 {
		t.Errorf("a short answer burns %d in all and an endless one %d", short, long)
	}
}
