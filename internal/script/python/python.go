// Package python collects the files of a script in Python: the modules and packages that it imports, and the libraries that its project names. It
// does not run what it reads.
//
// A bundle has the script first, under its own name. The other files have the paths by which they are imported: name.py, or name/__init__.py and
// everything else in a package's folder, including data. A library comes with the METADATA of its distribution.
package python

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/script/engine"
)

// Options say where a script's modules are looked for, besides the script's own folder.
type Options struct {
	// Root restricts reading to this folder and everything below it: nothing else is looked at, and links that lead out of it lead nowhere. If empty,
	// the script may import what its author can read, such as libraries of the virtual environment in use.
	Root string
	// With are folders with more packages. A folder with an __init__.py is itself a package; any other contains modules and packages.
	With []string
	// Content is the content of the script's own file, in place of the file on disk, which need not exist. If nil, the file is read.
	Content []byte
}

// Collect returns the files of a script's bundle, and the paths on disk that were read or looked for: if one of these changes, the script must be
// collected again. The paths are also returned with an error. The error is for the script's author; if a line of the script is to blame, the error
// says which, and shows it. Files' names in it are relative to the script's folder.
//
// Collect returns early when ctx ends.
func Collect(ctx context.Context, script string, o Options) (files []engine.File, inputs []string, err error) {
	path, err := filepath.Abs(script)
	if err != nil {
		return nil, nil, err
	}
	disk, err := openDisk(ctx, o.Root)
	if err != nil {
		return nil, []string{path}, err
	}
	defer disk.close()
	disk.script, disk.content = path, o.Content
	c := collector{disk: disk, script: filepath.Base(path), taken: map[string]bool{}, known: map[string]bool{ourselves: true}, offered: map[string]func() error{}}
	err = c.collect(path, o.With)
	return c.files, disk.inputs(), err
}

// ourselves is the package that the engine already has: a copy in a virtual environment is for tests.
const ourselves = "toolsrv"

// A collector collects the files of one script.
type collector struct {
	disk    *disk
	script  string   // the name of its file
	folders []string // where modules are looked for, in this order
	files   []engine.File
	taken   map[string]bool // names in files
	known   map[string]bool // modules that were already looked for
	// offered maps the names of imports to functions. When something imports a name, its function loads the libraries that have it.
	offered map[string]func() error
}

func (c *collector) collect(path string, with []string) error {
	source, err := c.disk.read(path)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", c.script, err)
	}
	c.add(c.script, source)
	c.known[strings.TrimSuffix(c.script, ".py")] = true
	c.folders = []string{filepath.Dir(path)}
	for _, folder := range with {
		if err := c.with(folder); err != nil {
			return err
		}
	}
	if err := c.libraries(filepath.Dir(path)); err != nil {
		return err
	}
	return c.imports(c.script, source)
}

// with adds a folder of packages. If the folder is itself a package, it is added whole; otherwise only what is imported is added.
func (c *collector) with(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if !c.disk.isFolder(folder) {
		return fmt.Errorf("--with %s: there is no such folder", folder)
	}
	if !c.disk.isFile(filepath.Join(folder, "__init__.py")) {
		c.folders = append(c.folders, folder)
		return nil
	}
	name := filepath.Base(folder)
	if !isIdentifier(name) {
		return fmt.Errorf("--with %s: %q can't be imported: rename the folder, or name the one that holds the package", folder, name)
	}
	c.known[name] = true
	if err := c.folder(folder, name); err != nil {
		return fmt.Errorf("--with %s: %w", folder, err)
	}
	return nil
}

// add adds a file, unless there already is one with its name: Python, too, would use the first one found.
func (c *collector) add(name string, data []byte) bool {
	if c.taken[name] {
		return false
	}
	c.taken[name] = true
	c.files = append(c.files, engine.File{Name: name, Data: data})
	return true
}

// imports collects what a file imports, directly or not.
func (c *collector) imports(name string, source []byte) error {
	for _, i := range importsOf(source) {
		if c.known[i.name] {
			continue
		}
		c.known[i.name] = true
		if err := c.find(i.name); err != nil {
			return placed(err, name, source, i)
		}
	}
	return nil
}

