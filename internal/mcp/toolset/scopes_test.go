package toolset_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestManyScopes lists 10,000 tools for callers who have more different sets of scopes than there are kept views. All lists, and REST's documents
// of some 5 MiB, stay below 64 MiB.
// Proves: Clients keep nobody out
func TestManyScopes(t *testing.T) { // not parallel, because it measures the heap
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	tools := make([]*wasmtools.Tool, 10_000)
	parameters := schema.MustCompile(`{"type":"object","properties":{"n":{"type":"integer","description":"A number of things that the tool counts, from the first to the last"}}}`)
	for i := range tools {
		tools[i] = &wasmtools.Tool{Namespace: fmt.Sprintf("n%02d", i%100), Name: fmt.Sprintf("t%04d", i), Description: "A tool with a description that says what it does.",
			Parameters: parameters, Caller: wasmtools.CallerFunc(nil)}
	}
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	set := toolset.New(table, toolset.Options{Search: toolset.SearchNever})
	defer set.Close()
	list := func(scopes ...string) {
		p, err := wasmtools.NewPrincipal("test", "test", scopes...)
		if err != nil {
			t.Fatal(err)
		}
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := set.View("", p).List(cursor, toolset.Modern)
			if err != nil {
				t.Fatal(err)
			}
			cursor = page.Next
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := heap(), int64(0)
	list("*")
	for i := range 80 {
		if list("n*", fmt.Sprintf("other-%d", i)); i == 62 || i == 79 {
			most = max(most, heap()-before)
		}
	}
	t.Logf("%d MiB", most>>20)
	if most > 56<<20 {
		t.Errorf("the lists take %d MiB", most>>20)
	}
	runtime.KeepAlive(set)
}
