package files_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/files"
	"github.com/toolsrv/toolsrv/internal/testkit/wasitest"
)

// These are the error numbers that tests expect.
const (
	success    = 0
	acces      = 2
	isDir      = 31
	loop       = 32
	noEnt      = 44
	notDir     = 54
	notCapable = 76
)

// serve returns a guest to which path is granted as "geo".
func serve(t testing.TB, path string) *wasitest.Guest {
	t.Helper()
	return wasitest.Serve(t, files.Grant(map[string]string{"geo": path}))
}

// write writes a file, with the directories above it.
func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes a link, or skips the test if that isn't allowed.
func link(t testing.TB, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skip("links can't be made here:", err)
	}
}

// TestRead reads files and directories, and links within.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cities.csv"), "Paris")
	write(t, filepath.Join(dir, "maps", "world.json"), "{}")
	for i := range 300 {
		write(t, filepath.Join(dir, "many", fmt.Sprint("file-", i)), "")
	}
	g := serve(t, dir)
	for path, want := range map[string]string{"geo/cities.csv": "Paris", "geo/maps/world.json": "{}", "geo/maps/../cities.csv": "Paris"} {
		if got, errno := g.ReadFile(path); got != want || errno != success {
			t.Errorf("%s: got %q (%d), want %q", path, got, errno, want)
		}
	}
	if names, errno := g.List("geo", 4096); errno != success || len(names) != 3 {
		t.Errorf("got the names %q (%d)", names, errno)
	}
	for _, size := range []int{100, 4096, 1 << 18} {
		names, errno := g.List("geo/many", size)
		slices.Sort(names)
		if errno != success || len(slices.Compact(names)) != 300 {
			t.Errorf("with %d bytes: got %d names (%d), want 300", size, len(names), errno)
		}
	}
	link(t, "maps", filepath.Join(dir, "current"))
	if got, errno := g.ReadFile("geo/current/world.json"); got != "{}" || errno != success {
		t.Errorf("through a link: got %q (%d)", got, errno)
	}
}

// TestNothingLeadsOut tries to read a file beside the directory, in every way open to a guest or to somebody who writes to the directory.
// Proves: Files are read, and nothing else
func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	const secret = "secret"
	top := t.TempDir()
	dir := filepath.Join(top, "geo")
	write(t, filepath.Join(top, secret), secret)
	write(t, filepath.Join(top, "geo-old", secret), secret)
	write(t, filepath.Join(dir, "sub", "file"), "")
	link(t, filepath.Join(top, secret), filepath.Join(dir, "absolute"))
	link(t, "../"+secret, filepath.Join(dir, "relative"))
	link(t, "../../"+secret, filepath.Join(dir, "sub", "up"))
	link(t, "../../../wasmtools/capability", filepath.Join(dir, "parent"))
	link(t, "/", filepath.Join(dir, "root"))
	link(t, top, filepath.Join(dir, "top"))
	link(t, "absolute", filepath.Join(dir, "twice"))
	link(t, dir+"/sub/file", filepath.Join(dir, "inside")) // absolute, though it leads back
	link(t, "../geo/sub/file", filepath.Join(dir, "around"))
	link(t, "/proc/self/cwd", filepath.Join(dir, "process"))
	link(t, "/dev/stdin", filepath.Join(dir, "stdin"))
	link(t, "a", filepath.Join(dir, "b"))
	link(t, "b", filepath.Join(dir, "a"))
	link(t, "self", filepath.Join(dir, "self"))
	link(t, "../none", filepath.Join(dir, "lost"))
	link(t, "none/../../../none", filepath.Join(dir, "sub", "lost"))
	link(t, "sub/file", filepath.Join(dir, "within"))
	link(t, "../sub/file", filepath.Join(dir, "sub", "back"))
	link(t, "../none", filepath.Join(dir, "sub", "none"))
	g := serve(t, dir)
	for path, want := range map[string]uint64{
		"geo/absolute": notCapable, "geo/relative": notCapable, "geo/sub/up": notCapable, "geo/parent": notCapable, "geo/parent/secret": notCapable,
		"geo/root" + filepath.ToSlash(top) + "/secret": notCapable, "geo/root": notCapable, "geo/top/secret": notCapable, "geo/twice": notCapable, "geo/inside": notCapable, "geo/around": notCapable,
		"geo/process": notCapable, "geo/process/x": notCapable, "geo/stdin": notCapable, "geo/a": loop, "geo/a/x": loop, "geo/self": loop,
		"geo/../secret": noEnt, "geo/../../secret": notCapable, "geo-old/secret": noEnt, "geo/../geo-old/secret": noEnt,
		"geo/sub/../../secret": noEnt, "geo\\..\\..\\secret": noEnt, "geo/..\\secret": noEnt, "geo/%2e%2e/secret": noEnt, "geo/.../secret": noEnt,
	} {
		if content, errno := g.ReadFile(path); errno != want || content != "" {
			t.Errorf("open %s: got %q (%d), want %d", path, content, errno, want)
		}
		if _, _, errno := g.Stat(path, true); errno != want {
			t.Errorf("stat %s: got %d, want %d", path, errno, want)
		}
		if names, errno := g.List(path, 4096); errno == success {
			t.Errorf("%s can be listed: %q", path, names)
		}
	}
	for path, want := range map[string]uint64{
		"geo/absolute": notCapable, "geo/relative": notCapable, "geo/sub/up": notCapable, "geo/parent": notCapable, "geo/twice": notCapable, "geo/around": notCapable,
		"geo/lost": notCapable, "geo/sub/lost": notCapable, "geo/within": success, "geo/sub/back": success, "geo/sub/none": success, "geo/a": success,
	} {
		ptr, length := g.Path(path)
		if errno := g.Call("path_readlink", 3, ptr, length, wasitest.Buffer, 100, wasitest.Result); errno != want {
			t.Errorf("where %s leads: got %d, want %d", path, errno, want)
		}
	}
	for _, path := range []string{"geo/absolute", "geo/relative", "geo/parent", "geo/a"} {
		if kind, _, errno := g.Stat(path, false); kind != 7 || errno != success {
			t.Errorf("the link %s itself: got the type %d (%d)", path, kind, errno)
		}
	}
}

