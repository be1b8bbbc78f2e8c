package toolsrv_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

// TestArchitecturePicture checks that the names in the picture at the top of the page are packages.
func TestArchitecturePicture(t *testing.T) {
	t.Parallel()
	picture, _, _ := strings.Cut(read(t, architecture), "\nThe reasons")
	named := regexp.MustCompile(`\b(?:cmd|internal|wasmtools|runtime)/[a-z0-9/]*[a-z0-9]`).FindAllString(picture, -1)
	if len(named) < 5 {
		t.Errorf("the picture at the top of %s names only %d packages", architecture, len(named))
	}
	for _, dir := range named {
		if edges[dir] == nil {
			t.Errorf("the picture at the top of %s names %s, which is not a package", architecture, dir)
		}
	}
}

// TestPackagesPage compares docs/generated/packages.md with the packages: their documentation, and which of our packages they may import.
// `go test . -update` writes the page.
func TestPackagesPage(t *testing.T) {
	t.Parallel()
	const page = "docs/generated/packages.md"
	says := map[string]string{}
	for _, s := range sources(t) {
		if !s.test && s.ast.Doc != nil {
			says[s.dir] = new(doc.Package).Synopsis(s.ast.Doc.Text())
		}
	}
	var want strings.Builder
	want.WriteString("# Packages\n\nWhat each package says it is, and which of ours it may import. `go test . -update` writes this page from their documentation and from arch_test.go.\n\n| package | | imports |\n|---|---|---|\n")
	leftOut := regexp.MustCompile(`^(sdk|examples|bench|deploy|internal/testkit)/`)
	for _, dir := range slices.Sorted(maps.Keys(edges)) {
		if leftOut.MatchString(dir + "/") {
			continue
		}
		if says[dir] == "" {
			t.Errorf("%s has a line in edges, but no documentation", dir)
		}
		fmt.Fprintf(&want, "| %s | %s | %s |\n", dir, strings.ReplaceAll(says[dir], "|", `\|`), strings.Join(slices.Sorted(slices.Values(edges[dir])), ", "))
	}
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if read(t, page) != want.String() {
		t.Errorf("%s is not what the packages say: run `go test . -update`, and look at the diff", page)
	}
}

// TestArchitectureNames checks that each name of code on the page is declared in a file that is linked on the same line. TestLinks checks the files.
func TestArchitectureNames(t *testing.T) {
	t.Parallel()
	declared := map[string]map[string]bool{}
	for _, s := range sources(t) {
		declared[s.path] = declarations(s.ast)
	}
	name := regexp.MustCompile("`([A-Za-z_]+(?:\\.[A-Za-z_]+)?)`")
	checked := 0
	for _, line := range strings.Split(read(t, architecture), "\n") {
		known := map[string]bool{}
		for _, link := range mdLink.FindAllStringSubmatch(line, -1) {
			file := path.Join(path.Dir(architecture), link[2])
			if strings.HasSuffix(file, ".go") && declared[file] == nil {
				t.Errorf("%s names %s, which is not a file of ours", architecture, file)
			}
			for n := range declared[file] {
				known[n] = true
			}
		}
		for _, match := range name.FindAllStringSubmatch(line, -1) {
			if len(known) == 0 {
				continue // a line without links to files names no code
			}
			if checked++; !known[match[1]] {
				t.Errorf("%s names %s, which none of the files linked in that line declares:\n%.160s", architecture, match[1], line)
			}
		}
	}
	if checked < 40 {
		t.Errorf("found only %d names", checked)
	}
}

// declarations returns the names that a file declares: functions, types, constants and variables, and methods as Type.Method.
func declarations(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
				continue
			}
			names[strings.TrimLeft(onLine(d.Recv.List[0].Type), "*")+"."+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	return names
}
