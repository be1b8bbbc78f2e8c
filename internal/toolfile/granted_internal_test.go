package toolfile

import (
	"runtime"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/granted"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A waits is a Granter that says of every tool whether it waits.
type waits bool

func (w waits) For(string, wasmtools.Needs) granted.Tool {
	return granted.Tool{Waits: bool(w)}
}

// TestPlaces: tools that mostly wait get more places than those that compute, unless the number is configured.
func TestPlaces(t *testing.T) {
	t.Parallel()
	waiting := max(64, 4*runtime.GOMAXPROCS(0))
	for _, c := range []struct {
		name       string
		waits      waits
		configured int
		want       int
	}{
		{"it computes", false, 0, 0},
		{"it waits", true, 0, waiting},
		{"it waits, with 0 in the configuration", true, -1, waiting},
		{"it waits, configured", true, 3, 3},
		{"many, configured", true, 2000, 2000},
	} {
		l := allowanceOf("/a/b", nil, func(string) limits.Limits { return limits.Limits{Concurrency: c.configured} }, c.waits)
		if l.limits.Concurrency != c.want {
			t.Errorf("%s: got %d places, want %d", c.name, l.limits.Concurrency, c.want)
		}
	}
}
