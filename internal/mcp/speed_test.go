package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// anything is a cheap schema, so that the measured cost is the door's.
var anything = schema.MustCompile(`{"type":"object"}`)

// quick returns an app with n tools that do nothing: tool-0, tool-1 …
func quick(tb testing.TB, n int) *app {
	result := []byte("3")
	three := wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })
	tools := make([]*wasmtools.Tool, n)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("tool-%d", i), three)
		tools[i].Parameters = anything
	}
	return appOf(tb, tableOf(tb, tools...), options{set: toolset.Options{Search: toolset.SearchNever}})
}

// This test is not parallel, because AllocsPerRun counts what the whole process allocates.
func TestAllocations(t *testing.T) {
	h := quick(t, 1000)
	for _, test := range []struct {
		name string
		r    *http.Request
		most float64
	}{
		{"tools/call, including three by the validation", request(call("tool-1", `{"a":1,"b":2}`)), 5},
		{"tools/list", request(message("tools/list", "")), 2},
		{"server/discover", request(message("server/discover", "")), 2},
	} {
		r := testkit.Repeat(test.r)
		got := testing.AllocsPerRun(100, func() {
			if status := r.Serve(h); status != http.StatusOK {
				t.Fatalf("%s: got %d", test.name, status)
			}
		})
		t.Logf("%s: %v allocations", test.name, got)
		if !testkit.Race(t) && got > test.most {
			t.Errorf("%s: got %v allocations, want at most %v", test.name, got, test.most)
		}
	}
}

func BenchmarkDoor(b *testing.B) {
	h := quick(b, 1000)
	for name, r := range map[string]*http.Request{
		"call":     request(call("tool-1", `{"a":1,"b":2}`)),
		"unknown":  request(call("nothing", `{"a":1,"b":2}`)),
		"list":     request(message("tools/list", "")),
		"discover": request(message("server/discover", "")),
	} {
		b.Run(name, func(b *testing.B) {
			r := testkit.Repeat(r)
			b.ReportAllocs()
			for b.Loop() {
				r.Serve(h)
			}
		})
	}
}
