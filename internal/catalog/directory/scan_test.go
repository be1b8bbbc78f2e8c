package directory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/touched"
)

func write(t testing.TB, directory, name, content string) os.FileInfo {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// rewrite writes another content of the same size into a file and keeps its modification time, as cp -p does with the output of reproducible builds.
// The system's clock is coarse, so rewrite repeats the write until the change time shows it. If the system has no change time, the modification time
// changes as well.
func rewrite(path, content string) error {
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	then, ok := touched.At(before)
	for {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil || !ok {
			return err
		}
		if err := os.Chtimes(path, time.Time{}, before.ModTime()); err != nil {
			return err
		}
		after, err := os.Stat(path)
		if err != nil {
			return err
		}
		if now, _ := touched.At(after); now.After(then) {
			return nil
		}
	}
}

// TestReadSwapped replaces a file between the scan and the read.
func TestReadSwapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		swap func(path string) error
		want error
	}{
		{"nothing", func(string) error { return nil }, nil},
		{"another file", func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, []byte("zzz"), 0o644)) }, catalog.ErrChanged},
		{"grown", func(path string) error { return os.WriteFile(path, []byte("abcd"), 0o644) }, catalog.ErrChanged},
		{"touched", func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }, catalog.ErrChanged},
		{"rewritten", func(path string) error { return rewrite(path, "xyz") }, catalog.ErrChanged},
		{"a folder", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, catalog.ErrChanged},
		{"gone", os.Remove, fs.ErrNotExist},
	} {
		directory := t.TempDir()
		info := write(t, directory, "a.wasm", "abc")
		write(t, directory, "other", "keeps the inode from being used again")
		if err := c.swap(filepath.Join(directory, "a.wasm")); err != nil {
			t.Fatal(err)
		}
		var content []byte
		f, err := open(directory, "a.wasm", info)
		if err == nil {
			content, err = io.ReadAll(f)
			f.Close()
		}
		if !errors.Is(err, c.want) || err == nil && string(content) != "abc" {
			t.Errorf("%s: got %q and error %v, want error %v", c.name, content, err, c.want)
		}
	}
}

