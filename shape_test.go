package toolsrv_test

import (
	"go/ast"
	"go/build"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// maxLines is the most lines of a file. Packages have no limit: it would push code into packages where it does not belong.
const maxLines = 700

// maxFiles is how many files may have methods of one type. With more, a reader would have to search.
const maxFiles = 4

// vagueNames are names that don't say what is in a file.
var vagueNames = []string{"types.go", "helpers.go", "helper.go", "utils.go", "util.go", "common.go", "misc.go"}

// TestRecovers checks the list of places that recover.
// Proves: Nothing stops the server
func TestRecovers(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.path, "internal/testkit/") {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "recover" {
					if found[s.path] = true; recoverHomes[s.path] == "" {
						t.Errorf("%s recovers from panics: add it to recoverHomes, with the work that it guards", s.path)
					}
				}
			}
			return true
		})
	}
	for path := range recoverHomes {
		if !found[path] {
			t.Errorf("recoverHomes has %s, which recovers from nothing", path)
		}
	}
}

// TestNoForeignTypesInAPI finds third-party types in exported signatures and fields: they would make a library's
// next major version ours.
func TestNoForeignTypesInAPI(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test || strings.Contains(s.dir, "internal/") {
			continue // no other program can import it
		}
		foreign := func(n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if block, ok := n.(*ast.BlockStmt); ok && block != nil {
					return false
				}
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if id, ok := sel.X.(*ast.Ident); ok && isForeign(s.imports[id.Name]) {
					t.Errorf("%s: exported API names %s.%s of %s", s.path, id.Name, sel.Sel.Name, s.imports[id.Name])
				}
				return true
			})
		}
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
					foreign(d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					spec, ok := spec.(*ast.TypeSpec)
					if !ok || !spec.Name.IsExported() {
						continue
					}
					fields, ok := spec.Type.(*ast.StructType)
					if !ok {
						foreign(spec.Type)
						continue
					}
					for _, f := range fields.Fields.List {
						if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
							foreign(f.Type)
						}
					}
				}
			}
		}
	}
}

func TestSizesAndNames(t *testing.T) {
	t.Parallel()
	files := map[string]bool{}
	docs := map[string]int{}
	for _, s := range sources(t) {
		if s.lines > maxLines {
			t.Errorf("%s has %d lines; at most %d are allowed: split it by concept", s.path, s.lines, maxLines)
		}
		if slices.Contains(vagueNames, path.Base(s.path)) {
			t.Errorf("%s: name the file after the concept in it", s.path)
		}
		if s.test {
			continue
		}
		files[s.dir] = true
		if s.ast.Doc != nil {
			docs[s.dir]++
			if text := s.ast.Doc.Text(); s.ast.Name.Name != "main" && !strings.HasPrefix(text, "Package "+s.ast.Name.Name+" ") {
				t.Errorf("%s: the package doc starts with %q, want %q", s.path, firstLine(text), "Package "+s.ast.Name.Name+" …")
			}
		}
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: work at import time can't be configured, ordered or tested", s.path)
			}
		}
	}
	for dir := range files {
		if docs[dir] != 1 {
			t.Errorf("%s has %d package docs, want just one", dir, docs[dir])
		}
	}
	for dir := range edges {
		if !files[dir] {
			t.Errorf("edges names %s, which has no Go file", dir)
		}
	}
}

// TestMethods counts the files with methods of a type, among the files that are built together.
func TestMethods(t *testing.T) {
	t.Parallel()
	files := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if built, err := build.Default.MatchFile(s.dir, path.Base(s.path)); err != nil {
			t.Fatal(err)
		} else if !built {
			continue
		}
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := s.dir + "." + receiver(f.Recv)
			if s.test { // test files may add methods to a type of the package
				name += " in tests"
			}
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][path.Base(s.path)] = true
		}
	}
	for name, all := range files {
		if len(all) > maxFiles {
			t.Errorf("%s has methods in %d files; at most %d are allowed: %v", name, len(all), maxFiles, slices.Sorted(maps.Keys(all)))
		}
	}
}

// isForeign returns whether a path belongs to a third-party library.
func isForeign(imported string) bool {
	library, _ := homeOf(homes, imported)
	return library != ""
}

func exportedReceiver(recv *ast.FieldList) bool { return ast.IsExported(receiver(recv)) }

// receiver returns the name of a method's type.
func receiver(recv *ast.FieldList) string {
	typ := recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
