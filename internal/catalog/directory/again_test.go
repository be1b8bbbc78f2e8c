package directory

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// told opens a directory that never polls, and lists it until the system reports all changes.
func told(t testing.TB, path string, o Options) *Directory {
	t.Helper()
	o.Poll = time.Hour
	d := newDirectory(t, path, o)
	listed(t, d)
	listed(t, d)
	if !d.watch.isComplete() {
		t.Skip("the system does not report changes")
	}
	return d
}

func listed(t testing.TB, d *Directory) *catalog.Listing {
	t.Helper()
	l, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// awaitTold waits until all changes so far have been reported, since the system reports in order. The directory must have a folder sync.
func awaitTold(t testing.TB, d *Directory) {
	t.Helper()
	write(t, d.path, "sync/.now", "")
	isTold := func() bool {
		d.watch.mu.Lock()
		defer d.watch.mu.Unlock()
		_, told := d.watch.changed["sync"]
		return told
	}
	for deadline := time.Now().Add(time.Minute); !isTold(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a change was not reported")
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLooksFollowChanges counts how many entries of a large folder are looked at for a change: those that are reported, and at most those of their
// folders. If more may have changed, or a report may have been lost, all entries are looked at.
func TestLooksFollowChanges(t *testing.T) {
	t.Parallel()
	sizes := []int{300, 30_000}
	switch {
	case runtime.GOOS == "windows": // wine takes a millisecond to look at a file
		sizes = []int{50}
	case testing.Short() || testkit.Race(t):
		sizes = []int{300, 1000}
	}
	for _, files := range sizes {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			t.Parallel()
			looksFollowChanges(t, files)
		})
	}
}

func looksFollowChanges(t *testing.T, files int) {
	const few, folders = 20, 3 // the number of the other folders, and of the entries in each
	all := files + folders*few + folders + 2
	listed1, listed2 := files+1, files+few+1
	if runtime.GOOS == "linux" { // where reported names are reliable
		listed1, listed2 = 1, 2
	}
	directory := t.TempDir()
	at := func(name string) string { return filepath.Join(directory, filepath.FromSlash(name)) }
	must(t, os.Mkdir(at("sync"), 0o755))
	for i := range files {
		write(t, directory, fmt.Sprintf("many/f%d.wasm", i), "")
	}
	for i := range folders * few {
		write(t, directory, fmt.Sprintf("n%d/f%d.wasm", i/few, i%few), "")
	}
	replace := func(t *testing.T, name string) {
		write(t, directory, "aside/.new", name+"'s")
		must(t, os.Rename(at("aside/.new"), at(name)))
	}
	must(t, os.Mkdir(at("aside"), 0o755))
	all++
	d := told(t, directory, Options{Modules: 40_000, IsScript: pythonNames{}.IsScript})
	for _, c := range []struct {
		name   string
		change func(t *testing.T)
		least  int
		most   int
	}{
		{"nothing", func(*testing.T) {}, 0, 0},
		{"a file is replaced", func(t *testing.T) { replace(t, "many/f7.wasm") }, 1, listed1},
		{"a file is written in place", func(t *testing.T) { write(t, directory, "many/f8.wasm", "other") }, 1, listed1},
		{"a file is new", func(t *testing.T) { write(t, directory, "many/new.wasm", "") }, 1, listed1},
		{"a file is new at the top", func(t *testing.T) { write(t, directory, "new.wasm", "") }, 1, folders + 4},
		{"a file goes", func(t *testing.T) { must(t, os.Remove(at("many/f9.wasm"))) }, 1, listed1},
		{"a file gets another name", func(t *testing.T) { must(t, os.Rename(at("many/f10.wasm"), at("many/other.wasm"))) }, 1, listed2},
		{"a file takes the place of another", func(t *testing.T) { must(t, os.Rename(at("many/f11.wasm"), at("many/f12.wasm"))) }, 1, listed2},
		{"a file moves to another folder", func(t *testing.T) { must(t, os.Rename(at("many/f13.wasm"), at("n1/new.wasm"))) }, 1, listed2},
		{"a file comes and goes", func(t *testing.T) {
			write(t, directory, "many/short.wasm", "")
			must(t, os.Remove(at("many/short.wasm")))
		}, 1, listed1},
		{"a file of no interest", func(t *testing.T) { write(t, directory, "many/README", "") }, 1, listed1 + 1},
		{"a script that nobody serves", func(t *testing.T) { write(t, directory, "many/s.py", "") }, 1, listed1 + 2},
		{"a hidden file", func(t *testing.T) { write(t, directory, "many/.hidden", "") }, 0, files + 3},
		{"some files are replaced", func(t *testing.T) {
			for i := range 20 {
				replace(t, fmt.Sprintf("many/f%d.wasm", 20+i))
			}
		}, 20, max(20, files+3)},
		{"very many files are new", func(t *testing.T) {
			for i := range 1100 {
				write(t, directory, fmt.Sprintf("many/new%d.wasm", i), "")
			}
		}, 1100, files + 1103},
		{"a package begins", func(t *testing.T) { write(t, directory, "many/"+packageFile, "") }, files, 2*all + 3000},
		{"a package ends", func(t *testing.T) { must(t, os.Remove(at("many/"+packageFile))) }, files, 2*all + 3000},
		{"a folder is new", func(t *testing.T) { must(t, os.Mkdir(at("many/new"), 0o755)) }, all, 2*all + 3000},
		{"a file becomes a folder", func(t *testing.T) {
			must(t, os.Remove(at("many/f14.wasm")))
			must(t, os.Mkdir(at("many/f14.wasm"), 0o755))
		}, files, 2*all + 3000},
		{"a folder becomes a file", func(t *testing.T) {
			must(t, os.Remove(at("many/f14.wasm")))
			write(t, directory, "many/f14.wasm", "")
		}, files, 2*all + 3000},
		{"a folder is removed and made again", func(t *testing.T) {
			must(t, os.RemoveAll(at("n1")))
			write(t, directory, "n1/f0.wasm", "")
		}, files, 2*all + 3000},
		{"a folder is replaced by another one", func(t *testing.T) {
			must(t, os.Rename(at("n1"), at("n0/.was")))
			must(t, os.Mkdir(at("n1"), 0o755))
			write(t, directory, "n1/f0.wasm", "other")
		}, files, 2*all + 3000},
		{"a folder is replaced by a link", func(t *testing.T) {
			must(t, os.Rename(at("n1"), at(".n1")))
			must(t, os.Symlink("n2", at("n1")))
			must(t, os.Remove(at("n1"))) // otherwise everything is looked at from now on
		}, files, 2*all + 3000},
		{"a link is new", func(t *testing.T) {
			must(t, os.Symlink("f7.wasm", at("n2/new.wasm")))
			awaitTold(t, d)
			listed(t, d)
			must(t, os.Remove(at("n2/new.wasm")))
		}, files, 3*all + 3000},
		{"events are lost", func(*testing.T) {
			d.watch.notifier.Errors <- fsnotify.ErrEventOverflow
			d.watch.notifier.Errors <- fsnotify.ErrEventOverflow // when this is received, the first error has been handled
		}, files, all + 3000},
		{"somebody doubts", func(*testing.T) { d.Doubt() }, files, all + 3000},
		{"a full listing is due", func(*testing.T) { d.whole = d.whole.Add(-10 * time.Hour) }, files, all + 3000},
		{"names are reported in another case", func(t *testing.T) {
			must(t, os.Link(at("many/README"), at("many/readme"))) // on a file system that ignores case, too, both names lead to one file
			replace(t, "many/f7.wasm")
		}, files, files + 1104},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, not := range []string{"link", "case", "a folder is replaced"} {
				if runtime.GOOS == "windows" && strings.Contains(c.name, not) {
					t.Skip("a link needs a privilege there, no two names differ in case only, and what is watched can't be moved")
				}
			}
			if files > 300 && c.least >= files {
				t.Skip("the test with a smaller folder covers this case")
			}
			before := d.looked
			c.change(t)
			awaitTold(t, d)
			for again := true; again; again = d.watch.fresh { // a new watch asks for another listing
				listed(t, d)
			}
			least, most := c.least, c.most
			if runtime.GOOS == "windows" { // on Windows each folder has its own queue of changes, so the change may be reported after the one in sync
				least, most = 0, 4*all+4000
			}
			if got := d.looked - before; got < least || got > most {
				t.Errorf("%d entries were looked at, want %d to %d", got, least, most)
			}
			for end := time.Now().Add(time.Minute); runtime.GOOS == "windows" && differs(t, d) != "" && time.Now().Before(end); {
				listed(t, d)
			}
			sameAsScan(t, d)
			d.unsettled = changes{} // nobody writes
		})
	}
}

