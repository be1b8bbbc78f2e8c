package directory

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/toolsrv/toolsrv/wasmtools/catalog"
)

// The bounds of one scan, beside the number of modules.
const (
	maxDepth         = 16
	leastEntries     = 100_000 // that may be looked at
	entriesPerModule = 10
)

// scanned is what one scan saw. Paths are relative to the directory and have slashes.
type scanned struct {
	files    []found                // sorted by path
	folders  map[string]fs.FileInfo // all that were listed, the directory itself as "."
	problems []catalog.Problem      // folders that could not be listed, or not whole
	partial  bool                   // the scan ended before the directory did
	links    bool                   // something was reached through a symbolic link: its target may lie where nothing is watched
}

// found is a file that is a module by its name.
type found struct {
	path   string
	info   fs.FileInfo
	linked bool  // info is that of a link's target
	err    error // why it can't be a module
}

// same reports whether a file has the same content at two times, as far as that can be told without reading it.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// scan lists the modules of a directory, up to a number of them. It never leaves the directory, opens no files but folders, and
// fails only if the directory itself can't be read.
func scan(directory string, modules int) (*scanned, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries := max(leastEntries, modules*entriesPerModule)
	s := &scanner{root: root, modules: modules, entries: entries, left: entries, seen: &scanned{folders: map[string]fs.FileInfo{}}}
	if err := s.folder(".", nil, false); err != nil {
		return nil, err
	}
	slices.SortFunc(s.seen.files, func(a, b found) int { return cmp.Compare(a.path, b.path) })
	return s.seen, nil
}

// readable returns nil if a directory can be listed, and else why not.
func readable(directory string) error {
	root, err := os.OpenRoot(directory)
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
	modules, entries int // the bounds
	left             int // entries that may still be looked at
	seen             *scanned
}

// folder lists one folder and those below it. above are the folders on the way to it; linked tells that one of them,
// or the folder itself, was reached through a link.
func (s *scanner) folder(name string, above []fs.FileInfo, linked bool) error {
	if len(above) > maxDepth {
		return fmt.Errorf("is more than %d folders deep: move it up", maxDepth)
	}
	// Without O_NONBLOCK, opening a FIFO that was put in the folder's place just now would block until somebody writes to it.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	info, entries, err := list(f, s.left)
	f.Close()
	if err != nil {
		return err
	}
	if linked && slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return errors.New("is a link to a folder that holds it: remove the link")
	}
	s.seen.folders[name] = info
	above = append(slices.Clip(above), info)
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		if s.left == 0 {
			s.full(name, fmt.Errorf("holds more than %d entries, those of its folders included: what comes after them is not served", s.entries))
			return nil
		}
		s.left--
		s.entry(path.Join(name, e.Name()), e, above, linked)
	}
	return nil
}

// entry looks at one entry of a folder.
func (s *scanner) entry(name string, e fs.DirEntry, above []fs.FileInfo, linked bool) {
	isLink := e.Type()&fs.ModeSymlink != 0
	isModule := strings.HasSuffix(name, ".wasm")
	if e.IsDir() {
		s.below(name, above, linked)
		return
	}
	if !isLink && !isModule {
		return
	}
	info, err := e.Info() // known from the listing: half the time of asking again
	if isLink {
		info, err = s.root.Stat(name)
	}
	switch {
	case err != nil && isLink && isModule:
		s.file(found{path: name, err: fmt.Errorf("follow the link: %w: let it lead, by a relative path, to a file in the tools directory", err)})
	case errors.Is(err, fs.ErrNotExist) || err != nil && !isModule:
		return // gone since the folder was listed, or a link that is of no interest
	case err != nil:
		s.file(found{path: name, err: err})
	case isLink && info.IsDir():
		s.seen.links = true
		if linked {
			s.problem(name, errors.New("is a link below a linked folder, which is not followed: put the files here"))
			return
		}
		s.below(name, above, true)
	case !isModule:
		return
	case !info.Mode().IsRegular():
		s.file(found{path: name, err: errors.New("is not a regular file: put a module here, or rename it")})
	default:
		s.seen.links = s.seen.links || isLink
		s.file(found{path: name, info: info, linked: isLink})
	}
}

// below lists a folder in a folder, and reports if that can't be done.
func (s *scanner) below(name string, above []fs.FileInfo, linked bool) {
	if err := s.folder(name, above, linked); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.problem(name, err)
	}
}

func (s *scanner) file(f found) {
	if len(s.seen.files) == s.modules {
		s.left = 0
		s.full(".", fmt.Errorf("holds more than %d modules: the rest is not served; set tools.modules to allow more", s.modules))
		return
	}
	s.seen.files = append(s.seen.files, f)
}

// problem reports a folder that can't be listed, or not whole.
func (s *scanner) problem(name string, err error) {
	s.seen.problems = append(s.seen.problems, catalog.Problem{Name: name, Err: err})
}

// full reports, once, that the scan ends before the directory does.
func (s *scanner) full(name string, err error) {
	if !s.seen.partial {
		s.problem(name, err)
		s.seen.partial = true
	}
}

// list returns the info of an open folder and its entries by name, one more than limit at most.
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

// hidden reports whether an entry is skipped, as are those that editors, copying programs and Kubernetes leave beside the files.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".tmp")
}
