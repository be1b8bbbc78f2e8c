package directory

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Names tell which files are scripts, by the last element of a file's path. The methods are called from many goroutines.
type Names interface {
	// IsScript reports whether a file is a script.
	IsScript(name string) bool
	// IsPart reports whether a script is a part of other scripts, or a test. In a directory such a script is not served by itself.
	IsPart(name string) bool
}

// These files mark a folder that is not a namespace: one that holds parts of scripts, or a Python virtual environment.
const (
	packageFile     = "__init__.py"
	environmentFile = "pyvenv.cfg"
)

// libraries are the folders in which package managers and interpreters keep files: too many to look at each time.
var libraries = []string{"node_modules", "__pycache__"}

// holds reports whether a folder's sorted entries include a name.
func holds(entries []fs.DirEntry, name string) bool {
	_, ok := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return ok
}

// isPackage reports whether a folder with these entries holds parts of scripts.
func isPackage(entries []fs.DirEntry) bool {
	return holds(entries, packageFile) || holds(entries, environmentFile)
}

// around notes which files lie around the scripts. It returns the files that are new or have changed, and the base names of all files that have come,
// gone or changed.
func (v *versions) around(parts map[string]fs.FileInfo) (changed []found, names map[string]bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	names = map[string]bool{}
	for name, info := range parts {
		if !same(v.parts[name], info) {
			changed = append(changed, found{path: name, info: info})
			names[path.Base(name)] = true
		}
	}
	for name := range v.parts {
		if parts[name] == nil {
			names[path.Base(name)] = true
		}
	}
	if len(names) > 0 {
		v.round++
	}
	v.parts = parts
	slices.SortFunc(changed, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return changed, names
}

// isScript reports whether a file is a script, by the last element of its path.
func (v *versions) isScript(name string) bool {
	return v.scripts != nil && v.scripts.IsScript(filepath.Base(name))
}
