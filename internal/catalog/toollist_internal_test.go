package catalog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestToolList compares the list with a map of the tools, over random changes.
func TestToolList(t *testing.T) {
	t.Parallel()
	const seed = 3
	random := rand.New(rand.NewPCG(seed, 0))
	tool := func() *wasmtools.Tool {
		return &wasmtools.Tool{Namespace: fmt.Sprint("n", random.IntN(4)), Name: fmt.Sprint("t", random.IntN(20))}
	}
	own := tool()
	l, model := newToolList([]*wasmtools.Tool{own}), map[string]*wasmtools.Tool{own.Path(): own}
	var gone []*wasmtools.Tool
	for step := range 2000 {
		next := tool()
		if len(gone) > 0 && step%7 == 0 { // a removed tool comes back
			next = gone[random.IntN(len(gone))]
		}
		old := model[next.Path()]
		if old != nil {
			l.remove(old)
			delete(model, next.Path())
			gone = append(gone, old)
		}
		if old == nil || step%2 == 0 {
			l.add(next)
			model[next.Path()] = next
		}
		if step%5 > 0 {
			continue
		}
		want := slices.SortedFunc(maps.Values(model), func(a, b *wasmtools.Tool) int { return strings.Compare(a.Path(), b.Path()) })
		if got := l.all(); !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d: got %d tools, want %d, or the wrong ones", seed, step, len(got), len(want))
		}
	}
}