// TestLookedAtAll: a directory is looked at as a whole each time if nobody reports its changes, or if it could not be listed.
func TestLookedAtAll(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "tools")
	for i := range 20 {
		write(t, directory, fmt.Sprintf("n%d/f.wasm", i), "")
	}
	write(t, directory, "sync/f.wasm", "")
	d := newDirectory(t, directory, Options{PollOnly: true, Poll: time.Hour})
	for range 3 {
		before := d.looked
		listed(t, d)
		write(t, directory, "n1/f.wasm", fmt.Sprint(d.looked)) // somebody is still writing to it
		if got := d.looked - before; got < 21 {
			t.Errorf("polling: %d entries were looked at", got)
		}
	}
	d = told(t, directory, Options{})
	must(t, os.Rename(directory, directory+".away"))
	if _, err := d.List(t.Context()); err == nil {
		t.Error("a directory that does not exist was listed")
	}
	must(t, os.Rename(directory+".away", directory))
	before := d.looked
	listed(t, d)
	if got := d.looked - before; got < 21 {
		t.Errorf("after an error: %d entries were looked at", got)
	}
}

// sameAsScan compares a directory's last listing with a full scan.
func sameAsScan(t testing.TB, d *Directory) {
	t.Helper()
	if difference := differs(t, d); difference != "" {
		t.Error(difference)
	}
}

