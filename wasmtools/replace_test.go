package wasmtools_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestReplaceReuses compares two tables of the same tools: one whose tools change again and again, and which reuses its entries, and a new
// one. The tools are sorted or not, and some have conflicts.
func TestReplaceReuses(t *testing.T) {
	t.Parallel()
	const seed = 5
	random := rand.New(rand.NewPCG(seed, 0))
	parameters := schema.MustCompile(`{"type":"object"}`)
	tool := func(namespace string) *wasmtools.Tool {
		return &wasmtools.Tool{Namespace: namespace, Name: fmt.Sprint("t", random.IntN(30)), Parameters: parameters,
			Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return nil, nil })}
	}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	var tools []*wasmtools.Tool
	failures := 0
	for step := range 1000 {
		next := slices.Clone(tools)
		for range 1 + random.IntN(3) {
			switch n := random.IntN(len(next) + 1); {
			case n < len(next) && random.IntN(2) == 0:
				next[n] = tool(next[n].Namespace)
			case n < len(next) && len(next) > 15:
				next = slices.Delete(next, n, n+1)
			default:
				next = slices.Insert(next, n, tool([]string{"", "a", "a/b", "a-b"}[random.IntN(4)]))
			}
		}
		if step%2 == 0 {
			slices.SortFunc(next, func(a, b *wasmtools.Tool) int { return strings.Compare(a.Path(), b.Path()) })
		}
		fresh, wantErr := wasmtools.NewRouteTable(next...)
		err := table.Replace(next, nil)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("seed %d, step %d: got %v, want %v", seed, step, err, wantErr)
		}
		if err != nil {
			failures++
			if fresh, err = wasmtools.NewRouteTable(tools...); err != nil {
				t.Fatal(err)
			}
		} else {
			tools = next
		}
		if got, want := table.Tools(), fresh.Tools(); !slices.EqualFunc(got, want, func(a, b wasmtools.Route) bool { return a.Tool == b.Tool && a.Path == b.Path && a.Enabled == b.Enabled }) {
			t.Fatalf("seed %d, step %d: the table's routes differ from those of a new one", seed, step)
		}
		for _, want := range tools {
			if got, ok := table.Lookup(want.Path()); !ok || got.Tool != want {
				t.Fatalf("seed %d, step %d: %s leads to another tool", seed, step, want.Path())
			}
		}
	}
	if failures < 50 || failures > 950 {
		t.Errorf("%d of 1000 changes had conflicts: the test shows little", failures)
	}
}
