package toolfile

import (
	"runtime"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestPlaces has tools that wait for others get more places than those that compute, unless their number is configured.
func TestPlaces(t *testing.T) {
	t.Parallel()
	http, tools := wasmtools.Needs{HTTP: []string{"https://example.com"}}, wasmtools.Needs{Tools: []string{"a/b"}}
	waiting := max(64, 4*runtime.GOMAXPROCS(0))
	for _, c := range []struct {
		name       string
		needs      wasmtools.Needs
		configured int
		want       int
	}{
		{"nothing needed", wasmtools.Needs{}, 0, 0},
		{"what does not wait for long", wasmtools.Needs{KV: true, Secrets: []string{"a"}, Files: []string{"a"}}, 0, 0},
		{"http", http, 0, waiting},
		{"http, with 0 in the configuration", http, -1, waiting},
		{"tools", tools, 0, waiting},
		{"http, configured", http, 3, 3},
		{"many, configured", tools, 2000, 2000},
	} {
		l := lotOf("/a/b", c.needs, func(string) limits.Limits { return limits.Limits{Concurrency: c.configured} }, nil)
		if l.limits.Concurrency != c.want {
			t.Errorf("%s: got %d places, want %d", c.name, l.limits.Concurrency, c.want)
		}
	}
}
