package toolsrv_test

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

// TestArchitectureDiagram holds the diagram's boxes to packages, and its arrows to the allowed imports.
func TestArchitectureDiagram(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, architecture), "```mermaid\n")
	diagram, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no diagram", architecture)
	}
	packages := map[string]string{} // by the name of the box
	for _, box := range regexp.MustCompile(`(\w+)\["([^"<]+)`).FindAllStringSubmatch(diagram, -1) {
		packages[box[1]] = box[2]
		if info, err := os.Stat(box[2]); err != nil || !info.IsDir() {
			t.Errorf("the diagram has a box %s, which is not a package", box[2])
		}
	}
	picture, _, _ := strings.Cut(read(t, architecture), "\nThe reasons")
	named := regexp.MustCompile(`\b(?:cmd|internal|wasmtools|runtime)/[a-z0-9/]*[a-z0-9]`).FindAllString(picture, -1)
	if len(named) < 5 {
		t.Errorf("the picture at the top of %s names %d packages only", architecture, len(named))
	}
	for _, dir := range named {
		if edges[dir] == nil {
			t.Errorf("the picture at the top of %s names %s, which is not a package", architecture, dir)
		}
	}
	arrows := regexp.MustCompile(`(\w+)(?:\["[^"]*"\])? --> (\w+)`).FindAllStringSubmatch(diagram, -1)
	for _, arrow := range arrows {
		from, to := packages[arrow[1]], packages[arrow[2]]
		if from == "" || to == "" {
			t.Errorf("the diagram's arrow %s leads from or to a box without a package", arrow[0])
		} else if !slices.Contains(edges[from], to) {
			t.Errorf("the diagram has an arrow from %s to %s, which it doesn't import", from, to)
		}
	}
	if len(arrows) < 30 {
		t.Errorf("found %d arrows only", len(arrows))
	}
	boxes := slices.Collect(maps.Values(packages))
	leftOut := regexp.MustCompile(`^(sdk|examples|bench|deploy)/|./internal/`)
	shown := regexp.MustCompile(`^internal/(author|capability|catalog|mcp|runtime|script|state)\b`)
	for dir := range edges {
		if !leftOut.MatchString(dir) && (!strings.HasPrefix(dir, "internal/") || shown.MatchString(dir)) && !slices.Contains(boxes, dir) {
			t.Errorf("the diagram has no box for %s", dir)
		}
	}
}

// TestArchitectureNames holds the names of code on the page to the files that are linked beside them: each is declared in a
// file of the same line. TestLinks holds the files.
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
				continue // no names of code: a line without files
			}
			if checked++; !known[match[1]] {
				t.Errorf("%s names %s, which none of the files linked in that line declares:\n%.160s", architecture, match[1], line)
			}
		}
	}
	if checked < 40 {
		t.Errorf("found %d names only", checked)
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
