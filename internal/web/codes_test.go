package web_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

var update = flag.Bool("update", false, "write docs/generated/errors.md")

// TestCodes checks the page of all codes against the table of statuses. The comment in each case says what has happened and what to do, separated by
// " | ".
func TestCodes(t *testing.T) {
	t.Parallel()
	said := caseComments(t)
	var b strings.Builder
	b.WriteString("# Errors\n\nThe codes of [errors over HTTP](../http.md#errors), made from the code by `go test ./internal/web -run TestCodes$ -update`.\n\n| status | `code` | what happened | what to do |\n|---|---|---|---|\n")
	statusOf := func(c wasmtools.Code) int {
		status, _ := web.Describe(&wasmtools.Error{Code: c})
		return status
	}
	for _, code := range slices.SortedStableFunc(slices.Values(fault.Codes()), func(a, b wasmtools.Code) int { return cmp.Compare(statusOf(a), statusOf(b)) }) {
		shown := fmt.Sprint(statusOf(code))
		if code == wasmtools.CodeToolError {
			shown = "400 to 599"
		}
		name := "Code"
		for word := range strings.SplitSeq(string(code), "_") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		text := strings.NewReplacer("](#", "](../http.md#", "](configuration.md", "](../configuration.md", "](capabilities.md", "](../capabilities.md").Replace(said[name])
		if !strings.Contains(text, " | ") {
			t.Errorf("answerTo does not say what %s means and what to do", name)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", shown, code, text)
	}
	const page = "../../docs/generated/errors.md"
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(testkit.Read(t, page)) != b.String() {
		t.Error("docs/generated/errors.md is not what the code says: go test ./internal/web -run TestCodes$ -update writes it")
	}
}

// caseComments returns the comments that begin the cases of answerTo, by the names of the codes.
func caseComments(t *testing.T) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "failure.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	after := map[int]string{} // comments by the line before them
	for _, c := range f.Comments {
		after[set.Position(c.Pos()).Line-1] = strings.Join(strings.Fields(c.Text()), " ")
	}
	said := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok && len(c.List) == 1 {
			if name, ok := c.List[0].(*ast.SelectorExpr); ok && after[set.Position(c.Colon).Line] != "" {
				said[name.Sel.Name] = after[set.Position(c.Colon).Line]
			}
		}
		return true
	})
	return said
}
