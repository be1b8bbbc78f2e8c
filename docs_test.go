package toolsrv_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesTests makes sure that each test which docs/security.md names as the proof of a promise is there.
func TestSecurityNamesTests(t *testing.T) {
	t.Parallel()
	const page = "docs/security.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			declared[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllSubmatch(text, -1)
	if len(named) < 20 {
		t.Errorf("%s names %d tests; is it still the page with the promises?", page, len(named))
	}
	for _, match := range named {
		if name := string(match[1]); !declared[name] {
			t.Errorf("%s names %s, which is not a test: correct the name, or write the test", page, name)
		}
	}
}

// TestPagesShowExamples holds the Go code of docs/http.md and docs/mcp.md to the examples that are run.
func TestPagesShowExamples(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/http.md") + read(t, "docs/mcp.md")
	var examples string
	for _, file := range []string{"wasmtools/example_test.go", "wasmtools/server/example_test.go", "wasmtools/web/example_test.go", "wasmtools/mcp/example_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += string(text)
	}
	// Comments stand in the source and not on the page.
	examples = regexp.MustCompile(`(?m)^// .*\n`).ReplaceAllString(examples, "")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Errorf("the pages show %d pieces of Go; has the section moved?", len(blocks))
	}
	for _, block := range blocks {
		for piece := range strings.SplitSeq(block[1], "\n\n") {
			if !strings.Contains(examples, strings.TrimSpace(piece)) {
				t.Errorf("no example has this of the pages:\n%s", piece)
			}
		}
	}
}
