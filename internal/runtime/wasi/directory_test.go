package wasi_test

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
	"github.com/toolsrv/toolsrv/internal/testkit/wasitest"
)

// A directory in memory. Directories are compared by address.
type directory struct {
	files fstest.MapFS
	fails error // of Open
	open  int   // trees
}

func (d *directory) Open() (wasi.Tree, error) {
	if d.fails != nil {
		return nil, d.fails
	}
	d.open++
	return &tree{d.files, d}, nil
}

type tree struct {
	fstest.MapFS
	of *directory
}

func (t *tree) Open(name string) (fs.File, error) {
	f, err := t.MapFS.Open(name)
	if dir, ok := f.(fs.ReadDirFile); ok {
		return &listed{dir, t.MapFS, name}, err
	}
	return f, err
}

func (t *tree) Close() error {
	t.of.open--
	return nil
}

// A listed directory can be read again from its start.
type listed struct {
	fs.ReadDirFile
	files fstest.MapFS
	name  string
}

func (l *listed) Seek(int64, int) (int64, error) {
	f, err := l.files.Open(l.name)
	if err == nil {
		l.ReadDirFile = f.(fs.ReadDirFile)
	}
	return 0, err
}

const cities = "Paris;48.85;2.35\nNairobi;-1.29;36.82\n"

// grant returns a grant of the directory "geo" and of one with many files.
func grant() *wasi.Permission {
	many := fstest.MapFS{}
	for i := range 300 {
		many[fmt.Sprintf("file-%03d", i)] = &fstest.MapFile{}
	}
	return &wasi.Permission{Directories: map[string]wasi.Directory{
		"geo": &directory{files: fstest.MapFS{
			"cities.csv":      {Data: []byte(cities)},
			"empty":           {},
			"large":           {Data: make([]byte, 200<<10)},
			"maps/world.json": {Data: []byte("{}")},
			"maps/link":       {Data: []byte("world.json"), Mode: fs.ModeSymlink},
			"out":             {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink},
			"device":          {Mode: fs.ModeDevice},
		}},
		"many": &directory{files: many},
		"gone": &directory{fails: fs.ErrNotExist},
	}}
}

// TestPaths opens and describes paths as a guest may write them.
// Proves: Files are read, and nothing else
func TestPaths(t *testing.T) {
	t.Parallel()
	const directoryFlag, create, exclusive, truncate, toWrite = 2, 1, 4, 8, 1 << 6
	for _, test := range []struct {
		path          string
		flags, rights uint64
		open, stat    uint64
	}{
		{path: "geo/cities.csv"}, {path: "geo//cities.csv"}, {path: "./geo/./cities.csv"}, {path: "geo/maps/../cities.csv"},
		{path: "."}, {path: "geo"}, {path: "geo/"}, {path: "geo/."}, {path: "geo/maps/.."}, {path: "geo/.."}, {path: "geo/maps/link"},
		{path: "", open: noEnt, stat: noEnt},
		{path: "/", open: notCapable, stat: notCapable},
		{path: "/geo/cities.csv", open: notCapable, stat: notCapable},
		{path: "..", open: notCapable, stat: notCapable},
		{path: "geo/../..", open: notCapable, stat: notCapable},
		{path: "../geo/cities.csv", open: notCapable, stat: notCapable},
		{path: "geo/../../geo/cities.csv", open: notCapable, stat: notCapable},
		{path: "geo\x00/cities.csv", open: inval, stat: inval},
		{path: "geo/cities.csv\x00", open: inval, stat: inval},
		{path: "etc/passwd", open: noEnt, stat: noEnt},
		{path: "geo/none", open: noEnt, stat: noEnt},
		{path: "gone", open: noEnt, stat: noEnt},
		{path: "gone/none", open: noEnt, stat: noEnt},
		{path: "geo/cities.csv/", open: notDir, stat: notDir},
		{path: "geo/cities.csv/.", open: notDir, stat: notDir},
		{path: "geo/" + strings.Repeat("x", 4093), open: nameTooLong, stat: nameTooLong},
		{path: strings.Repeat("a/", 2000) + "b", open: noEnt, stat: noEnt},
		{path: "geo/cities.csv", flags: directoryFlag, open: notDir},
		{path: "geo/maps", flags: directoryFlag},
		{path: "geo/cities.csv", rights: toWrite, open: roFS},
		{path: "geo/maps", rights: toWrite, open: roFS},
		{path: ".", rights: toWrite, open: roFS},
		{path: "geo/cities.csv", flags: truncate, open: roFS},
		{path: "geo/cities.csv", flags: create},
		{path: "geo/cities.csv", flags: create | exclusive, open: exist},
		{path: "geo/new", flags: create, open: roFS, stat: noEnt},
		{path: "new", flags: create, open: roFS, stat: noEnt},
		{path: "new/new", flags: create | exclusive, rights: toWrite, open: roFS, stat: noEnt},
	} {
		g := wasitest.Serve(t, grant())
		if _, got := g.OpenAt(3, 1, test.path, test.flags, 1<<1|test.rights); got != test.open {
			t.Errorf("open %.60q with the flags %d: got %d, want %d", test.path, test.flags, got, test.open)
		}
		if _, _, got := g.Stat(test.path, true); got != test.stat {
			t.Errorf("stat %.60q: got %d, want %d", test.path, got, test.stat)
		}
	}
}

