// Package project handles the project of an author of tools, a folder or a single script: it creates one, finds out its language, runs that
// language's compiler with the right flags, and reports when a source has changed.
//
// Scripts need no compiler, and are not run. Compilers are programs on the author's machine and run the project's own code (a Cargo build script, for
// example), so a project must be as trusted as any source code that is built.
package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/script"
)

// A Language is the language of a project, with its compiler.
type Language string

// The languages.
const (
	Go         Language = "go"
	TinyGo     Language = "tinygo"
	Rust       Language = "rust"
	Python     Language = Language(script.Python)
	JavaScript Language = Language(script.JavaScript)
	TypeScript Language = Language(script.TypeScript)
)

// Languages are all languages that [New] accepts.
func Languages() []Language { return []Language{Go, TinyGo, Rust, Python, JavaScript, TypeScript} }

// manifestFile beside the sources makes a project a plain WASI program, which does not use our SDK. The file holds the manifest, since such a program
// has none inside.
const manifestFile = "tool.json"

// A Project is a folder with the source of one module, or a single script.
type Project struct {
	// Dir is the absolute path of the folder, or of the script's folder.
	Dir string
	// Name is the name of the folder or of the script, and of the module's file without its ending.
	Name string
	// Language is what the project is written in.
	Language Language
	// Plain is whether there is a manifestFile.
	Plain bool
	// Script is the absolute path of a tool's script, or empty if its language is compiled.
	Script string
	// With are folders with additional packages for a Python script.
	With []string
	// Inputs are the files on which the script depends, as the last Compile found.
	Inputs []string

	target      string // what the compiler builds for, or empty for the language's default
	stack       int64  // bytes of the module's memory, for TinyGo
	targetFlags bool   // the project's Cargo configuration has flags for its target
}

// Open finds out what is at a path: a script, or a folder. A project in Rust has a Cargo.toml, and one in Go has Go files. It is for TinyGo if one of
// these has the line
//
//	//toolsrv:tinygo
//
// above its imports. The line may go on with wasm-unknown, for that target instead of wasip1, and with stack=SIZE, if the tool needs more than 512
// KiB. A folder with neither belongs to a script: the one that package.json names as "main", or that has the folder's name, or is called main or
// index, or is the only one.
func Open(dir string) (*Project, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if language := script.LanguageOf(abs); language != "" {
		if info, err := os.Stat(abs); err == nil && info.Mode().IsRegular() {
			name := filepath.Base(abs)
			return &Project{Dir: filepath.Dir(abs), Name: strings.TrimSuffix(name, filepath.Ext(name)), Language: Language(language), Script: abs}, nil
		}
	}
	entries, err := os.ReadDir(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if script.LanguageOf(abs) != "" {
			return nil, fmt.Errorf("there is no script %s", dir)
		}
		return nil, fmt.Errorf("there is no file or folder %s: name the folder that holds the tool's source, or make one with: toolsrv new", dir)
	case err != nil:
		if info, statErr := os.Stat(abs); statErr == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s is not a script: name one (.py, .js, .mjs, .ts or .mts), or the folder with the tool's source", dir)
		}
		return nil, fmt.Errorf("look for the source of a tool: %w", err)
	}
	p := &Project{Dir: abs, Name: filepath.Base(abs)}
	var cargo, goMod, npm bool
	var sources, scripts []string
	for _, entry := range entries {
		name := entry.Name()
		switch info, err := os.Stat(filepath.Join(abs, name)); { // through links
		case err != nil || !info.Mode().IsRegular():
		case name == "Cargo.toml":
			cargo = true
		case name == "go.mod":
			goMod = true
		case name == packageFile:
			npm = true
		case name == manifestFile:
			p.Plain = true
		case filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			sources = append(sources, filepath.Join(abs, name))
		case script.LanguageOf(name) != "":
			scripts = append(scripts, name)
		}
	}
	switch {
	case cargo && (goMod || sources != nil):
		return nil, fmt.Errorf("%s contains both Rust (Cargo.toml) and Go: give each its own folder", abs)
	case cargo:
		p.Language = Rust
		err = p.readCargo()
	case sources != nil:
		err = p.readGo(sources)
	case goMod:
		return nil, fmt.Errorf("%s has a go.mod, but no Go file: name the folder of the package main", abs)
	case scripts != nil || npm:
		err = p.readScripts(scripts)
	default:
		tools, _ := os.ReadDir(filepath.Join(abs, toolsFolder)) // the folder may not exist
		if i := slices.IndexFunc(tools, func(e fs.DirEntry) bool { return script.LanguageOf(e.Name()) != "" }); i >= 0 {
			return nil, fmt.Errorf("%s has no source of a tool, but scripts in its folder %s: name one of these, such as %s", abs, toolsFolder, filepath.Join(dir, toolsFolder, tools[i].Name()))
		}
		return nil, fmt.Errorf("%s has no Go file, no Cargo.toml and no script: name a folder with a tool in Go, Rust, Python, JavaScript or TypeScript; "+
			"toolsrv pack makes a tool of another compiler's .wasm file", abs)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
