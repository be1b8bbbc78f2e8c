package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestUnwatched holds the packages that make race does not watch to the reason for that: they start no goroutine, and share nothing by an atomic, of which
// the race detector would not hear. A mutex tells it by itself.
func TestUnwatched(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("reads files, on one goroutine")
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^UNWATCHED := \$\(foreach p,(.*),-gcflags=(.*)\$p=-race=false\)$`).FindSubmatch(makefile)
	if match == nil {
		t.Fatal("the Makefile has no such UNWATCHED any more")
	}
	list := []string{"list", "-f", `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`}
	for _, p := range strings.Fields(string(match[1])) {
		list = append(list, string(match[2])+p)
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	if len(files) < 20 {
		t.Fatalf("%d files, want those of a compiler", len(files))
	}
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SendStmt, *ast.ChanType:
				t.Errorf("%s has to do with goroutines", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && (x.Name == "atomic" || x.Name == "sync" && n.Sel.Name != "Mutex") {
					t.Errorf("%s shares something by %s.%s", set.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}
