// Command systems checks the types of all packages below folders, including tests, for other systems than this one, and vets the packages that
// consist of different files there.
//
//	systems GOOS/GOARCH,... DIR...
//
// It does not vet all packages: the go command would have to compile them, and many of them several times, for the tests of other packages.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: systems GOOS/GOARCH,... DIR...")
		os.Exit(2)
	}
	if err := check(strings.Split(os.Args[1], ","), os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A listed is a package in the output of go list: with its tests, without them, or in the variant for the tests of another package.
type listed struct {
	ImportPath, Dir, ForTest string
	GoFiles                  []string
	ImportMap                map[string]string
	Standard, DepOnly        bool
	Module                   *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// check checks the packages below folders for systems, and writes what it and the go command report.
func check(systems, dirs []string, out io.Writer) error {
	read := &files{set: token.NewFileSet(), parsed: map[string]*ast.File{}}
	standard := map[string]map[string]*types.Package{} // by system
	for _, system := range systems {
		standard[system] = map[string]*types.Package{"unsafe": types.Unsafe}
	}
	var errs []error
	for _, dir := range dirs {
		fmt.Fprintln(out, "check", dir)
		here, err := list(dir, "", out)
		if err != nil {
			return err
		}
		for _, system := range systems {
			p := &program{files: read, standard: standard[system], packages: map[string]*types.Package{}}
			if err := p.checkFor(dir, system, here, out); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", system, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (p *program) checkFor(dir, system string, here []*listed, out io.Writer) error {
	there, err := list(dir, system, out)
	if err != nil {
		return err
	}
	if err := p.typed(there, system); err != nil {
		return err
	}
	vet := other(there, here)
	fmt.Fprintf(out, "%s: checked the types of %d packages, and vetted %d of them\n", system, len(there), len(vet))
	if len(vet) == 0 {
		return nil
	}
	cmd := exec.Command("go", append([]string{"vet"}, vet...)...)
	cmd.Dir, cmd.Env = dir, environment(system)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// environment returns the environment of the go command for a system; "" means this system.
func environment(system string) []string {
	env := append(os.Environ(), "CGO_ENABLED=0")
	if os, arch, ok := strings.Cut(system, "/"); ok {
		env = append(env, "GOOS="+os, "GOARCH="+arch)
	}
	return env
}

// list returns the packages below a folder and all that they need, each after those that it imports.
func list(dir, system string, out io.Writer) ([]*listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,ForTest,GoFiles,ImportMap,Standard,DepOnly,Module,Error", "./...")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, environment(system), out
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []*listed
	for decoder := json.NewDecoder(bytes.NewReader(said)); ; {
		p := &listed{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		if p.Error != nil {
			return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		if !strings.HasSuffix(p.ImportPath, ".test") { // the main packages of tests, which the go command generates
			all = append(all, p)
		}
	}
}

// ours reports whether a package is checked as a whole: it belongs to this module, and is not a variant for the tests of another package.
func (p *listed) ours() bool {
	name, _, _ := strings.Cut(p.ImportPath, " ")
	return !p.Standard && p.Module != nil && p.Module.Main && !p.DepOnly && (p.ForTest == "" || name == p.ForTest || name == p.ForTest+"_test")
}

// other returns those of our packages that consist of different files than on this system.
func other(there, here []*listed) []string {
	files := map[string][]string{}
	for _, p := range here {
		files[p.ImportPath] = p.GoFiles
	}
	var names []string
	for _, p := range there {
		if p.ours() && !slices.Equal(p.GoFiles, files[p.ImportPath]) {
			name, _, _ := strings.Cut(p.ImportPath, " ")
			names = append(names, strings.TrimSuffix(name, "_test"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// files has each file, parsed once for all systems and folders.
type files struct {
	set    *token.FileSet
	parsed map[string]*ast.File
}

func (f *files) parse(name string) (*ast.File, error) {
	if file := f.parsed[name]; file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(f.set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f.parsed[name] = file
	return file, nil
}

// A program has the types of packages, by their names in go list.
type program struct {
	*files
	standard map[string]*types.Package // the packages of Go, which other folders share for the same system
	packages map[string]*types.Package // the others
}

// typed checks the types of packages. Of other modules' packages it does not check the bodies of functions.
func (p *program) typed(all []*listed, system string) error {
	_, arch, _ := strings.Cut(system, "/")
	var errs []error
	for _, l := range all {
		packages := p.packages
		if l.Standard {
			if packages = p.standard; packages[l.ImportPath] != nil {
				continue
			}
		}
		var files []*ast.File
		for _, name := range l.GoFiles {
			file, err := p.parse(filepath.Join(l.Dir, name))
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		name, _, _ := strings.Cut(l.ImportPath, " ")
		config := types.Config{
			IgnoreFuncBodies: !l.ours(),
			Importer:         importer{p, l.ImportMap},
			Sizes:            types.SizesFor("gc", arch),
			Error: func(err error) {
				errs = append(errs, err)
			},
		}
		if l.Module != nil && l.Module.GoVersion != "" {
			config.GoVersion = "go" + l.Module.GoVersion
		}
		packages[l.ImportPath], _ = config.Check(name, p.set, files, nil) // the errors go to errs
	}
	return errors.Join(errs...)
}

// An importer finds what one package imports.
type importer struct {
	*program
	names map[string]string // if go list uses a different name
}

func (i importer) Import(name string) (*types.Package, error) {
	if other, ok := i.names[name]; ok {
		name = other
	}
	for _, packages := range []map[string]*types.Package{i.packages, i.standard} {
		if p := packages[name]; p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("go list has no %s", name)
}
