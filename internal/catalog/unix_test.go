//go:build unix

package catalog_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

func link(t testing.TB, target string, path ...string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

// TestStrangeEntries fills the directory with entries that are not plain files: nothing hangs, nothing outside is read, each is
// reported, and the good file is served.
func TestStrangeEntries(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	directory := filepath.Join(base, "tools")
	testkit.Put(t, directory, "good.wasm", version(t, "v0001", "", "good"))
	testkit.Put(t, base, "outside.wasm", version(t, "v0002", "", "outside"))
	testkit.Put(t, base, "tools/real/folder/a.wasm", version(t, "v0003", "", "a"))
	for _, name := range []string{"fifo.wasm", "fifo"} {
		if err := syscall.Mkfifo(filepath.Join(directory, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	huge, err := os.Create(filepath.Join(directory, "huge.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	defer huge.Close()
	if err := huge.Truncate(sandbox.MaxModule + 1); err != nil {
		t.Fatal(err)
	}
	link(t, "/dev/zero", directory, "zero.wasm")
	link(t, "../outside.wasm", directory, "out.wasm")
	link(t, filepath.Join(directory, "good.wasm"), directory, "absolute.wasm")
	link(t, "nowhere.wasm", directory, "dangling.wasm")
	link(t, "self.wasm", directory, "self.wasm")
	link(t, "..", directory, "above")
	link(t, ".", directory, "here")
	link(t, "nowhere", directory, "nothing")
	link(t, "real/folder", directory, "linked")
	link(t, "../..", directory, "real/folder/up")
	link(t, "../../real", directory, "real/folder/again")
	c := open(t, options{Directory: directory})
	// linked/up and linked/again lie below a link. real/folder/up and real/folder/again lead back.
	awaitTable(t, c, []string{"/good", "/linked/a", "/real/folder/a"}, []string{
		"here", "again", "up", "again", "up",
		"absolute.wasm", "dangling.wasm", "fifo.wasm", "huge.wasm", "out.wasm", "self.wasm", "zero.wasm",
	})
	for name, want := range map[string]string{
		"here": "contains it", "linked/up": "below a linked folder", "real/folder/again": "contains it", "fifo.wasm": "not a regular file",
		"huge.wasm": "67108865 bytes", "out.wasm": "escapes", "absolute.wasm": "relative path", "dangling.wasm": "no such file", "zero.wasm": "escapes",
	} {
		if got := reason(c.Table().Current(), filepath.Join(directory, name)); !strings.Contains(got, want) {
			t.Errorf("%s: got reason %q, want one with %q", name, got, want)
		}
	}
}

// TestKubernetes mounts modules as a kubelet does: links to a hidden link to a hidden folder, which is swapped.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "..1/a.wasm", version(t, "v0001", "", "a"))
	testkit.Put(t, directory, "..1/math/b.wasm", version(t, "v0001", "", "b"))
	link(t, "..1", directory, "..data")
	link(t, "..data/a.wasm", directory, "a.wasm")
	link(t, "..data/math", directory, "math")
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo)})
	awaitAnswer(t, c, "/a", "v0001")
	awaitAnswer(t, c, "/math/b", "v0001")
	testkit.Put(t, directory, "..2/a.wasm", version(t, "v0002", "", "a"))
	testkit.Put(t, directory, "..2/math/b.wasm", version(t, "v0002", "", "b"))
	link(t, "..2", directory, "..data_tmp")
	rename(t, filepath.Join(directory, "..data_tmp"), filepath.Join(directory, "..data"))
	remove(t, directory, "..1")
	awaitAnswer(t, c, "/a", "v0002")
	awaitAnswer(t, c, "/math/b", "v0002")
	awaitTable(t, c, []string{"/a", "/math/b"}, nil)
}

// TestOwners: files that other users can change are served, with one warning for all that come together.
// Proves: Files of others are not trusted
func TestOwners(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "tools")
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	testkit.Put(t, directory, "open/b.wasm", version(t, "v0001", "", "b"))
	testkit.Put(t, directory, "c.wasm", version(t, "v0001", "", "c"))
	chmod := func(mode os.FileMode, name string) {
		t.Helper()
		if err := os.Chmod(filepath.Join(directory, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{".": 0o777, "a.wasm": 0o666, "open": 0o777, "open/b.wasm": 0o644, "c.wasm": 0o644} {
		chmod(mode, name)
	}
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo)})
	awaitTable(t, c, []string{"/a", "/c", "/open/b"}, nil)
	for _, parts := range [][]string{
		{"level=WARN", "other users can change the tools directory", directory, "every user"},
		{"level=WARN", "other users can change files", "a.wasm", "files=2"},
	} {
		if n := log.Count(parts...); n != 1 {
			t.Errorf("got %d lines with %q, want 1", n, parts)
		}
	}
	testkit.Put(t, directory, "later.wasm.tmp", version(t, "v0001", "", "later"))
	chmod(0o666, "later.wasm.tmp")
	rename(t, filepath.Join(directory, "later.wasm.tmp"), filepath.Join(directory, "later.wasm"))
	testkit.Put(t, directory, "private.wasm.tmp", version(t, "v0001", "", "private"))
	chmod(0o644, "private.wasm.tmp")
	rename(t, filepath.Join(directory, "private.wasm.tmp"), filepath.Join(directory, "private.wasm"))
	awaitTable(t, c, []string{"/a", "/c", "/later", "/open/b", "/private"}, nil)
	closeNow(t, c)
	if n := log.Count("other users can change files", "later.wasm", "files=1"); n != 1 {
		t.Errorf("got %d warnings of the file that came later, want 1", n)
	}
	if n := log.Count("other users can"); n != 3 {
		t.Errorf("got %d warnings, want 3", n)
	}
}

// TestOwnersAgain: there is one warning for a file, however often it is looked at again because it can't be read.
// Proves: Files of others are not trusted
func TestOwnersAgain(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	if err := os.Chmod(filepath.Join(directory, "a.wasm"), 0o222); err != nil {
		t.Fatal(err)
	}
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Poll: 10 * time.Millisecond, PollOnly: true, Logger: log.Logger(slog.LevelInfo)})
	for i := range 20 { // each new file is looked at, and so are those before it
		name := fmt.Sprintf("b%d", i)
		swap(t, directory, name+".wasm", version(t, "v0001", "", name))
		await(t, c, name, func(g *wasmtools.Generation) bool { _, ok := g.Lookup("/" + name); return ok })
	}
	closeNow(t, c)
	if n := log.Count("other users can change files", "a.wasm"); n != 1 {
		t.Errorf("got %d warnings of the same file, want 1", n)
	}
}

