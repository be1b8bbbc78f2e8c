package toolsrv_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProofs compares docs/generated/proofs.md with the tests' comments: a line `Proves: …` names a promise of docs/security.md by its heading, and
// each promise has tests. `go test . -update` writes the page.
func TestProofs(t *testing.T) {
	t.Parallel()
	const page = "docs/generated/proofs.md"
	_, rest, _ := strings.Cut(read(t, "docs/security.md"), "\n## Promises\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	proofs := map[string]map[string][]string{} // by promise and folder
	var promises []string
	for _, match := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(section, -1) {
		promises = append(promises, match[1])
		proofs[match[1]] = map[string][]string{}
	}
	if len(promises) < 15 || len(promises) > 20 {
		t.Errorf("docs/security.md has %d promises: nobody reads more than 20", len(promises))
	}
	mark := regexp.MustCompile(`(?m)^Proves: (.+)$`)
	for _, s := range sources(t) {
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			for _, match := range mark.FindAllStringSubmatch(f.Doc.Text(), -1) {
				name := f.Name.Name
				switch byFolder := proofs[match[1]]; {
				case byFolder == nil:
					t.Errorf("%s: %s proves %q, which is not a promise of docs/security.md", s.path, name, match[1])
				case !s.test || !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz"):
					t.Errorf("%s: %s is not a test and proves nothing", s.path, name)
				case !slices.Contains(byFolder[s.dir], name):
					byFolder[s.dir] = append(byFolder[s.dir], name)
				}
			}
		}
	}
	var want strings.Builder
	want.WriteString("# Proofs\n\nWhich tests show what [docs/security.md](../security.md) promises. `go test . -update` writes this page from the lines `Proves: …` in the\ntests' comments.\n")
	for _, promise := range promises {
		fmt.Fprintf(&want, "\n## [%s](../security.md#%s)\n\n", promise, anchor(promise))
		if len(proofs[promise]) == 0 {
			t.Errorf("the comment of no test says that it proves %q", promise)
		}
		for _, dir := range slices.Sorted(maps.Keys(proofs[promise])) {
			names := proofs[promise][dir]
			slices.Sort(names)
			fmt.Fprintf(&want, "- %s: `%s`\n", dir, strings.Join(names, "`, `"))
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if read(t, page) != want.String() {
		t.Errorf("%s is not what the tests' comments say: run `go test . -update`, and look at the diff", page)
	}
}

// TestPageShowsExamples holds the Go code of docs/embedding.md to the examples that are run.
func TestPageShowsExamples(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/embedding.md")
	var examples string
	for _, file := range []string{"wasmtools/gotool/example_test.go", "wasmtools/server/example_test.go", "wasmtools/web/example_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += string(text)
	}
	// Comments are in the source, but not on the page.
	examples = regexp.MustCompile(`(?m)^// .*\n`).ReplaceAllString(examples, "")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Errorf("the page shows %d pieces of Go; has the section moved?", len(blocks))
	}
	for _, block := range blocks {
		for piece := range strings.SplitSeq(block[1], "\n\n") {
			if !strings.Contains(examples, strings.TrimSpace(piece)) {
				t.Errorf("no example has this of the page:\n%s", piece)
			}
		}
	}
}
