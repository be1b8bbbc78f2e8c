package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestUnwatched checks why make race may leave some packages unwatched: they start no goroutines, and share nothing through atomics, since
// the race detector would not notice atomics in these packages. It does notice a mutex.
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
		t.Fatal("the Makefile no longer has UNWATCHED in the expected form")
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
		t.Fatalf("got only %d files, want those of a compiler", len(files))
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
				t.Errorf("%s uses goroutines", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && (x.Name == "atomic" || x.Name == "sync" && n.Sel.Name != "Mutex") {
					t.Errorf("%s shares something by %s.%s", set.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestFoundry checks that the name of the folder with compiled code, which tests share, depends on exactly the packages that a foundry imports. So
// a change of another package keeps the code.
func TestFoundry(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("waits for commands, on one goroutine")
	}
	testkit.NeedBuild(t, "go", "make")
	print := exec.Command("make", "--no-print-directory", "-s", "-f", "Makefile", "-f", "-", "print-foundry")
	print.Dir, print.Stdin = "../..", strings.NewReader("print-foundry:\n\t@echo $(FOUNDRY)\n")
	got, err := print.Output()
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command("go", "list", "-deps", "github.com/toolsrv/toolsrv/internal/runtime/internal/foundry").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range strings.Lines(string(list)) {
		if folder, ours := strings.CutPrefix(strings.TrimSpace(name), "github.com/toolsrv/toolsrv/"); ours {
			want = append(want, folder)
		}
	}
	slices.Sort(want)
	if made := strings.Fields(string(got)); !slices.Equal(slices.Sorted(slices.Values(made)), want) {
		t.Errorf("the Makefile has FOUNDRY as %q, want %q", made, want)
	}
}
