package catalog_test

import (
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// fill writes n modules with different code, at most 1,000 in each folder.
func fill(t testing.TB, directory string, n int) (names []string) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		names = append(names, fmt.Sprintf("ns%d/%s.wasm", i/1000, name))
		testkit.Put(t, directory, names[i], version(t, fmt.Sprintf("v%04d", i), "", name))
	}
	return names
}

// BenchmarkOpen lists 1,000 modules.
func BenchmarkOpen(b *testing.B) {
	directory := b.TempDir()
	fill(b, directory, 1000)
	engine := sandboxtest.Engine(b, sandbox.Config{})
	for b.Loop() {
		source := newDirectory(b, options{Directory: directory, PollOnly: true, Poll: time.Hour})
		c, err := catalog.Open(b.Context(), catalog.Options{Sources: []catalog.Sourced{{Source: source}}, Engine: engine, Poll: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer() // closing waits for a compilation
		c.Close()
		b.StartTimer()
	}
}

// BenchmarkCall calls a tool through the catalog.
func BenchmarkCall(b *testing.B) {
	directory := b.TempDir()
	testkit.Put(b, directory, path.Join("n", "a.wasm"), version(b, "v0001", "", "a"))
	c := open(b, options{Directory: directory})
	route, ok := c.Table().Lookup("/n/a")
	if !ok {
		b.Fatal(describe(c.Table().Current()))
	}
	var caller wasmtools.Caller = route.Tool.Caller
	for b.Loop() {
		if _, err := caller.Call(b.Context(), &wasmtools.Call{Arguments: []byte("{}")}); err != nil {
			b.Fatal(err)
		}
	}
}