func differs(t testing.TB, d *Directory) string {
	t.Helper()
	now, err := scan(d.path, d.modules, d.versions.scripts, d.isScript)
	if err != nil {
		t.Fatal(err)
	}
	tell := func(s *scanned) []string {
		var told []string
		for _, f := range s.files {
			told = append(told, fmt.Sprintf("file %s script %t linked %t %v %v", f.path, f.script, f.linked, f.err, version(f.info)))
		}
		for _, name := range slices.Sorted(maps.Keys(s.parts)) {
			told = append(told, "part "+name+" "+version(s.parts[name]))
		}
		for _, name := range slices.Sorted(maps.Keys(s.folders)) {
			l := s.looks[name]
			told = append(told, fmt.Sprintf("folder %s packages %t holds %q", name, l.packages, l.folders))
		}
		for _, p := range s.problems {
			told = append(told, fmt.Sprintf("problem %s %v", p.Name, p.Err))
		}
		return append(told, s.unserved...)
	}
	for name, l := range now.looks {
		if got := d.seen.looks[name]; got != nil && got.entries < l.entries { // a higher count only makes the full look come earlier
			return fmt.Sprintf("folder %s has %d entries, and %d were counted", name, l.entries, got.entries)
		}
	}
	got, want := tell(d.seen), tell(now)
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func version(info fs.FileInfo) string {
	if info == nil {
		return "none"
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// pythonNames are the names of Python scripts.
type pythonNames struct{}

func (pythonNames) IsScript(name string) bool { return strings.HasSuffix(name, ".py") }
func (pythonNames) IsPart(name string) bool   { return strings.HasPrefix(name, "_") }

// TestAgain makes random changes in a directory, and lists it only when they are reported or a listing is due. Each listing must match a scan of the
// whole directory.
func TestAgain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be moved there")
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := Options{}
			if seed%2 == 0 {
				o.Scripts = pythonNames{}
			} else {
				o.IsScript = func(name string) bool { return strings.HasSuffix(name, ".py") }
			}
			directory := t.TempDir()
			for _, folder := range []string{"sync", "a/x", "b", "c/y/z"} {
				must(t, os.MkdirAll(filepath.Join(directory, folder), 0o755))
			}
			write(t, directory, "sync/keep.wasm", "") // an empty directory would look like an unmounted volume
			large := map[uint64]string{2: "large", 3: "large", 4: ".", 5: "."}[seed]
			files := 1500
			if testkit.Race(t) {
				files = 500
			}
			for i := range files {
				if large != "" {
					write(t, directory, fmt.Sprintf("%s/f%d%s", large, i, []string{".wasm", ".py", ".md"}[i%3]), "")
				}
			}
			d := told(t, directory, o)
			d.watch.intervals.settle, d.watch.intervals.quiet, d.watch.intervals.debounce = time.Millisecond, time.Millisecond, time.Millisecond
			d.versions.intervals = d.watch.intervals
			r := rand.New(rand.NewPCG(seed, 19))
			partly, few := 0, 0
			last := listed(t, d)
			for step := range 60 {
				linked := d.seen.links
				for _, l := range d.seen.looks {
					linked = linked || l.links
				}
				if hasEnvironment(directory) { // which is neither looked at nor watched, so changes in it are found later
					d.Doubt()
				}
				did := mess(r, directory, step, linked)
				awaitTold(t, d)
				for range 3 { // a new watch asks for another listing
					before, looked := d.whole, d.looked
					l := listed(t, d)
					if wrong := wrongIn(d, last, l); wrong != "" {
						t.Fatalf("step %d, %s: %s", step, strings.Join(did, "; "), wrong)
					}
					last = l
					if d.whole.Equal(before) {
						partly++
						if d.looked-looked < 100 {
							few++
						}
					}
					if !d.watch.fresh || l.Again > time.Second {
						break
					}
				}
				if difference := differs(t, d); difference != "" {
					t.Fatalf("step %d, %s:\n%s", step, strings.Join(did, "; "), difference)
				}
			}
			if partly < 6 {
				t.Errorf("only %d of 60 listings looked at just some folders: the test proves little", partly)
			}
			if few < 6 && runtime.GOOS == "linux" {
				t.Errorf("only %d of 60 listings looked at just some files: the test proves little", few)
			}
			t.Logf("%d of 60 listings looked at just some folders, %d at just some files", partly, few)
		})
	}
}

