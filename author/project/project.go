// Package project looks after the folder that an author of tools works in: it makes a new one, finds out its language,
// runs that language's compiler with the right flags, and says when a source has changed.
//
// The compilers are programs of the author's machine and run the project's own code (a Cargo build script, for
// example), so a project should be as trusted as any source that is built.
package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Language is what a project is written in, with its compiler.
type Language string

// The languages.
const (
	Go     Language = "go"
	TinyGo Language = "tinygo"
	Rust   Language = "rust"
)

// Languages are all languages, as [New] takes them.
func Languages() []Language { return []Language{Go, TinyGo, Rust} }

// manifestFile beside the sources makes a project a plain WASI program, which knows nothing of us: it holds the
// manifest, since such a program has none inside.
const manifestFile = "tool.json"

// A Project is a folder with the source of one module.
type Project struct {
	// Dir is the folder's absolute path.
	Dir string
	// Name is the folder's name, and that of the module's file without its ending.
	Name string
	// Language is what the project is written in.
	Language Language
	// Plain says that there is a manifestFile.
	Plain bool

	target      string // what the compiler builds for, or empty for the language's default
	goroutines  bool   // TinyGo compiles them, too
	targetFlags bool   // the project's Cargo configuration has flags for its target
}

// Open finds out what the folder dir holds. A project in Rust has a Cargo.toml, one in Go has Go files; it is for TinyGo
// where one of them has the line
//
//	//toolsrv:tinygo
//
// above its imports, followed by a target of TinyGo's where it shall not be wasip1, and by the word goroutines where the
// tool needs them.
func Open(dir string) (*Project, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: name the folder that holds the tool's source, or make one with: toolsrv new", dir)
	case err != nil:
		if info, statErr := os.Stat(abs); statErr == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s is a file: name the folder that holds the tool's source", dir)
		}
		return nil, fmt.Errorf("look for the source of a tool: %w", err)
	}
	p := &Project{Dir: abs, Name: filepath.Base(abs)}
	var cargo, goMod bool
	var sources []string
	for _, entry := range entries {
		name := entry.Name()
		switch info, err := os.Stat(filepath.Join(abs, name)); { // through links
		case err != nil || !info.Mode().IsRegular():
		case name == "Cargo.toml":
			cargo = true
		case name == "go.mod":
			goMod = true
		case name == manifestFile:
			p.Plain = true
		case filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			sources = append(sources, filepath.Join(abs, name))
		}
	}
	switch {
	case cargo && (goMod || sources != nil):
		return nil, fmt.Errorf("%s holds Rust (Cargo.toml) and Go: give each a folder of its own", abs)
	case cargo:
		p.Language = Rust
		err = p.readCargo()
	case sources != nil:
		err = p.readGo(sources)
	case goMod:
		return nil, fmt.Errorf("%s has a go.mod, but no Go file: name the folder of the package main", abs)
	default:
		return nil, fmt.Errorf("%s has no Go file and no Cargo.toml: name a folder with a tool in Go or Rust; "+
			"a .wasm file that another compiler made becomes a tool with: toolsrv pack", abs)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
