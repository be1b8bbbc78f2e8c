package directory

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A look is what one folder contained, apart from its files.
type look struct {
	place
	info     fs.FileInfo
	folders  []string // the names of all its folders, even skipped ones, sorted
	packages bool     // its scripts are parts of other scripts
	entries  int      // how many entries it has, at least
	links    bool     // some of its entries are symbolic links
	probe    string   // the name of one entry, or ""
}

// below returns the place of the folder's entries, without a name.
func (l *look) below() place {
	return place{above: append(slices.Clip(l.above), l.info), linked: l.linked, parts: l.parts || l.packages}
}

// changes maps each changed folder to the names of its changed entries. If the set of names is nil, any entry of the folder may have
// changed.
type changes map[string]map[string]bool

// mostNamed is how many entries are looked at one by one. If more have changed, their folders are listed instead.
const mostNamed = 1000

// add notes that an entry of a folder has changed, unless it is a skipped one.
func (c changes) add(folder, name string) {
	names, known := c[folder]
	if known && names == nil {
		return
	}
	if names == nil {
		names = map[string]bool{}
	}
	if !hidden(name) {
		names[name] = true
	}
	// The two special files decide what the other files of the folder are, so any of those may have changed, too.
	if len(names) > mostNamed || name == packageFile || name == environmentFile {
		names = nil
	}
	c[folder] = names
}

// has reports whether a file may have changed.
func (c changes) has(file string) bool {
	names, known := c[path.Dir(file)]
	return known && (names == nil || names[path.Base(file)])
}

// files returns the paths of all files that may have changed, or nil if not all of them are known.
func (c changes) files() map[string]bool {
	all := map[string]bool{}
	for folder, names := range c {
		if names == nil {
			return nil
		}
		for name := range names {
			all[path.Join(folder, name)] = true
		}
	}
	return all
}

// again looks only at the entries that have changed, or at their folders, if that is enough. Otherwise it returns nil, and everything must be looked
// at: at first, after an error, once every safety interval, if something can't be watched (such as the target of a link), if folders have changed, or
// if the caller lists without a reported change.
func (d *Directory) again(changed changes, now time.Time) *scanned {
	for folder, names := range d.unsettled {
		if names == nil {
			changed[folder] = nil
		}
		for name := range names {
			changed.add(folder, name)
		}
	}
	was := d.seen
	if was == nil || len(changed) == 0 || now.Sub(d.whole) >= d.watch.intervals.safety || was.partial || was.links || len(was.problems) > 0 || !d.watch.isComplete() {
		return nil
	}
	root, err := openRoot(d.path)
	if err != nil {
		return nil
	}
	defer root.Close()
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, was.folders["."]) {
		return nil
	}
	s := newScanner(root, d.modules, d.versions.scripts, d.isScript)
	defer func() { d.looked += s.seen.looked }()
	return s.again(was, changed)
}

// again returns what a directory holds now, if only these entries have changed since it was scanned. Otherwise it returns nil and changes nothing.
func (s *scanner) again(was *scanned, changed changes) *scanned {
	for name, l := range was.looks {
		if names, told := changed[name]; !told || names != nil {
			s.left -= l.entries
		}
	}
	for name := range changed {
		if l := was.looks[name]; l == nil || !s.lookAgain(l, was, changed) {
			return nil
		}
	}
	next := s.seen
	next.only = changed.files()
	byPath := func(a, b found) int { return cmp.Compare(a.path, b.path) }
	slices.SortFunc(next.files, byPath)
	if next.only != nil {
		next.files = patched(was.files, next.files, slices.Sorted(maps.Keys(next.only)))
	} else {
		next.files = merged(slices.DeleteFunc(slices.Clone(was.files), func(f found) bool { return changed.has(f.path) }), next.files, byPath)
	}
	if len(next.files) > s.modules || next.partial || next.links || len(next.problems) > 0 {
		return nil
	}
	next.unserved = append(next.unserved, slices.DeleteFunc(slices.Clone(was.unserved), changed.has)...)
	slices.Sort(next.unserved)
	for name, info := range was.parts {
		if !changed.has(name) {
			next.parts[name] = info
		}
	}
	looks := next.looks
	next.folders, next.looks = was.folders, was.looks // was is no longer used by anybody else
	for name, l := range looks {
		next.folders[name], next.looks[name] = l.info, l
	}
	return next
}