// wrongIn returns what is wrong in a listing, given the one before.
func wrongIn(d *Directory, last, l *catalog.Listing) string {
	versions := map[string]string{}
	if l.Since != 0 {
		if l.Since != last.Number {
			return fmt.Sprintf("the listing gives the changes since listing %d, but the last listing was %d", l.Since, last.Number)
		}
		for _, e := range last.Entries {
			versions[e.ID] = e.Version
		}
	}
	if len(l.Entries) != len(d.seen.files) || len(l.Entries) != len(d.versions.files) {
		return fmt.Sprintf("%d entries and %d versions of %d files", len(l.Entries), len(d.versions.files), len(d.seen.files))
	}
	for i, f := range d.seen.files {
		e := l.Entries[i]
		if known := d.versions.files[f.path]; e.ID != f.path || known == nil || f.err == nil && !same(known.info, f.info) || known.version != e.Version {
			return fmt.Sprintf("%+v is listed for %s, which is known as %+v", e, f.path, known)
		}
		if l.Since != 0 && !l.Only[e.ID] && versions[e.ID] != e.Version {
			return fmt.Sprintf("%s has version %s after %q, but is not listed as changed", e.ID, e.Version, versions[e.ID])
		}
		delete(versions, e.ID)
	}
	for id := range versions {
		if !l.Only[id] {
			return id + " is gone, but is not listed as changed"
		}
	}
	return ""
}

// hasEnvironment reports whether there is a virtual environment below a directory.
func hasEnvironment(directory string) (found bool) {
	_ = filepath.WalkDir(directory, func(_ string, e fs.DirEntry, err error) error {
		found = found || err == nil && e.Name() == environmentFile
		return nil
	})
	return found
}