// find collects the module or package with a name, or the library that provides it. If there is none, the engine may have it.
func (c *collector) find(name string) error {
	for _, folder := range c.folders {
		if found, err := c.module(folder, name); found || err != nil {
			return err
		}
	}
	if load := c.offered[name]; load != nil {
		return load()
	}
	return nil
}

// module collects the module or package with a name in a folder, if it exists.
func (c *collector) module(folder, name string) (found bool, err error) {
	path := filepath.Join(folder, name)
	if c.disk.isFile(filepath.Join(path, "__init__.py")) {
		return true, c.folder(path, name)
	}
	if c.disk.isFile(path + ".py") {
		source, err := c.disk.read(path + ".py")
		if err != nil {
			return true, fmt.Errorf("%s.py can't be read: %w", name, err)
		}
		c.add(name+".py", source)
		return true, c.imports(name+".py", source)
	}
	entries, err := c.disk.list(folder)
	if err != nil {
		return false, fmt.Errorf("%s can't be read: %w", filepath.Base(folder), err)
	}
	for _, entry := range entries {
		if stem, rest, _ := strings.Cut(entry, "."); stem == name && isCompiled(rest) {
			return true, &compiledError{name, entry}
		}
	}
	if !slices.Contains(entries, name) || !c.disk.isFolder(path) || !c.disk.holdsModules(path) {
		return false, nil
	}
	return true, c.folder(path, name)
}

// folder collects a package: everything in its folder, except what Python itself makes.
func (c *collector) folder(path, name string) error {
	entries, err := c.disk.list(path)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", name, err)
	}
	for _, entry := range entries {
		inside, full := name+"/"+entry, filepath.Join(path, entry)
		switch {
		case entry == "__pycache__" || strings.HasPrefix(entry, "."):
		case c.disk.isFolder(full):
			err = c.folder(full, inside)
		case isCompiled(entry):
			top, _, _ := strings.Cut(name, "/")
			return &compiledError{top, inside}
		case isLeftOut(entry) || !c.disk.isFile(full):
		default:
			var data []byte
			if data, err = c.disk.read(full); err != nil {
				err = fmt.Errorf("%s can't be read: %w", inside, err)
			} else if c.add(inside, data) && strings.HasSuffix(entry, ".py") {
				err = c.imports(inside, data)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isCompiled reports whether a file is machine code.
func isCompiled(name string) bool {
	ending := filepath.Ext("x." + name)
	return ending == ".so" || ending == ".pyd" || ending == ".dylib" || ending == ".dll"
}

// isLeftOut reports whether a file is of no use at run time.
func isLeftOut(name string) bool {
	switch filepath.Ext(name) {
	case ".pyc", ".pyo", ".pyi", ".pyx", ".pxd", ".c", ".h", ".cpp":
		return true
	}
	return name == "py.typed"
}

// A compiledError is an error about a package with machine code.
type compiledError struct{ name, file string }

func (e *compiledError) Error() string {
	return fmt.Sprintf("%s has compiled code (%s), which the sandbox can't run", e.name, e.file)
}

// remedy returns what to do about an error, or nothing.
func remedy(err error) string {
	if compiled := (*compiledError)(nil); errors.As(err, &compiled) {
		return "Use a package in pure Python instead."
	}
	return ""
}

// placed returns an error with the position of the import that led to it, unless it already has one.
func placed(err error, name string, source []byte, i imported) error {
	if wrapped := (*placedError)(nil); errors.As(err, &wrapped) {
		return err
	}
	line := ""
	if lines := strings.SplitAfterN(string(source), "\n", i.line+1); len(lines) >= i.line {
		line = strings.ReplaceAll(strings.TrimRight(lines[i.line-1], "\r\n"), "\t", " ")
	}
	said := fmt.Sprintf("%s:%d:%d: %v\n    %s\n    %s^", name, i.line, i.column, err, line, strings.Repeat(" ", i.column-1))
	if more := remedy(err); more != "" {
		said += "\n" + more
	}
	return &placedError{said, err}
}

// A placedError is an error with the position that it comes from.
type placedError struct {
	said string
	err  error
}

func (e *placedError) Error() string { return e.said }

func (e *placedError) Unwrap() error { return e.err }
