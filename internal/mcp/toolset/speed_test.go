package toolset_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// anything is a cheap schema, so that the measured cost is the set's.
var anything = schema.MustCompile(`{"type":"object"}`)

// This test is not parallel, because AllocsPerRun counts what the whole process allocates.
func TestAllocations(t *testing.T) {
	result := []byte(`{"sum":3,"words":"a \"b\""}`)
	tools := make([]*wasmtools.Tool, 1000)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("n%d/t%d", i%10, i), func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })
		tools[i].Parameters = anything
	}
	set := setOf(t, tableOf(t, tools...), toolset.Options{Search: toolset.SearchNever})
	scoped := principal(t, "n1", "n2/*")
	most := map[string]float64{"call": 3} // the allocations of the validation
	call, out := &wasmtools.Call{}, make([]byte, 0, 1024)
	for name, p := range map[string]*wasmtools.Principal{"everybody": wasmtools.Everybody(), "a token": principal(t, "*"), "scopes": scoped} {
		for what, f := range map[string]func() error{
			"call": func() error {
				*call = wasmtools.Call{Principal: p}
				i, err := set.View("n1", p).Begin("n1-t1", call)
				if err != nil {
					return err
				}
				defer i.End()
				r, err := i.Run(t.Context())
				out = r.Append(out[:0], toolset.Modern, `"a":1`)
				return err
			},
			"list": func() error { _, err := set.View("", p).List("", toolset.Modern); return err },
		} {
			if err := f(); err != nil {
				t.Fatal(err)
			}
			if got := testing.AllocsPerRun(100, func() {
				if err := f(); err != nil {
					t.Fatal(err)
				}
			}); !testkit.Race(t) && got > most[what] {
				t.Errorf("%s of %s: got %v allocations, want at most %v", what, name, got, most[what])
			}
		}
	}
}

// TestMemory checks that ten thousand tools take little more memory than their texts, no matter who lists them.
func TestMemory(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	const count = 10_000
	tools := make([]*wasmtools.Tool, count)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("n%d/t%d", i%10, i), echo)
	}
	table := tableOf(t, tools...)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // also frees what pools have kept from earlier tests
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	set := setOf(t, table, toolset.Options{})
	for i := range 200 { // more views than are kept
		set.View("", principal(t, fmt.Sprintf("n%d", i%10), fmt.Sprintf("x%d", i)))
	}
	each := (heap() - before) / count
	runtime.KeepAlive(set)
	t.Logf("%d bytes for each tool", each)
	if each > 2000 {
		t.Errorf("%d bytes for each tool", each)
	}
}

// TestConcurrent makes callers list, search and call while the table changes.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	tools := zoo()
	table := tableOf(t, tools...)
	set := toolset.New(table, toolset.Options{Search: toolset.SearchAlways})
	var all sync.WaitGroup
	for n := range 4 {
		p := principal(t, "image", "math", fmt.Sprintf("x%d", n))
		unsubscribe := set.Subscribe(func() { set.View("", p).Edition() })
		all.Go(func() {
			defer unsubscribe()
			for range 50 {
				v := set.View([]string{"", "math"}[n%2], p)
				_, err := v.List("", toolset.Era(n%2))
				for _, name := range []string{"search_tools", "call_tool", "math-add"} {
					arguments := map[string]string{"search_tools": `{"query":"numbers"}`, "call_tool": `{"name":"math-add"}`, "math-add": `{}`}[name]
					if _, failed := v.Call(t.Context(), name, &wasmtools.Call{Arguments: []byte(arguments), Principal: p}); failed != nil && name != "math-add" {
						err = errors.Join(err, failed)
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 50 {
		if err := errors.Join(table.Replace(tools[i%2:], nil), table.Disable("/image", ""), table.Enable("/image")); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	all.Wait()
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCall(b *testing.B) {
	add := tool("math/add", ends(`{"sum":3}`, nil))
	add.Parameters = anything
	set := setOf(b, tableOf(b, add), toolset.Options{})
	call, out := &wasmtools.Call{}, make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		*call = wasmtools.Call{Principal: wasmtools.Everybody()}
		i, err := set.View("", wasmtools.Everybody()).Begin("math-add", call)
		if err != nil {
			b.Fatal(err)
		}
		r, err := i.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		out = r.Append(out[:0], toolset.Modern, "")
		i.End()
	}
}

// BenchmarkNew makes a set of 10,000 tools.
func BenchmarkNew(b *testing.B) {
	tools := make([]*wasmtools.Tool, 10_000)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("n%d/t%d", i%10, i), echo)
		tools[i].Result = tools[i].Parameters
	}
	table := tableOf(b, tools...)
	for b.Loop() {
		if err := toolset.New(table, toolset.Options{}).Close(); err != nil {
			b.Fatal(err)
		}
	}
}