// patched returns files with some of them replaced by what they are now, or left out if they are gone. All lists are sorted.
func patched(files, now []found, paths []string) []found {
	all := make([]found, 0, len(files)+len(now))
	for _, path := range paths {
		n, is := slices.BinarySearchFunc(files, path, func(f found, path string) int { return strings.Compare(f.path, path) })
		all, files = append(all, files[:n]...), files[n:]
		if is {
			files = files[1:]
		}
		if len(now) > 0 && now[0].path == path {
			all, now = append(all, now[0]), now[1:]
		}
	}
	return append(all, files...)
}

// merged returns the elements of two sorted lists in order.
func merged[T any](a, b []T, compare func(a, b T) int) []T {
	all := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// lookAgain looks at the changed entries of a folder. If it has to list the folder for that, it notes that any entry may have changed. It returns
// false if another folder is in its place, or if anything other than files has changed in it.
func (s *scanner) lookAgain(was *look, seen *scanned, changed changes) bool {
	names := changed[was.name]
	if was.links { // a link may lead to what has changed
		return false
	}
	if names == nil {
		return s.listAgain(was)
	}
	folder := s.root // one handle for all, so that no other folder can come in between
	if was.name != "." {
		opened, err := s.root.OpenRoot(was.name)
		if err != nil {
			return false
		}
		defer opened.Close()
		folder = opened
	}
	info, err := folder.Stat(".")
	if err != nil || !os.SameFile(info, was.info) {
		return false
	}
	if len(names) > 0 && !was.tellsCase(folder) {
		changed[was.name] = nil
		s.left += was.entries
		return s.listAgain(was)
	}
	own := *was
	own.info = info
	below := own.below()
	for name := range names {
		below.name = path.Join(was.name, name)
		info, err := folder.Lstat(name)
		isKnown := seen.has(below.name)
		_, isFolder := slices.BinarySearch(was.folders, name)
		switch {
		case isFolder:
			return false
		case errors.Is(err, fs.ErrNotExist):
			s.seen.looked++
			if isKnown {
				own.entries--
			}
			continue
		case err != nil || info.IsDir() || info.Mode()&fs.ModeSymlink != 0:
			return false
		case !isKnown: // an entry of no interest is counted again at each change, until everything is looked at
			own.entries++
		}
		s.entry(below, fs.FileInfoToDirEntry(info))
	}
	if s.left -= own.entries - was.entries; s.left < 0 {
		return false
	}
	s.seen.looks[was.name] = &own
	return true
}

// has reports whether a file was of interest.
func (s *scanned) has(file string) bool {
	_, isFile := slices.BinarySearchFunc(s.files, file, func(f found, path string) int { return strings.Compare(f.path, path) })
	return isFile || s.parts[file] != nil
}

// count counts an entry of the folder.
func (l *look) count(name string) {
	l.entries++
	if l.probe == "" && otherCase(name) != name {
		l.probe = name
	}
}

// tellsCase reports whether file names in the folder are case-sensitive. If they are not, as on FAT or in a folder that another system shares, a
// change may be reported under a name that no listing has.
func (l *look) tellsCase(folder *os.Root) bool {
	if runtime.GOOS != "linux" || l.probe == "" {
		return false
	}
	info, err := folder.Lstat(l.probe)
	if err != nil {
		return false
	}
	other, err := folder.Lstat(otherCase(l.probe))
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, other)
}

// otherCase returns a name with the case of its ASCII letters swapped.
func otherCase(name string) string {
	other := []byte(name)
	for i, c := range other {
		if lower := c | 0x20; 'a' <= lower && lower <= 'z' {
			other[i] = c ^ 0x20
		}
	}
	return string(other)
}

// listAgain does what lookAgain does, for all entries of a folder.
func (s *scanner) listAgain(was *look) bool {
	// Without O_NONBLOCK, opening a FIFO that was put in the folder's place just now would block until somebody writes to it.
	f, err := s.root.OpenFile(was.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	most := s.left
	info, entries, err := list(f, max(0, most))
	f.Close()
	if err != nil || len(entries) > most || !os.SameFile(info, was.info) || isPackage(entries) != was.packages || s.scripts != nil && holds(entries, environmentFile) {
		return false
	}
	own := &look{place: was.place, info: info, packages: was.packages}
	below := own.below()
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		if s.left--; s.left < 0 {
			return false
		}
		own.count(e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			return false
		case e.IsDir():
			own.folders = append(own.folders, e.Name())
		default:
			below.name = path.Join(was.name, e.Name())
			s.entry(below, e)
		}
	}
	s.seen.looks[was.name] = own
	return slices.Equal(own.folders, was.folders)
}
