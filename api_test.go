package toolsrv_test

import (
	"flag"
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/generated/api.txt and the generated parts of pages again")

// TestAPI compares the exported names outside internal/ with the list in git. Each is a promise to those who embed the server, write a tool or an
// SDK, so any change to one must show in the diff.
func TestAPI(t *testing.T) {
	t.Parallel()
	const file = "docs/generated/api.txt"
	got := strings.Join(exportedNames(t), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := read(t, file)
	if got == want {
		return
	}
	difference := func(what, here, there string) {
		known := strings.Split(there, "\n")
		for _, line := range strings.Split(here, "\n") {
			if _, found := slices.BinarySearch(known, line); !found && line != "" {
				t.Errorf("%s: %s", what, line)
			}
		}
	}
	difference("new or changed", got, strings.TrimSuffix(want, "\n"))
	difference("gone or changed", want, strings.TrimSuffix(got, "\n"))
	t.Errorf("the exported names differ from those in %s: keep what others need, then run `go test . -update` and look at the diff", file)
}

// exportedNames returns a line for each exported function, method, type, field, constant and variable of packages that others
// can import.
func exportedNames(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" || slices.Contains(strings.Split(s.dir, "/"), "internal") || strings.HasPrefix(s.dir, "bench") {
			continue
		}
		add := func(parts ...string) { lines = append(lines, s.dir+": "+strings.Join(parts, "")) }
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				switch {
				case !d.Name.IsExported():
				case d.Recv == nil:
					add("func ", d.Name.Name, signature(d.Type))
				case exportedReceiver(d.Recv):
					add("func (", onLine(d.Recv.List[0].Type), ") ", d.Name.Name, signature(d.Type))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() {
								add(d.Tok.String(), " ", name.Name)
							}
						}
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							lines = append(lines, typeLines(s.dir, spec)...)
						}
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines) // files for different systems may declare the same names
}

// typeLines returns the lines of a type: one for the type, and one for each exported field of a struct or method of an interface.
func typeLines(dir string, spec *ast.TypeSpec) []string {
	start := dir + ": type " + spec.Name.Name
	var members *ast.FieldList
	var lines []string
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		lines, members = append(lines, start+" struct"), typ.Fields
	case *ast.InterfaceType:
		lines, members = append(lines, start+" interface"), typ.Methods
	default:
		return append(lines, start+" "+onLine(spec.Type))
	}
	for _, member := range members.List {
		if len(member.Names) == 0 {
			lines = append(lines, start+"."+onLine(member.Type)+" (embedded)")
		}
		for _, name := range member.Names {
			if name.IsExported() {
				text := " " + onLine(member.Type)
				if method, ok := member.Type.(*ast.FuncType); ok && spec.Type != nil {
					if _, isInterface := spec.Type.(*ast.InterfaceType); isInterface {
						text = signature(method)
					}
				}
				lines = append(lines, start+"."+name.Name+text)
			}
		}
	}
	return lines
}

// signature returns the text after a function's name.
func signature(f *ast.FuncType) string { return strings.TrimPrefix(onLine(f), "func") }