// TestDescribe compares what guests learn about files.
func TestDescribe(t *testing.T) {
	t.Parallel()
	const unknown, folder, regular, link = 0, 3, 4, 7
	g := wasitest.Serve(t, grant())
	for _, test := range []struct {
		path   string
		follow bool
		kind   byte
		size   uint64
	}{
		{"geo/cities.csv", true, regular, uint64(len(cities))}, {"geo", true, folder, 0}, {".", true, folder, 0}, {"geo/maps", false, folder, 0},
		{"geo/maps/link", true, regular, 2}, {"geo/maps/link", false, link, 0}, {"geo/device", true, unknown, 0},
	} {
		kind, size, errno := g.Stat(test.path, test.follow)
		if kind != test.kind || size != test.size || errno != success {
			t.Errorf("%s: got the type %d, %d bytes and %d, want the type %d and %d bytes", test.path, kind, size, errno, test.kind, test.size)
		}
	}
	fd, _ := g.Open("geo/cities.csv")
	if errno := g.Call("fd_filestat_get", fd, wasitest.Result); errno != success || g.Uint64(wasitest.Result+32) != uint64(len(cities)) {
		t.Errorf("the open file has %d bytes (%d), want %d", g.Uint64(wasitest.Result+32), errno, len(cities))
	}
	number := g.Uint64(wasitest.Result + 8)
	if g.Stat("geo/cities.csv", true); g.Uint64(wasitest.Result+8) != number || number == 0 {
		t.Errorf("the open file has the number %d, but by its path it has %d", number, g.Uint64(wasitest.Result+8))
	}
	readLink := func(path string, size uint64) (string, uint64) {
		ptr, length := g.Path(path)
		errno := g.Call("path_readlink", 3, ptr, length, wasitest.Buffer, size, wasitest.Result)
		return string(g.Memory[wasitest.Buffer:][:g.Uint32(wasitest.Result)]), errno
	}
	if to, errno := readLink("geo/maps/link", 100); to != "world.json" || errno != success {
		t.Errorf("the link leads to %q (%d)", to, errno)
	}
	if to, errno := readLink("geo/maps/link", 5); to != "world" || errno != success {
		t.Errorf("with room for 5 bytes the link leads to %q (%d)", to, errno)
	}
	if to, errno := readLink("geo/out", 100); errno != notCapable {
		t.Errorf("the guest is told where an absolute link leads: %q (%d)", to, errno)
	}
	for path, want := range map[string]uint64{"geo/cities.csv": inval, ".": inval, "geo/none": noEnt} {
		if _, errno := readLink(path, 100); errno != want {
			t.Errorf("the link %s: got %d, want %d", path, errno, want)
		}
	}
	if _, errno := g.OpenAt(3, 0, "geo/maps/link", 0, 1<<1); errno != loop {
		t.Errorf("a link that is not to be followed: got %d, want %d", errno, loop)
	}
}