// TestReadChanging makes a file change between two reads of it.
func TestReadChanging(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(path string) error
	}{
		{"grown", func(path string) error { return os.WriteFile(path, []byte("abcd"), 0o644) }},
		{"cut", func(path string) error { return os.Truncate(path, 1) }},
		{"rewritten", func(path string) error { return rewrite(path, "xyz") }},
		{"touched", func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }},
	} {
		directory := t.TempDir()
		f, err := open(directory, "a.wasm", write(t, directory, "a.wasm", "abc"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := io.ReadFull(f, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := c.change(filepath.Join(directory, "a.wasm")); err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(f); !errors.Is(err, catalog.ErrChanged) {
			t.Errorf("%s: got %q and error %v, want error %v", c.name, content, err, catalog.ErrChanged)
		}
	}
}

// TestUnsettled waits for a file that was written in place, and accepts a renamed one at once.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	p := newIntervals(0)
	now := time.Now()
	for _, c := range []struct {
		name           string
		written, since time.Duration // ago
		want           time.Duration
	}{
		{"written and seen just now", 0, 0, 400 * time.Millisecond},
		{"seen for long enough, written in a pause", 300 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond},
		{"written long ago, seen just now", time.Hour, 0, 100 * time.Millisecond},
		{"written long ago, seen long ago", time.Hour, time.Second, -900 * time.Millisecond},
		{"the file's clock is ahead", -time.Hour, 100 * time.Millisecond, 300 * time.Millisecond},
	} {
		file := writtenAt{modified: now.Add(-c.written)}
		if got := p.unsettled(file, now.Add(-c.since), now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRenamedIsUnsettled checks that a renamed file waits for a time from when it was renamed, and not from when it was first seen.
func TestRenamedIsUnsettled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no change time")
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "a.wasm")
	write(t, directory, "a.wasm", "abc")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	p := newIntervals(0)
	now, ok := touched.At(info)
	if !ok {
		t.Fatal("the system does not report when a file was changed")
	}
	for _, c := range []struct{ since, ago, want time.Duration }{
		{0, 0, 100 * time.Millisecond},
		{30 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
		{-time.Second, 0, -900 * time.Millisecond}, // the file's clock is ahead
	} {
		if got := p.unsettled(info, now.Add(c.since), now.Add(c.ago)); got != c.want {
			t.Errorf("seen %v after its change, looked at after %v: got %v, want %v", c.since, c.ago, got, c.want)
		}
	}
}

// writtenAt is the info of a file on a system that has only a modification time.
type writtenAt struct {
	os.FileInfo
	modified time.Time
}

func (w writtenAt) ModTime() time.Time { return w.modified }
func (writtenAt) Sys() any             { return nil }

// TestTouchedLast distinguishes a renamed file from a written one, if the system has a change time.
func TestTouchedLast(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no change time")
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "a.wasm")
	if touchedLast(write(t, directory, "a.wasm", "abc")) {
		t.Error("a file that was only written counts as touched")
	}
	for end := time.Now().Add(time.Minute); ; { // the clock of files ticks every few milliseconds
		if err := errors.Join(os.Rename(path, path+".tmp"), os.Rename(path+".tmp", path)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if touchedLast(info) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a renamed file does not count as touched")
		}
	}
}

// TestUnserved checks that the log names the scripts that a directory passes over, once, and again only when there are others.
func TestUnserved(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range []string{"a.wasm", "greet.py", "shop/cart.py", "_n.py", "pkg/__init__.py", "pkg/x.py", "env/pyvenv.cfg", "env/lib/y.py", "node_modules/z.py", ".hidden.py", "notes.txt"} {
		write(t, directory, name, "")
	}
	link := func(to string) { // where links can't be made, link makes a file, which is passed over as well; wine falsely reports success for links
		name := filepath.Join(directory, "link.py")
		os.Remove(name)
		os.Symlink(to, name)
		if _, err := os.Lstat(name); err != nil {
			write(t, directory, "link.py", "")
		}
	}
	link("greet.py")
	var log bytes.Buffer
	d := newDirectory(t, directory, Options{
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
		PollOnly: true, // not every change may be reported
		IsScript: func(name string) bool { return strings.HasSuffix(name, ".py") && !strings.HasPrefix(name, "_") },
	})
	for i, want := range [][]string{{"greet.py", "link.py", "shop/cart.py"}, {"greet.py", "link.py", "shop/cart.py"}, {"link.py"}, nil} {
		switch i {
		case 2:
			os.Remove(filepath.Join(directory, "shop/cart.py"))
			os.Rename(filepath.Join(directory, "greet.py"), filepath.Join(directory, "_greet.py"))
			link("_greet.py")
		case 3:
			os.Remove(filepath.Join(directory, "link.py"))
		}
		listing, err := d.List(t.Context())
		if err != nil || len(listing.Entries) != 1 {
			t.Fatalf("got %+v, %v, want the module alone", listing, err)
		}
		if got := d.Unserved(); !slices.Equal(got, want) {
			t.Errorf("look %d: got %q, want %q", i, got, want)
		}
	}
	if n := strings.Count(log.String(), "tools.scripts = true"); n != 2 || !strings.Contains(log.String(), "scripts=3 first=greet.py") {
		t.Errorf("got %d warnings, want 2, the first of 3 scripts:\n%s", n, &log)
	}
}

// TestEnvironment turns the directory itself into a virtual environment, as python -m venv does with its folder: what was served stays, and the
// listing says why, even at a start.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write(t, directory, "a.wasm", "abc")
	options := Options{PollOnly: true, Poll: time.Millisecond, Scripts: pythonNames{}}
	d := newDirectory(t, directory, options)
	list := func(d *Directory) *catalog.Listing {
		t.Helper()
		l, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := list(d); len(l.Entries) != 1 || len(l.Problems) != 0 {
		t.Fatalf("got %v", l)
	}
	write(t, directory, "pyvenv.cfg", "")
	for name, d := range map[string]*Directory{"while it is served": d, "at a start": newDirectory(t, directory, options)} {
		l := list(d)
		if l.Knows("a.wasm") || len(l.Problems) != 1 || l.Problems[0].Name != "." || !strings.Contains(l.Problems[0].Err.Error(), "is a virtual environment of Python") {
			t.Errorf("%s: got %+v", name, l)
		}
	}
	if err := os.Remove(filepath.Join(directory, "pyvenv.cfg")); err != nil {
		t.Fatal(err)
	}
	if l := list(d); len(l.Entries) != 1 || len(l.Problems) != 0 || !l.Knows("a.wasm") {
		t.Errorf("without it: got %+v", l)
	}
}

// TestScanBounds checks that the scan of an endless directory ends in time.
func TestScanBounds(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	const modules = 50
	for i := range modules + 1 {
		write(t, directory, fmt.Sprintf("f%05d.wasm", i), "")
	}
	seen, err := scan(directory, modules, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(seen.files); got != modules {
		t.Errorf("got %d files, want %d", got, modules)
	}
	if len(seen.problems) != 1 || !strings.Contains(seen.problems[0].Err.Error(), "50 modules") {
		t.Errorf("got problems %v, want one that names the bound", seen.problems)
	}
	if !seen.partial {
		t.Error("files that were not looked at count as gone")
	}
}

// TestScanBoundOfEntries makes a scan reach its bound among skipped files: files that would come after them may still exist.
func TestScanBoundOfEntries(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for i := range 50 {
		write(t, directory, fmt.Sprintf(".hidden%d", i), "")
	}
	write(t, directory, "z.wasm", "")
	for entries, partial := range map[int]bool{10: true, 60: false} {
		root, err := os.OpenRoot(directory)
		if err != nil {
			t.Fatal(err)
		}
		s := newScanner(root, 5, nil, nil)
		s.entries, s.left = entries, entries
		err = s.folder(place{name: "."})
		root.Close()
		if err != nil || s.seen.partial != partial || !partial && len(s.seen.files) != 1 {
			t.Errorf("%d entries: got %d files, partial %t, %v", entries, len(s.seen.files), s.seen.partial, err)
		}
	}
}

// TestScanBoundOfOptions checks that as many modules are listed as the options allow.
func TestScanBoundOfOptions(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range []string{"a.wasm", "b.wasm", "c.wasm"} {
		write(t, directory, name, "")
	}
	for modules, want := range map[int]int{0: 3, 2: 2} {
		listing, err := newDirectory(t, directory, Options{Modules: modules}).List(t.Context())
		if err != nil || len(listing.Entries) != want {
			t.Fatalf("Options.Modules %d: got %+v, %v, want %d files", modules, listing, err, want)
		}
		if problems := listing.Problems; listing.Partial != (want < 3) || want < 3 && (len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "tools.modules")) {
			t.Errorf("Options.Modules %d: got the problems %v, want one that says what to do about the third file", modules, problems)
		}
	}
}

// TestWatchFails polls folders that can't be watched, and watches them once they can be.
func TestWatchFails(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a path below a file counts as missing there, which is not a failure")
	}
	directory := t.TempDir()
	write(t, directory, "n/a.wasm", "")
	seen, err := scan(directory, DefaultModules, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWatch(Options{Poll: time.Second / 10}, slog.New(slog.DiscardHandler)) // the watch tries again after a second
	defer w.close()
	now := time.Now()
	if !w.add(filepath.Join(directory, "n", "a.wasm"), seen.folders, now) || w.err == nil {
		t.Errorf("watching below a file: got error %v, want one", w.err)
	}
	if w.add(directory, seen.folders, now.Add(time.Second/2)) {
		t.Error("tried again too soon")
	}
	if !w.add(directory, seen.folders, now.Add(time.Second)) || w.err != nil {
		t.Errorf("watching again: got error %v, want none", w.err)
	}
	if w.add(directory, seen.folders, now.Add(time.Hour)) {
		t.Error("the watch began again without need")
	}
	write(t, directory, "n/b.wasm", "")
	select {
	case <-w.changes:
	case <-time.After(time.Minute):
		t.Error("a new file was not reported")
	}
}

// TestVersions checks that a file keeps its version while it does not change, and can't be opened at any other version.
func TestVersions(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path := filepath.Join(directory, "a.wasm")
	write(t, directory, "a.wasm", "abc")
	d := newDirectory(t, directory, Options{PollOnly: true, Poll: time.Millisecond})
	given := map[string]bool{}
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"new", func() error { return nil }},
		{"written", func() error { return os.WriteFile(path, []byte("abcd"), 0o644) }},
		{"replaced", func() error {
			write(t, directory, "b.tmp", "abcd")
			return os.Rename(filepath.Join(directory, "b.tmp"), path)
		}},
		{"rewritten", func() error { return rewrite(path, "wxyz") }},
		{"gone for a while", func() error {
			if err := os.Remove(path); err != nil {
				return err
			}
			if listing, err := d.List(t.Context()); err != nil || len(listing.Entries) > 0 {
				t.Errorf("got %v, %v for an empty directory", listing, err)
			}
			return os.WriteFile(path, []byte("abcd"), 0o644)
		}},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		version := ""
		for range 2 {
			listing, err := d.List(t.Context())
			if err != nil || len(listing.Entries) != 1 {
				t.Fatalf("%s: got %v, %v", c.name, listing, err)
			}
			e := listing.Entries[0]
			if version == "" {
				if version = e.Version; given[version] {
					t.Errorf("%s: version %q was given before", c.name, version)
				}
			}
			if e.Version != version {
				t.Errorf("%s: got version %q, and %q a moment before", c.name, e.Version, version)
			}
		}
		for old := range given {
			if _, err := d.Open(t.Context(), "a.wasm", old); !errors.Is(err, catalog.ErrChanged) {
				t.Errorf("%s: opened at the version %q: got error %v", c.name, old, err)
			}
		}
		given[version] = true
		f, err := d.Open(t.Context(), "a.wasm", version)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		f.Close()
	}
}

