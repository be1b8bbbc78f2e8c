package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A source is a package of this tree.
type source struct {
	ImportPath                                  string
	Dir                                         string // at first absolute; later relative to the root, with slashes
	Imports, TestImports, XTestImports          []string
	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
}

// read returns the files of the package in a folder, or of all packages below it if it ends in /..., and of what they import from this
// tree. With tests it adds the files of their tests, and of what those import. The tests of what is imported don't count. Files in folders
// without Go, such as testdata, belong to the package above them: to its tests, if it does not embed them. Pages count where they are
// embedded. The files go.mod and go.sum belong to all packages of their module. Files outside a package that its tests name belong to the tests, too.
func (t *tree) read(folder string, tests bool) ([]string, error) {
	dir, all := strings.CutSuffix(folder, "/...")
	packages, err := t.load(nearest(t.modules, dir))
	if err != nil {
		return nil, fmt.Errorf("list what %s imports: %w", folder, err)
	}
	byPath := map[string]*source{}
	code, tested := map[string]bool{}, map[string]bool{} // folders
	var imports []string
	for name, p := range packages {
		byPath[p.ImportPath] = p
		if name == dir || all && (dir == "." || strings.HasPrefix(name, dir+"/")) {
			code[name] = true
			imports = append(imports, p.Imports...)
			if tests {
				tested[name] = true
				imports = append(imports, slices.Concat(p.TestImports, p.XTestImports)...)
			}
		}
	}
	for len(imports) > 0 {
		p := byPath[imports[0]]
		if imports = imports[1:]; p != nil && !code[p.Dir] {
			code[p.Dir] = true
			imports = append(imports, p.Imports...)
		}
	}
	counted := map[string]bool{} // wherever they are
	needed := map[string]bool{}
	for name := range code {
		p := packages[name]
		for _, file := range slices.Concat(p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles) {
			counted[path.Join(name, file)] = true
		}
		needed[nearest(t.modules, name)] = true
	}
	for name := range tested {
		outside, err := t.outside(name)
		if err != nil {
			return nil, err
		}
		for _, file := range outside {
			counted[file] = true
		}
	}
	var files []string
	for _, file := range t.files {
		owner := nearest(t.folders, path.Dir(file))
		switch name := path.Base(file); {
		case name == "go.mod" || name == "go.sum":
			if !needed[path.Dir(file)] {
				continue
			}
		case counted[file]:
		case isPage(file):
			continue
		case tested[owner]:
		case !code[owner] || owner != path.Dir(file) || strings.HasSuffix(name, "_test.go"):
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

// load returns the packages of a module and those of this tree that they import, by their folders.
func (t *tree) load(module string) (map[string]*source, error) {
	if packages, ok := t.packages[module]; ok {
		return packages, nil
	}
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,EmbedFiles,TestEmbedFiles,XTestEmbedFiles", "./...")
	list.Dir = filepath.Join(t.root, module)
	var said strings.Builder
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.String())
	}
	packages := map[string]*source{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &source{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		inside, err := filepath.Rel(t.root, p.Dir)
		if err != nil || !filepath.IsLocal(inside) || strings.Contains(p.ImportPath, " ") || strings.HasSuffix(p.ImportPath, ".test") {
			continue // another module's package, or a variant for a test
		}
		p.Dir = filepath.ToSlash(inside)
		packages[p.Dir] = p
	}
	t.packages[module] = packages
	return packages, nil
}

var (
	leadsOut = regexp.MustCompile(`"((?:\.\./)+[\w./-]*)`)
	fixture  = regexp.MustCompile(`Fixture\(\w+, "([\w/-]+)"`) // of package testkit
)

// outside returns the files outside a package's folder that its tests name, by a path that begins with dots, or as a fixture. A folder stands for all
// files in it except pages.
func (t *tree) outside(folder string) ([]string, error) {
	var named []string
	for _, file := range t.files {
		if path.Dir(file) != folder || !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return nil, err
		}
		for _, match := range leadsOut.FindAllSubmatch(text, -1) {
			named = append(named, path.Join(folder, string(match[1])))
		}
		for _, match := range fixture.FindAllSubmatch(text, -1) {
			named = append(named, "testdata/"+string(match[1])+".wasm")
		}
	}
	var files []string
	for _, file := range t.files {
		if slices.ContainsFunc(named, func(name string) bool { return file == name || strings.HasPrefix(file, name+"/") && !isPage(file) }) {
			files = append(files, file)
		}
	}
	return files, nil
}

// nearest returns the first of the given folders on the way up from a folder, or "".
func nearest(folders map[string]bool, from string) string {
	for ; ; from = path.Dir(from) {
		switch {
		case folders[from]:
			return from
		case from == ".":
			return ""
		}
	}
}