// TestReadLink reads relative links. The text of a link that leads out is not returned, whether or not its target exists.
func TestReadLink(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"there": {}}
	grant := &wasi.Permission{Directories: map[string]wasi.Directory{"links": &directory{files: files}}}
	for _, test := range []struct {
		at, to string
		errno  uint64
	}{
		{"a", "there", success}, {"d/a", "../there", success}, {"d/a", "../none", success}, {"d/a", "../none/../there", success},
		{"a", "../there", notCapable}, {"a", "..", notCapable}, {"a", "../../etc/passwd", notCapable}, {"d/a", "../../etc/passwd", notCapable},
		{"d/a", "../..", notCapable}, {"a", "none/../../etc/passwd", notCapable}, {"d/a", "none/../../../none", notCapable}, {"a", "../links/there", notCapable},
	} {
		files[test.at] = &fstest.MapFile{Data: []byte(test.to), Mode: fs.ModeSymlink}
		g := wasitest.Serve(t, grant)
		ptr, length := g.Path("links/" + test.at)
		errno := g.Call("path_readlink", 3, ptr, length, wasitest.Buffer, 100, wasitest.Result)
		got, want := string(g.Memory[wasitest.Buffer:][:g.Uint32(wasitest.Result)]), test.to
		if errno != success {
			want = ""
		}
		if errno != test.errno || got != want {
			t.Errorf("%s, which leads to %s: got %q (%d), want %q (%d)", test.at, test.to, got, errno, want, test.errno)
		}
		delete(files, test.at)
	}
}

// TestReadLinkWhileReplaced reads a link that leads out, and that is replaced by a file before its target is checked.
func TestReadLinkWhileReplaced(t *testing.T) {
	t.Parallel()
	d := &replacing{&directory{files: fstest.MapFS{"d/a": {Data: []byte("../../out/passwd"), Mode: fs.ModeSymlink}}}}
	g := wasitest.Serve(t, &wasi.Permission{Directories: map[string]wasi.Directory{"links": d}})
	ptr, length := g.Path("links/d/a")
	errno := g.Call("path_readlink", 3, ptr, length, wasitest.Buffer, 100, wasitest.Result)
	if got := string(g.Memory[wasitest.Buffer:][:g.Uint32(wasitest.Result)]); errno != notCapable || got != "" {
		t.Errorf("got %q (%d), want %d", got, errno, notCapable)
	}
}

// A replacing directory replaces a link by a file once the link was read.
type replacing struct{ *directory }

func (d *replacing) Open() (wasi.Tree, error) {
	t, err := d.directory.Open()
	return &replaced{t, d.files}, err
}

type replaced struct {
	wasi.Tree
	files fstest.MapFS
}

func (t *replaced) ReadLink(name string) (string, error) {
	to, err := t.Tree.ReadLink(name)
	t.files[name] = &fstest.MapFile{}
	return to, err
}

