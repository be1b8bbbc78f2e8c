package directory

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/touched"
)

// These are the bounds of one scan, in addition to the number of modules.
const (
	maxDepth         = 16
	leastEntries     = 100_000 // how many entries may be looked at, at least
	entriesPerModule = 10
)

// scanned is what one scan saw. Paths are relative to the directory and have slashes.
type scanned struct {
	files    []found                // sorted by path
	parts    map[string]fs.FileInfo // the files that scripts may be made of: all files but modules, by path; if nil, there are no scripts
	folders  map[string]fs.FileInfo // all folders that were listed, with the directory itself as "."
	problems []catalog.Problem      // folders that could not be listed, or only in part
	partial  bool                   // the scan ended before it had seen the whole directory
	unserved []string               // names of scripts, where scripts are not served, sorted by path
	links    bool                   // a symbolic link was followed: its target may lie where nothing is watched
	looks    map[string]*look       // what was seen in each of the folders
	looked   int                    // how many entries of folders were looked at
	only     map[string]bool        // the files that may have changed since the last scan; nil: all
}

// found is a file that is a module or a script by its name.
type found struct {
	path   string
	script bool
	info   fs.FileInfo
	linked bool  // info describes a link's target
	err    error // why it can't be a module
}

// same reports whether a file has the same content at two times, as far as its info shows.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && touched.Same(a, b)
}