// TestOwnersPrivate: there is no warning if only the server's user can change the tools.
func TestOwnersPrivate(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "n/a.wasm", version(t, "v0001", "", "a"))
	link(t, "n/a.wasm", directory, "z.wasm")
	for _, name := range []string{".", "n", "n/a.wasm"} {
		if err := os.Chmod(filepath.Join(directory, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo)})
	closeNow(t, c)
	if n := log.Count("other users can"); n != 0 {
		t.Errorf("got %d warnings, want none", n)
	}
}

// TestPermission: a file that can't be read is refused. What was served before stays. Once the file can be read, it is served.
func TestPermission(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	directory := t.TempDir()
	testkit.Put(t, directory, "n/a.wasm", version(t, "v0001", "", "a"))
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "", "b"))
	chmod := func(mode os.FileMode, name string) {
		t.Helper()
		if err := os.Chmod(filepath.Join(directory, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(0, "b.wasm")
	c := open(t, options{Directory: directory})
	awaitTable(t, c, []string{"/n/a"}, []string{"b.wasm"})
	chmod(0, "n")
	awaitTable(t, c, []string{"/n/a"}, []string{"n", "b.wasm"})
	chmod(0o644, "b.wasm")
	awaitTable(t, c, []string{"/b", "/n/a"}, []string{"n"})
	chmod(0o755, "n")
	awaitTable(t, c, []string{"/b", "/n/a"}, nil)
}
