package console

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	imported  = regexp.MustCompile(`(?s)(?:^|\n)(?:import|export)\s[^;]*?from "(\.[^"]+)";`)
	preloaded = regexp.MustCompile(`rel="modulepreload" href="console/([^"]+)"`)
)

// TestPreloads checks that the page of the console names all modules that its first script imports, directly or not: otherwise a browser would
// request them one level after another.
func TestPreloads(t *testing.T) {
	t.Parallel()
	var want []string
	var follow func(name string)
	follow = func(name string) {
		if slices.Contains(want, name) {
			return
		}
		want = append(want, name)
		if strings.HasPrefix(name, "lib/") {
			return
		}
		text, err := embedded.ReadFile("pages/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range imported.FindAllSubmatch(text, -1) {
			follow(path.Join(path.Dir(name), string(m[1])))
		}
	}
	follow("app/main.js")
	want = want[1:]
	slices.Sort(want)
	page, err := embedded.ReadFile("pages/console.html")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range preloaded.FindAllSubmatch(page, -1) {
		got = append(got, string(m[1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page preloads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