// mess changes some things in a directory, and returns what it did. If there is a link, it usually removes that.
func mess(r *rand.Rand, directory string, step int, linked bool) (did []string) {
	folders, files, links := []string{"."}, []string{}, []string{}
	_ = filepath.WalkDir(directory, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(directory, path)
		switch {
		case err != nil || name == "." || name == "sync" || filepath.Dir(name) == "sync":
		case e.IsDir():
			folders = append(folders, name)
		case e.Type()&fs.ModeSymlink != 0:
			links = append(links, name)
		default:
			files = append(files, name)
		}
		return nil
	})
	one := func(of []string) string { return of[r.IntN(len(of))] }
	at := func(name string) string { return filepath.Join(directory, name) }
	name := func() string {
		return one([]string{"f.wasm", "g.wasm", "s.py", "_p.py", "README", ".hidden", "h.tmp", "s.py", "f.wasm"})
	}
	do := func(what string, err error) { did = append(did, fmt.Sprintf("%s: %v", what, err)) }
	if linked && r.IntN(8) > 0 {
		for _, link := range links {
			do("remove the link "+link, os.Remove(at(link)))
		}
	}
	for range 1 + r.IntN(3) {
		folder := one(folders)
		file := filepath.Join(folder, name())
		switch kind := r.IntN(40); {
		case kind < 8 && len(files) > 0:
			file = one(files)
			do("write aside", os.WriteFile(at(".new"), fmt.Appendf(nil, "%d %d", step, r.IntN(1000)), 0o600))
			do("replace "+file, os.Rename(at(".new"), at(file)))
		case kind == 8:
			n := 1 + r.IntN(50)
			if r.IntN(4) == 0 {
				n += mostNamed
			}
			for i := range n {
				if err := os.WriteFile(at(filepath.Join(folder, fmt.Sprintf("g%d.wasm", i))), nil, 0o600); err != nil {
					do("write one of many", err)
				}
			}
			do(fmt.Sprintf("write %d files to %s", n, folder), nil)
		case kind < 16:
			do("write "+file, os.WriteFile(at(file), fmt.Appendf(nil, "%d %d", step, r.IntN(1000)), 0o600))
		case kind < 22 && len(files) > 0:
			from := one(files)
			do("move "+from+" to "+file, os.Rename(at(from), at(file)))
		case kind < 26 && len(files) > 0:
			gone := one(files)
			do("remove "+gone, os.Remove(at(gone)))
		case kind < 28:
			below := filepath.Join(folder, one([]string{"a", "b", "c", "x", ".d", "node_modules", "_q"}))
			do("make "+below, os.Mkdir(at(below), 0o755))
		case kind < 30 && folder != ".":
			to := filepath.Join(one(folders), one([]string{"a", "b", "m"}))
			do("move the folder "+folder+" to "+to, os.Rename(at(folder), at(to)))
		case kind < 32 && folder != ".":
			do("remove the folder "+folder, os.RemoveAll(at(folder)))
			if r.IntN(2) == 0 {
				do("make it anew", os.Mkdir(at(folder), 0o755))
				do("write "+file, os.WriteFile(at(file), nil, 0o600))
			}
		case kind < 33 && folder != ".":
			do("remove the folder "+folder, os.RemoveAll(at(folder)))
			do("write a file in its place", os.WriteFile(at(folder), nil, 0o600))
		case kind < 34 && folder != ".":
			do("remove the folder "+folder, os.RemoveAll(at(folder)))
			do("link it to b", os.Symlink(one([]string{"b", "a", "../b"}), at(folder)))
		case kind < 35 && len(files) > 0:
			do("link "+file, os.Symlink(filepath.Base(one(files)), at(file)))
		case kind < 37 && folder != ".":
			file = filepath.Join(folder, one([]string{packageFile, environmentFile}))
			if err := os.Remove(at(file)); err != nil {
				do("write "+file, os.WriteFile(at(file), nil, 0o600))
			}
		case kind < 39 && len(files) > 0:
			touched := one(files)
			do("chmod "+touched, os.Chmod(at(touched), []fs.FileMode{0o600, 0o644}[r.IntN(2)]))
		}
	}
	return did
}

// BenchmarkChange replaces one of many files. "all" looks at everything, as earlier versions did at each change.
func BenchmarkChange(b *testing.B) {
	for _, size := range []struct{ files, folders int }{{10_000, 1}, {10_000, 300}, {30_000, 1}, {30_000, 300}} {
		directory := b.TempDir()
		must(b, os.Mkdir(filepath.Join(directory, "sync"), 0o755))
		for i := range size.files {
			write(b, directory, fmt.Sprintf("n%d/f%d.wasm", i%size.folders, i), "")
		}
		d := told(b, directory, Options{Modules: 30_000})
		d.watch.intervals.safety = 100 * time.Hour
		for _, way := range []string{"all", "told"} {
			b.Run(fmt.Sprintf("files=%d/folders=%d/%s", size.files, size.folders, way), func(b *testing.B) {
				took := time.Duration(0)
				before := d.looked
				for b.Loop() {
					write(b, directory, "n0/.new", "other")
					must(b, os.Rename(filepath.Join(directory, "n0/.new"), filepath.Join(directory, "n0/f0.wasm")))
					awaitTold(b, d)
					if way == "all" {
						d.Doubt()
					}
					began := time.Now()
					if l := listed(b, d); len(l.Entries) != size.files {
						b.Fatal(len(l.Entries))
					}
					took += time.Since(began)
				}
				b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/list")
				b.ReportMetric(float64(d.looked-before)/float64(b.N), "looked/list")
			})
		}
	}
}