// TestReplacedWhileOpened switches a name, and the directory above it, between the real ones and links that lead out, as fast as possible.
// Proves: Files are read, and nothing else
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "geo")
	write(t, filepath.Join(top, "outside", "file"), "outside")
	write(t, filepath.Join(dir, "inside", "file"), "inside")
	write(t, filepath.Join(dir, "file.real"), "inside")
	link(t, "../outside/file", filepath.Join(dir, "file.link"))
	link(t, filepath.Join(top, "outside"), filepath.Join(dir, "inside.link"))
	link(t, "inside", filepath.Join(dir, "inside.real"))
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		swap := func(kind string) {
			for _, name := range []string{"file", "folder"} {
				from := map[string]string{"file": "file", "folder": "inside"}[name]
				next := filepath.Join(dir, name+".next")
				if kind == "real" && name == "file" {
					_ = os.Link(filepath.Join(dir, "file.real"), next)
				} else if to, err := os.Readlink(filepath.Join(dir, from+"."+kind)); err == nil {
					_ = os.Symlink(to, next)
				}
				_ = os.Rename(next, filepath.Join(dir, name))
			}
		}
		for {
			swap("real")
			swap("link")
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	defer func() { <-stopped }()
	defer close(stop)
	seen := map[uint64]int{}
	for range 20 {
		g := serve(t, dir)
		for range 100 {
			for _, path := range []string{"geo/file", "geo/folder/file", "geo/folder/../file"} {
				content, errno := g.ReadFile(path)
				if content == "outside" {
					t.Fatalf("%s was read, which is outside", path)
				}
				if errno == success && content != "inside" {
					t.Fatalf("%s: got %q", path, content)
				}
				seen[errno]++
			}
		}
		g.End()
	}
	t.Logf("opened, by error number: %v", seen)
}

