package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestWorkFollowsChanges counts how many files are read, and how many tools are made again, because of a change. However many files there are, that
// is only as many as have changed.
func TestWorkFollowsChanges(t *testing.T) {
	t.Parallel()
	sizes := []int{1000, 9999} // with one more file, there are as many as may be served
	if testing.Short() || testkit.Race(t) || testkit.Emulated() {
		sizes = []int{100, 1000}
	}
	for _, many := range sizes {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			m := newMemory()
			var read atomic.Int64
			name := func(n int) string { return fmt.Sprintf("n%d/a.wasm", n) }
			put := func(n int, answer string) {
				content := version(t, answer, "", "a")
				m.set(name(n), content, func(f *stored) {
					f.open = func(context.Context) (io.ReadCloser, error) {
						read.Add(1)
						return io.NopCloser(bytes.NewReader(content)), nil
					}
				})
			}
			for n := range many {
				put(n, "v0001")
			}
			c, _ := openMemory(t, m, catalog.Open)
			if got := len(c.Table().Tools()); got != many || read.Load() != int64(many) {
				t.Fatalf("%d tools are served, and %d files were read", got, read.Load())
			}
			few := func(path string) limits.Limits {
				if path == "/n5/a" {
					return limits.Limits{Input: 9}
				}
				return limits.Limits{}
			}
			reconfigure := func(policy wasmtools.Policy) {
				if err := c.Reconfigure(catalog.Configuration{Limits: few, Policy: policy}); err != nil {
					t.Fatal(err)
				}
			}
			for _, step := range []struct {
				name       string
				change     func()
				read, made int
			}{
				{"a file is replaced", func() { put(7, "v0002"); awaitAnswer(t, c, "/n7/a", "v0002") }, 1, 1},
				{"a file is new", func() { put(many, "v0001"); awaitAnswer(t, c, fmt.Sprintf("/n%d/a", many), "v0001") }, 1, 1},
				{"a file goes", func() {
					m.remove(name(many))
					await(t, c, "one tool fewer", func(g *wasmtools.Generation) bool { return len(g.Routes()) == many })
				}, 0, 0},
				{"other limits of one tool", func() { reconfigure(wasmtools.Policy{}) }, 0, 1},
				{"the same configuration", func() { reconfigure(wasmtools.Policy{}) }, 0, 0},
				{"a tool is switched off", func() { reconfigure(wasmtools.Policy{Disabled: []string{"n8/a"}}) }, 0, 0},
			} {
				before, files, edits := map[*wasmtools.Tool]bool{}, read.Load(), c.Edits()
				for _, route := range c.Table().Tools() {
					before[route.Tool] = true
				}
				step.change()
				made := 0
				for _, route := range c.Table().Tools() {
					if !before[route.Tool] {
						made++
					}
				}
				if edited := step.made > 0 || step.name == "a file goes"; (c.Edits() != edits) != edited {
					t.Errorf("%s: there were %d edits, want some: %t", step.name, c.Edits()-edits, edited)
				}
				if got := int(read.Load() - files); got != step.read || made != step.made {
					t.Errorf("%s: %d files were read and %d tools made, want %d and %d", step.name, got, made, step.read, step.made)
				}
			}
		})
	}
}
