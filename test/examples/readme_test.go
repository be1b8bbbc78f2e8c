package examples_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// checkReadmes makes the calls in the READMEs of examples, those with curl and those in tables, and compares the results with the READMEs. It takes
// the examples whose sources have one of the extensions. The Rust examples have a test of their own.
func checkReadmes(t *testing.T, table *wasmtools.RouteTable, endings ...string) {
	curl := regexp.MustCompile(`(?s)    curl -s localhost:8000(\S+) -H 'Content-Type: application/json' -d '(.*?)'\n\n((?:    .*?\n)+)`)
	row := regexp.MustCompile("(?m)^\\| `POST (\\S+)` \\| `(.*?)` \\| (.*?) \\|$")
	index := string(testkit.Read(t, "../../examples/README.md"))
	for _, route := range table.Tools() {
		if path := route.Tool.Path(); !strings.Contains(index, "`"+path+"`") {
			t.Errorf("examples/README.md does not list %s", path)
		}
	}
	readmes := map[string]bool{}
	for _, ending := range endings {
		sources, err := filepath.Glob("../../examples/*/*" + ending)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			if folder := filepath.Base(filepath.Dir(source)); slices.Contains(granted, folder) || slices.Contains(grantedScripts, folder) {
				continue
			}
			readmes[filepath.Join(filepath.Dir(source), "README.md")] = true
		}
	}
	if len(readmes) == 0 {
		t.Errorf("there is no example with %q", endings)
	}
	for readme := range readmes {
		t.Run(filepath.Base(filepath.Dir(readme)), func(t *testing.T) {
			text := string(testkit.Read(t, readme))
			calls := append(curl.FindAllStringSubmatch(text, -1), row.FindAllStringSubmatch(text, -1)...)
			if len(calls) == 0 || len(calls) < strings.Count(text, "curl ") {
				t.Errorf("found %d calls, want at least one, and one for each line with curl", len(calls))
			}
			for _, c := range calls {
				path, arguments, want := c[1], c[2], strings.TrimSpace(c[3])
				got, err := call(t, table, path, arguments)
				if err != nil {
					t.Errorf("%s %s: %v", path, arguments, err)
					continue
				}
				result, isJSON := strings.CutPrefix(want, "`")
				if !strings.HasPrefix(c[0], "|") {
					result, isJSON = want, true
				}
				if isJSON && !same(got, strings.TrimSuffix(result, "`")) {
					t.Errorf("%s %s: got %s, want %s", path, arguments, got, result)
				}
			}
		})
	}
}
