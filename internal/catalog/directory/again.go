package directory

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"
	"time"
)

// A look is what one folder held, beside its files.
type look struct {
	place
	info     fs.FileInfo
	folders  []string // the names of its folders, whether they are looked at or not, sorted
	packages bool     // its scripts are parts of others
	entries  int      // how many it has
}

// below returns the place of what lies in the folder, without its name.
func (l *look) below() place {
	return place{above: append(slices.Clip(l.above), l.info), linked: l.linked, parts: l.parts || l.packages}
}

// again looks at those folders in which files have changed, if that is known to be enough. Otherwise it returns nil: everything has to be
// looked at. So it is at first, after an error, every safety interval, where something can't be watched, such as what a link leads to, where
// folders have changed, and where the caller asks for it without a change that was told.
func (d *Directory) again(changed map[string]bool, now time.Time) *scanned {
	folders := maps.Clone(changed)
	if folders == nil {
		folders = map[string]bool{}
	}
	maps.Copy(folders, d.unsettled)
	was := d.seen
	if was == nil || len(folders) == 0 || now.Sub(d.whole) >= d.watch.intervals.safety || was.partial || was.links || len(was.problems) > 0 || !d.watch.isComplete() {
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
	return s.again(was, folders)
}

// again returns what a directory holds by now, if only files of these folders have changed since it was scanned. Otherwise it returns nil.
// Then it has changed nothing.
func (s *scanner) again(was *scanned, folders map[string]bool) *scanned {
	for name, l := range was.looks {
		if !folders[name] {
			s.left -= l.entries
		}
	}
	kept := slices.DeleteFunc(slices.Clone(was.files), func(f found) bool { return folders[path.Dir(f.path)] })
	s.modules -= len(kept)
	for name := range folders {
		if was.looks[name] == nil || !s.lookAgain(was.looks[name]) {
			return nil
		}
	}
	if s.seen.partial || s.seen.links || len(s.seen.problems) > 0 {
		return nil
	}
	next := s.seen
	byPath := func(a, b found) int { return cmp.Compare(a.path, b.path) }
	slices.SortFunc(next.files, byPath)
	next.files = merged(kept, next.files, byPath)
	next.unserved = append(next.unserved, slices.DeleteFunc(slices.Clone(was.unserved), func(name string) bool { return folders[path.Dir(name)] })...)
	slices.Sort(next.unserved)
	for name, info := range was.parts {
		if !folders[path.Dir(name)] {
			next.parts[name] = info
		}
	}
	changed := next.looks
	next.folders, next.looks = was.folders, was.looks // which nobody else uses any more
	for name, l := range changed {
		next.folders[name], next.looks[name] = l.info, l
	}
	return next
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

// lookAgain looks at one folder. It reports false where that is another one by now, or more than files have changed in it.
func (s *scanner) lookAgain(was *look) bool {
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
		own.entries++
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