// openRoot opens a directory. With the separator at the end, the system refuses anything that is not a directory. Without the
// separator, if somebody had put a pipe in the directory's place, opening it would block until somebody opens the pipe's other end.
func openRoot(directory string) (*os.Root, error) {
	root, err := os.OpenRoot(directory + string(filepath.Separator))
	switch {
	case err == nil:
		return root, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the directory is missing (%w): make it, or name another one", err)
	case isFile(directory):
		return nil, fmt.Errorf("%s is not a directory: name the folder that the files are in", directory)
	}
	return nil, err
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// scan lists the modules of a directory and, if scripts is not nil, its scripts, up to a maximum number. If scripts is nil, isScript tells which of
// the files that are passed over would be scripts; it may be nil. scan never leaves the directory, opens only folders, and fails only if the
// directory itself can't be read.
func scan(directory string, modules int, scripts Names, isScript func(name string) bool) (*scanned, error) {
	root, err := openRoot(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := newScanner(root, modules, scripts, isScript)
	if err := s.folder(place{name: "."}); err != nil {
		return nil, err
	}
	slices.Sort(s.seen.unserved)
	slices.SortFunc(s.seen.files, func(a, b found) int { return cmp.Compare(a.path, b.path) })
	return s.seen, nil
}

// readable returns nil if a directory can be listed. Otherwise it returns an error that says why not.
func readable(directory string) error {
	root, err := openRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// A scanner is one scan under way.
type scanner struct {
	root             *os.Root
	scripts          Names                  // nil: there are none
	unserved         func(name string) bool // tells, if scripts is nil, whether a file would be a script; may be nil
	modules, entries int                    // the bounds
	left             int                    // entries that may still be looked at
	seen             *scanned
}

func newScanner(root *os.Root, modules int, scripts Names, isScript func(name string) bool) *scanner {
	entries := max(leastEntries, modules*entriesPerModule)
	s := &scanner{root: root, scripts: scripts, unserved: isScript, modules: modules, entries: entries, left: entries,
		seen: &scanned{folders: map[string]fs.FileInfo{}, looks: map[string]*look{}}}
	if scripts != nil {
		s.seen.parts = map[string]fs.FileInfo{}
	}
	return s
}

// A place is where a folder or an entry of one lies.
type place struct {
	name   string
	above  []fs.FileInfo // the folders on the way to it
	linked bool          // the place itself, or a folder on the way, was reached through a link
	parts  bool          // it is below a folder whose scripts are parts of other scripts
}

// folder lists one folder and those below it.
func (s *scanner) folder(p place) error {
	if len(p.above) > maxDepth {
		return fmt.Errorf("is more than %d folders deep: move it up", maxDepth)
	}
	// Without O_NONBLOCK, opening a FIFO that was put in the folder's place just now would block until somebody writes to it.
	f, err := s.root.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	most := s.left
	info, entries, err := list(f, most)
	f.Close()
	if err != nil {
		return err
	}
	if p.linked && slices.ContainsFunc(p.above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return errors.New("is a link to a folder that contains it: remove the link")
	}
	if s.scripts != nil && holds(entries, environmentFile) {
		if p.name == "." { // otherwise nobody would learn why nothing is served
			s.seen.folders["."] = info
			s.problem(".", fmt.Errorf("is a virtual environment of Python, of which nothing is served: make it in a folder of its own, such as .venv, and remove %s here", environmentFile))
		}
		return nil
	}
	s.seen.folders[p.name] = info
	own := &look{place: p, info: info, packages: isPackage(entries)}
	s.seen.looks[p.name] = own
	below := own.below()
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		if s.left == 0 {
			s.tooMany(p.name)
			return nil
		}
		s.left--
		own.count(e.Name())
		own.links = own.links || e.Type()&fs.ModeSymlink != 0
		if e.IsDir() {
			own.folders = append(own.folders, e.Name())
		}
		below.name = path.Join(p.name, e.Name())
		s.entry(below, e)
	}
	if len(entries) > most { // entries that count may be missing, even if most of those that were listed are hidden
		s.tooMany(p.name)
	}
	return nil
}

// tooMany reports that a folder has not been listed whole.
func (s *scanner) tooMany(name string) {
	s.full(name, fmt.Errorf("has more than %d entries, including those of its folders: the rest is not served", s.entries))
}

// entry looks at one entry of a folder.
func (s *scanner) entry(p place, e fs.DirEntry) {
	s.seen.looked++
	isLink := e.Type()&fs.ModeSymlink != 0
	isModule := strings.HasSuffix(p.name, ".wasm")
	if e.IsDir() {
		s.below(p)
		return
	}
	if !isLink && !isModule && s.scripts == nil {
		s.passOver(p)
		return
	}
	info, err := s.info(p, e, isLink)
	isScript := s.isScript(p)
	isFile := isModule || isScript
	switch {
	case err != nil && isLink && isFile:
		s.file(found{path: p.name, script: isScript, err: fmt.Errorf("follow the link: %w: use a relative path to a file in the tools directory", err)})
	case errors.Is(err, fs.ErrNotExist) || err != nil && !isFile:
		return // gone since the folder was listed, or a link of no interest
	case err != nil:
		s.file(found{path: p.name, script: isScript, err: err})
	case isLink && info.IsDir():
		s.seen.links = true
		if p.linked {
			s.problem(p.name, errors.New("is a link below a linked folder, and is not followed: put the files here"))
			return
		}
		p.linked = true
		s.below(p)
	case !info.Mode().IsRegular():
		if isFile {
			s.file(found{path: p.name, script: isScript, err: errors.New("is not a regular file: put a module here, or rename it")})
		}
	default:
		if !isModule && s.scripts != nil {
			s.seen.parts[p.name] = info
			s.seen.links = s.seen.links || isLink
		}
		if s.scripts == nil && !isModule {
			s.passOver(p)
		}
		if isFile {
			s.seen.links = s.seen.links || isLink
			s.file(found{path: p.name, script: isScript, info: info, linked: isLink})
		}
	}
}

// info returns the file info of an entry, or of a link's target.
func (s *scanner) info(p place, e fs.DirEntry, isLink bool) (fs.FileInfo, error) {
	switch {
	case isLink:
		return s.root.Stat(p.name)
	case runtime.GOOS == "windows": // where listings may have an outdated size and time, and sometimes lack the file's number
		return s.root.Lstat(p.name)
	}
	return e.Info() // known from the listing: takes half as long as asking again
}

// isScript reports whether a file is a script that is served by itself.
func (s *scanner) isScript(p place) bool {
	name := path.Base(p.name)
	return s.scripts != nil && !p.parts && s.scripts.IsScript(name) && !s.scripts.IsPart(name)
}

// passOver notes a file that would be a script, in a directory whose scripts are not served.
func (s *scanner) passOver(p place) {
	if s.unserved != nil && !p.parts && s.unserved(path.Base(p.name)) {
		s.seen.unserved = append(s.seen.unserved, p.name)
	}
}

// below lists a subfolder, and reports a problem if it can't.
func (s *scanner) below(p place) {
	name := path.Base(p.name)
	if s.scripts != nil && slices.Contains(libraries, name) {
		return
	}
	p.parts = p.parts || strings.HasPrefix(name, "_") || slices.Contains(libraries, name)
	if err := s.folder(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.problem(p.name, err)
	}
}

func (s *scanner) file(f found) {
	if len(s.seen.files) == s.modules {
		s.left = 0
		s.full(".", fmt.Errorf("has more than %d modules: the rest is not served; set tools.modules to allow more", s.modules))
		return
	}
	s.seen.files = append(s.seen.files, f)
}

// problem reports a folder that can't be listed, or only in part.
func (s *scanner) problem(name string, err error) {
	s.seen.problems = append(s.seen.problems, catalog.Problem{Name: name, Err: err})
}

// full reports, once, that the scan ends before it has seen the whole directory.
func (s *scanner) full(name string, err error) {
	if !s.seen.partial {
		s.problem(name, err)
		s.seen.partial = true
	}
}

// list returns the info of an open folder and its entries, sorted by name. It returns at most limit+1 entries.
func list(f *os.File, limit int) (fs.FileInfo, []fs.DirEntry, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	entries, err := f.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return info, entries, nil
}

// hidden reports whether an entry is skipped: editors, copying programs and Kubernetes leave such files and folders beside the real ones.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".tmp")
}