// TestNothingIsWritten calls every function that would change something, with a file, a directory and "/".
// Proves: Files are read, and nothing else
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, grant())
	file, _ := g.Open("geo/cities.csv")
	dir, _ := g.Open("geo/maps")
	ptr, length := g.Path("geo/new")
	list, count := g.Vectors(3)
	for _, test := range []struct {
		name   string
		params func(fd uint64) []uint64
		file   uint64 // answer for a file
		dir    uint64
	}{
		{"fd_write", func(fd uint64) []uint64 { return []uint64{fd, list, count, wasitest.Result} }, badF, badF},
		{"fd_pwrite", func(fd uint64) []uint64 { return []uint64{fd, list, count, 0, wasitest.Result} }, badF, badF},
		{"fd_allocate", func(fd uint64) []uint64 { return []uint64{fd, 0, 100} }, roFS, roFS},
		{"fd_filestat_set_size", func(fd uint64) []uint64 { return []uint64{fd, 0} }, roFS, roFS},
		{"fd_filestat_set_times", func(fd uint64) []uint64 { return []uint64{fd, 0, 0, 0} }, roFS, roFS},
		{"fd_fdstat_set_rights", func(fd uint64) []uint64 { return []uint64{fd, math.MaxUint64, math.MaxUint64} }, notCapable, notCapable},
		{"fd_renumber", func(fd uint64) []uint64 { return []uint64{fd, 1} }, notSup, notSup},
		{"path_create_directory", func(fd uint64) []uint64 { return []uint64{fd, ptr, length} }, notDir, roFS},
		{"path_filestat_set_times", func(fd uint64) []uint64 { return []uint64{fd, 1, ptr, length} }, notDir, roFS},
		{"path_link", func(fd uint64) []uint64 { return []uint64{3, 0, ptr, length, fd, ptr, length} }, notDir, roFS},
		{"path_remove_directory", func(fd uint64) []uint64 { return []uint64{fd, ptr, length} }, notDir, roFS},
		{"path_rename", func(fd uint64) []uint64 { return []uint64{fd, ptr, length, 3, ptr, length} }, notDir, roFS},
		{"path_symlink", func(fd uint64) []uint64 { return []uint64{ptr, length, fd, ptr, length} }, notDir, roFS},
		{"path_unlink_file", func(fd uint64) []uint64 { return []uint64{fd, ptr, length} }, notDir, roFS},
	} {
		for fd, want := range map[uint64]uint64{file: test.file, dir: test.dir, 3: test.dir} {
			if got := g.Call(test.name, test.params(fd)...); got != want {
				t.Errorf("%s of descriptor %d: got %d, want %d", test.name, fd, got, want)
			}
		}
	}
}

// TestStart checks that a start finds "/", so that what it remembers is right for calls, and that "/" is empty.
func TestStart(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*wasitest.Guest{"start": wasitest.Start(t), "call": wasitest.Serve(t, grant())} {
		if errno := g.Call("fd_prestat_get", 3, wasitest.Result); errno != success || g.Uint32(wasitest.Result) != 0 || g.Uint32(wasitest.Result+4) != 1 {
			t.Errorf("%s: fd_prestat_get has %d, and a name of %d bytes", name, errno, g.Uint32(wasitest.Result+4))
		}
		if errno := g.Call("fd_prestat_dir_name", 3, wasitest.Result, 1); errno != success || g.Memory[wasitest.Result] != '/' {
			t.Errorf("%s: fd_prestat_dir_name has %d", name, errno)
		}
		if errno := g.Call("fd_prestat_dir_name", 3, wasitest.Result, 0); errno != nameTooLong {
			t.Errorf("%s: fd_prestat_dir_name without room: got %d", name, errno)
		}
		for _, fd := range []uint64{0, 2, 4, math.MaxUint32} {
			if errno := g.Call("fd_prestat_get", fd, wasitest.Result); errno != badF {
				t.Errorf("%s: fd_prestat_get of %d: got %d", name, fd, errno)
			}
		}
	}
	g := wasitest.Start(t)
	if names, errno := g.List(".", 4096); len(names) > 0 || errno != success {
		t.Errorf("a start finds %q (%d)", names, errno)
	}
	for _, path := range []string{"geo", "geo/cities.csv"} {
		if _, errno := g.Open(path); errno != noEnt {
			t.Errorf("a start opens %s: got %d, want %d", path, errno, noEnt)
		}
	}
}
