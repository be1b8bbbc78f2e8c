package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
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

// TestReadSwapped has something else at the path when it is read than when it was scanned.
func TestReadSwapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		swap func(path string) error
		want error
	}{
		{"nothing", func(string) error { return nil }, nil},
		{"another file", func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, []byte("zzz"), 0o644)) }, errChanged},
		{"grown", func(path string) error { return os.WriteFile(path, []byte("abcd"), 0o644) }, errChanged},
		{"touched", func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }, errChanged},
		{"a folder", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, errChanged},
		{"gone", os.Remove, errUnreadable},
	} {
		directory := t.TempDir()
		info := write(t, directory, "a.wasm", "abc")
		write(t, directory, "other", "keeps the inode from being used again")
		if err := c.swap(filepath.Join(directory, "a.wasm")); err != nil {
			t.Fatal(err)
		}
		content, err := read(directory, "a.wasm", info)
		if !errors.Is(err, c.want) || err == nil && string(content) != "abc" {
			t.Errorf("%s: got %q and error %v, want error %v", c.name, content, err, c.want)
		}
	}
}

// TestUnsettled waits for what was written where it is, and takes at once what was renamed into its place.
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

// writtenAt is a file of a system that tells no more.
type writtenAt struct {
	os.FileInfo
	modified time.Time
}

func (w writtenAt) ModTime() time.Time { return w.modified }
func (writtenAt) Sys() any             { return nil }

// TestTouchedLast tells a renamed file from one that was written, where the system has a change time.
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
	for end := time.Now().Add(10 * time.Second); ; { // the clock of files ticks every few milliseconds
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

// TestScanBounds has a scan end in time in a directory that does not.
func TestScanBounds(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	const modules = 50
	for i := range modules + 1 {
		write(t, directory, fmt.Sprintf("f%05d.wasm", i), "")
	}
	seen, err := scan(directory, modules)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(seen.files); got != modules {
		t.Errorf("got %d files, want %d", got, modules)
	}
	if len(seen.problems) != 1 || !strings.Contains(seen.problems[0].err.Error(), "50 modules") {
		t.Errorf("got problems %v, want one that tells of the bound", seen.problems)
	}
	if seen.knows("z.wasm") {
		t.Error("a file that was not looked at counts as gone")
	}
}

// TestScanBoundOfOptions has as many modules served as the options say.
func TestScanBoundOfOptions(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range []string{"a.wasm", "b.wasm", "c.wasm"} {
		write(t, directory, name, "")
	}
	listed, err := List(directory, 2, "")
	if err != nil || len(listed) != 3 || listed[2].Err == nil || !strings.Contains(listed[2].Err.Error(), "tools.modules") {
		t.Errorf("got %+v, %v, want two files and what to do about the third", listed, err)
	}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	for modules, want := range map[int]int{0: DefaultModules, 2: 2} {
		if r := newReconciler(t.Context(), Options{Modules: modules}, table); r.modules != want {
			t.Errorf("Options.Modules %d: got %d, want %d", modules, r.modules, want)
		}
	}
}

// TestWatchFails polls folders that can't be watched, and watches them once they can be.
func TestWatchFails(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write(t, directory, "n/a.wasm", "")
	seen, err := scan(directory, DefaultModules)
	if err != nil {
		t.Fatal(err)
	}
	var w watch
	defer w.close()
	now := time.Now()
	if !w.follow(filepath.Join(directory, "n", "a.wasm"), seen.folders, now, time.Second) || w.err == nil {
		t.Errorf("watching below a file: got error %v, want one", w.err)
	}
	if w.follow(directory, seen.folders, now.Add(time.Second/2), time.Second) {
		t.Error("tried again too soon")
	}
	if !w.follow(directory, seen.folders, now.Add(time.Second), time.Second) || w.err != nil {
		t.Errorf("watching again: got error %v, want none", w.err)
	}
	if w.follow(directory, seen.folders, now.Add(time.Hour), time.Second) {
		t.Error("began anew without need")
	}
	events, _ := w.channels()
	write(t, directory, "n/b.wasm", "")
	select {
	case <-events:
	case <-time.After(20 * time.Second):
		t.Error("a new file was not told of")
	}
}

// BenchmarkRescan looks at 1,000 files that have not changed.
func BenchmarkRescan(b *testing.B) {
	directory := b.TempDir()
	for i := range 1000 {
		write(b, directory, fmt.Sprintf("n%d/f%d.wasm", i/100, i), "")
	}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		b.Fatal(err)
	}
	r := newReconciler(b.Context(), Options{Directory: directory, PollOnly: true}, table)
	defer r.close()
	now := time.Now()
	r.scan(now)
	for _, f := range r.index.files {
		r.endLoad(f.loading)
		f.read = f.observed
	}
	for b.Loop() {
		r.scan(now)
	}
	if len(r.loads) != 0 {
		b.Fatalf("%d files are read again", len(r.loads))
	}
}