// TestSettling checks that a listing says how long a file that was just written must stay unchanged, except for files that were there at the start.
func TestSettling(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write(t, directory, "a.wasm", "")
	d := newDirectory(t, directory, Options{PollOnly: true, Poll: time.Hour})
	listing, err := d.List(t.Context())
	if err != nil || len(listing.Entries) != 1 || listing.Entries[0].Settling != 0 {
		t.Fatalf("got %+v, %v, want a file that has settled", listing, err)
	}
	write(t, directory, "b.wasm", "")
	listing, err = d.List(t.Context())
	if err != nil || len(listing.Entries) != 2 || listing.Entries[0].Settling != 0 || listing.Entries[1].Settling <= 0 || listing.Again != time.Hour {
		t.Fatalf("got %+v, %v, want b.wasm not settled, for another hour", listing, err)
	}
}

func newDirectory(t testing.TB, path string, o Options) *Directory {
	t.Helper()
	d, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write(t, directory, "file", "")
	for _, c := range []struct{ name, path, want string }{
		{"no name", "", "has no name"},
		{"missing", filepath.Join(directory, "files"), "files"},
		{"a file", filepath.Join(directory, "file"), "not a directory"},
	} {
		if d, err := Open(c.path, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v and error %v, want one with %q", c.name, d, err, c.want)
		}
	}
}

// BenchmarkRescan looks at 1,000 files that have not changed.
func BenchmarkRescan(b *testing.B) {
	directory := b.TempDir()
	for i := range 1000 {
		write(b, directory, fmt.Sprintf("n%d/f%d.wasm", i/100, i), "")
	}
	d := newDirectory(b, directory, Options{PollOnly: true})
	for b.Loop() {
		if listing, err := d.List(b.Context()); err != nil || len(listing.Entries) != 1000 {
			b.Fatal(listing, err)
		}
	}
}