// TestLargeFiles reads from a huge file: a read costs only what is read.
// Proves: Files are read, and nothing else
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sparse"), "begin")
	const size = 1 << 42
	if err := os.Truncate(filepath.Join(dir, "sparse"), size); err != nil {
		t.Skip("there are no large files here:", err)
	}
	g := serve(t, dir)
	fd, errno := g.Open("geo/sparse")
	if errno != success {
		t.Fatalf("open: got %d", errno)
	}
	if errno := g.Call("fd_seek", fd, ^uint64(1), 2, wasitest.Result); errno != success || g.Uint64(wasitest.Result) != size-2 {
		t.Errorf("seek to two bytes before the end: at %d (%d)", g.Uint64(wasitest.Result), errno)
	}
	if got, errno := g.Read(fd, 100); got != "\x00\x00" || errno != success {
		t.Errorf("the last bytes: got %q (%d)", got, errno)
	}
	if got, errno := g.Read(fd, 100); got != "" || errno != success {
		t.Errorf("beyond the end: got %q (%d)", got, errno)
	}
	list, count := g.Vectors(wasitest.Size - wasitest.Buffer)
	for _, offset := range []uint64{0, 1 << 40} {
		if errno := g.Call("fd_pread", fd, list, count, offset, wasitest.Result); errno != success || g.Uint32(wasitest.Result) != 64<<10 {
			t.Errorf("at %d: read %d bytes (%d) at a time, want 64 KiB", offset, g.Uint32(wasitest.Result), errno)
		}
	}
	if g.Held > 80<<10 {
		t.Errorf("%d bytes are held to read a file", g.Held)
	}
}

// TestChangedWhileRead replaces, shortens and removes a file that is open.
func TestChangedWhileRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "the first version")
	g := serve(t, dir)
	fd, _ := g.Open("geo/file")
	if got, _ := g.Read(fd, 4); got != "the " {
		t.Errorf("got %q", got)
	}
	write(t, path+".next", "another")
	if err := os.Rename(path+".next", path); err != nil {
		t.Skip("an open file can't be replaced here:", err)
	}
	if got, _ := g.Read(fd, 100); got != "first version" {
		t.Errorf("after it was replaced: got %q, want the rest of the version that was opened", got)
	}
	if got, _ := g.ReadFile("geo/file"); got != "another" {
		t.Errorf("opened again: got %q", got)
	}
	fd, _ = g.Open("geo/file")
	if err := os.Truncate(path, 3); err != nil {
		t.Fatal(err)
	}
	if got, errno := g.Read(fd, 100); got != "ano" || errno != success {
		t.Errorf("after it was shortened: got %q (%d)", got, errno)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, errno := g.Read(fd, 100); got != "" || errno != success {
		t.Errorf("after it was removed: got %q (%d)", got, errno)
	}
}

// TestDirectoryIsReplaced removes a granted directory, and puts another in its place: a call continues with what it has opened, and the next call
// sees the new content.
func TestDirectoryIsReplaced(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "geo")
	allowed := files.Grant(map[string]string{"geo": dir})
	read := func(want string, errno uint64) {
		t.Helper()
		g := wasitest.Serve(t, allowed)
		if got, no := g.ReadFile("geo/file"); got != want || no != errno {
			t.Errorf("got %q (%d), want %q (%d)", got, no, want, errno)
		}
		g.End()
	}
	read("", noEnt)
	write(t, filepath.Join(dir, "file"), "first")
	read("first", success)
	running := wasitest.Serve(t, allowed)
	open, _ := running.Open("geo")
	running.ReadDir(open, 0, 10)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Skip("an open directory can't be moved here:", err)
	}
	write(t, filepath.Join(dir, "file"), "second")
	read("second", success)
	if got, _ := running.ReadFile("geo/file"); got != "first" {
		t.Errorf("a running call reads %q", got)
	}
	if err := os.RemoveAll(dir + ".old"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"geo/file", "geo/sub"} {
		if _, errno := running.Open(path); errno != noEnt {
			t.Errorf("%s in a removed directory: got %d, want %d", path, errno, noEnt)
		}
	}
	if _, _, errno := running.ReadDir(open, 0, 4096); errno != success && errno != noEnt {
		t.Errorf("entries of a removed directory: got %d", errno)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a file")
	read("", notDir)
}

// TestCheck checks paths as operators may write them.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "", filepath.Join(dir, "none"): "none", filepath.Join(dir, "file"): "file", filepath.Join(dir, "empty"): "",
	} {
		if err := files.Check(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", path, err, want)
		}
	}
}

// TestNoNumbersOfTheHost compares what guests are told about two names of one file on the host.
// Proves: Files are read, and nothing else
func TestNoNumbersOfTheHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "one"), "")
	if err := os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "two")); err != nil {
		t.Skip("hard links can't be made here:", err)
	}
	g := serve(t, dir)
	g.Stat("geo/one", true)
	one := bytes.Clone(g.Memory[wasitest.Result:][:32])
	g.Stat("geo/two", true)
	if two := g.Memory[wasitest.Result:][:32]; bytes.Equal(one, two) || !bytes.Equal(one[16:], two[16:]) {
		t.Errorf("device, number, type and links are % x and % x", one, two)
	}
}
