package directory

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/touched"
)

// A Builder makes modules of scripts. Its methods are called from many goroutines.
type Builder interface {
	// IsScript reports whether a file is a script, by the last element of its path.
	IsScript(name string) bool
	// IsPart reports whether a script is a part of others, or a test, by the last element of its path: in a directory it is not
	// served by itself.
	IsPart(name string) bool
	// Build returns the module of the script at a path on disk, and the paths of the files that it depends on, those that it
	// including those that it looked for and did not find. It reads nothing that lies outside the folder root, unless that is empty. It
	// must return when ctx ends. An error with a method Temporary that returns true is not the script's fault: it is built again later.
	Build(ctx context.Context, root, path string) (module wasmbin.Made, inputs []string, err error)
}

// temporary are the errors of a Builder that may pass, and those of the system.
type temporary interface {
	error
	Temporary() bool
}

// What a folder has in it that is not a namespace, but holds parts of scripts, or what a Python virtual environment consists of.
const (
	packageFile     = "__init__.py"
	environmentFile = "pyvenv.cfg"
)

// libraries are the folders in which package managers and interpreters keep files: far too many to be looked at each time.
var libraries = []string{"node_modules", "__pycache__"}

// holds reports whether a folder's entries, which are sorted, have one of that name.
func holds(entries []fs.DirEntry, name string) bool {
	_, ok := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return ok
}

// A making is how a script was made into a module.
type making struct {
	inputs map[string]fs.FileInfo // of the files it depends on, by their paths on disk; nil: there was none
	failed bool
	round  uint64 // of the files around it, when it was made
}

// stale reports whether the same script would be made into something else now.
func (m *making) stale(round uint64) bool {
	if m.failed && m.round != round { // what it needs may have come
		return true
	}
	for name, then := range m.inputs {
		now, err := os.Stat(name)
		if err != nil {
			now = nil
		}
		if (now == nil) != (then == nil) || now != nil && !same(now, then) {
			return true
		}
	}
	return false
}

// make makes the module of a script, which is a file on disk, at the version that was listed.
func (v *versions) make(ctx context.Context, root, file, name, version string) (none wasmbin.Made, err error) {
	info := v.infoOf(name, version)
	if info == nil || !v.isScript(file) {
		return none, catalog.ErrChanged
	}
	v.mu.Lock()
	m := &making{inputs: map[string]fs.FileInfo{}, round: v.round}
	v.mu.Unlock()
	began := time.Now()
	module, inputs, err := v.builder.Build(ctx, root, file)
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	if passing, ok := errors.AsType[temporary](err); ok && passing.Temporary() || errors.Is(err, syscall.ENOMEM) {
		return none, &catalog.PassingError{Err: err}
	}
	if now, statErr := os.Stat(file); statErr != nil || !same(info, now) {
		return none, catalog.ErrChanged
	}
	for _, input := range inputs {
		now, statErr := os.Stat(input)
		if statErr == nil && touched.Since(now, began) {
			return none, catalog.ErrChanged // after it was read, perhaps
		}
		m.inputs[input] = now
	}
	m.failed = err != nil
	v.mu.Lock()
	if f := v.files[name]; f != nil && f.version == version {
		f.making = m
	}
	v.mu.Unlock()
	if err != nil {
		return none, &catalog.FileError{Err: err}
	}
	return module, nil
}

// around notes which files lie around the scripts, and returns those that are new or have changed.
func (v *versions) around(parts map[string]fs.FileInfo) (changed []found) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, info := range parts {
		if !same(v.parts[name], info) {
			changed = append(changed, found{path: name, info: info})
		}
	}
	if len(changed) > 0 || len(parts) != len(v.parts) {
		v.round++
	}
	v.parts = parts
	slices.SortFunc(changed, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return changed
}

// stale returns the scripts that have to be made into modules again, by their paths.
func (v *versions) stale() map[string]bool {
	makings := map[string]*making{}
	v.mu.Lock()
	round := v.round
	for name, f := range v.files {
		if f.making != nil {
			makings[name] = f.making
		}
	}
	v.mu.Unlock()
	stale := map[string]bool{}
	for name, m := range makings { // looks at files, so without the lock
		if m.stale(round) {
			stale[name] = true
		}
	}
	return stale
}

// isScript reports whether a file that was listed, or its path, is a script's.
func (v *versions) isScript(name string) bool {
	return v.builder != nil && v.builder.IsScript(filepath.Base(name))
}
