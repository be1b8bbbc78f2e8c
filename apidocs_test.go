package toolsrv_test

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAPIDocs reads the comments of importable packages as a documentation site does: each package and each exported name has a comment, and every
// link leads somewhere.
func TestAPIDocs(t *testing.T) {
	t.Parallel()
	packages := map[string]*doc.Package{} // by import path
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" || slices.Contains(strings.Split(s.dir, "/"), "internal") || strings.HasPrefix(s.dir, "bench") {
			continue
		}
		if name := path.Join("github.com/toolsrv/toolsrv", s.dir); packages[name] == nil {
			packages[name] = documented(t, s.dir, name)
		}
	}
	if len(packages) < 20 {
		t.Fatalf("only %d packages can be imported: is the list complete?", len(packages))
	}
	for name, p := range packages {
		check := func(symbol, text string) {
			t.Helper()
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s: %s has no comment", name, symbol)
			}
			checkLinks(t, name, symbol, p.Parser().Parse(text), packages)
		}
		check("the package", p.Doc)
		values := func(of string, list []*doc.Value) {
			for _, v := range list {
				check(of+strings.Join(v.Names, ", "), v.Doc+specComments(v.Decl))
			}
		}
		functions := func(of string, list []*doc.Func) {
			for _, f := range list {
				check(of+f.Name, f.Doc)
			}
		}
		values("", append(p.Consts, p.Vars...))
		functions("", p.Funcs)
		for _, typ := range p.Types {
			check(typ.Name, typ.Doc)
			values(typ.Name+": ", append(typ.Consts, typ.Vars...))
			functions(typ.Name+".", append(typ.Funcs, typ.Methods...))
		}
	}
}

// documented reads the comments of a package.
func documented(t *testing.T, dir, name string) *doc.Package {
	t.Helper()
	found, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, file := range found.GoFiles {
		parsed, err := parser.ParseFile(fset, filepath.Join(dir, file), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsed)
	}
	p, err := doc.NewFromFiles(fset, files, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// specComments returns the comments of the names in a group.
func specComments(group *ast.GenDecl) (text string) {
	for _, spec := range group.Specs {
		if value, ok := spec.(*ast.ValueSpec); ok {
			text += value.Doc.Text() + value.Comment.Text()
		}
	}
	return text
}

var writtenLink = regexp.MustCompile(`\[\*?([A-Z]\w*|[a-z]\w*\.[A-Z]\w*)(\.[A-Z]\w*)?\]`)

// checkLinks looks for links that lead nowhere: a documentation site would show such a link as plain text in brackets.
func checkLinks(t *testing.T, name, symbol string, text *comment.Doc, packages map[string]*doc.Package) {
	t.Helper()
	var check func(texts []comment.Text)
	check = func(texts []comment.Text) {
		for _, part := range texts {
			switch part := part.(type) {
			case comment.Plain:
				if link := writtenLink.FindString(string(part)); link != "" {
					t.Errorf("%s: the comment of %s has the link %s, which leads nowhere", name, symbol, link)
				}
			case *comment.Link:
				check(part.Text)
			case *comment.DocLink:
				if other := packages[part.ImportPath]; other != nil && part.Name != "" && !exports(other, part.Recv, part.Name) {
					t.Errorf("%s: the comment of %s links to %s.%s, which does not exist", name, symbol, part.ImportPath, part.Name)
				}
			}
		}
	}
	var blocks func(list []comment.Block)
	blocks = func(list []comment.Block) {
		for _, block := range list {
			switch block := block.(type) {
			case *comment.Paragraph:
				check(block.Text)
			case *comment.Heading:
				check(block.Text)
			case *comment.List:
				for _, item := range block.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(text.Content)
	for _, link := range text.Links {
		if !link.Used {
			t.Errorf("%s: the comment of %s defines the link %q, which it does not use", name, symbol, link.Text)
		}
	}
}

// exports reports whether a package exports a name or, with a receiver, whether that type exports the method or field.
func exports(p *doc.Package, receiver, name string) bool {
	values := func(list []*doc.Value) bool {
		return slices.ContainsFunc(list, func(v *doc.Value) bool { return slices.Contains(v.Names, name) })
	}
	functions := func(list []*doc.Func) bool {
		return slices.ContainsFunc(list, func(f *doc.Func) bool { return f.Name == name })
	}
	if receiver == "" && (values(p.Consts) || values(p.Vars) || functions(p.Funcs)) {
		return true
	}
	return slices.ContainsFunc(p.Types, func(typ *doc.Type) bool {
		if receiver != "" {
			return typ.Name == receiver && (functions(typ.Methods) || strings.Contains(onLine(typ.Decl), name))
		}
		return typ.Name == name || values(typ.Consts) || values(typ.Vars) || functions(typ.Funcs)
	})
}
