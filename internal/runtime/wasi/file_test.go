package wasi_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
	"github.com/toolsrv/toolsrv/internal/testkit/wasitest"
)

// TestReads reads into lists of buffers, from all kinds of offsets.
func TestReads(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, grant())
	fd, _ := g.Open("geo/cities.csv")
	list, count := g.Vectors(2, 0, 5, 100)
	if errno := g.Call("fd_read", fd, list, count, wasitest.Result); errno != success || g.Uint32(wasitest.Result) != uint32(len(cities)) {
		t.Errorf("read %d bytes (%d), want %d", g.Uint32(wasitest.Result), errno, len(cities))
	}
	if got := string(g.Memory[wasitest.Buffer:][:len(cities)]); got != cities {
		t.Errorf("read %q", got)
	}
	if got, errno := g.Read(fd, 10); got != "" || errno != success {
		t.Errorf("at the end: got %q (%d)", got, errno)
	}
	for _, test := range []struct {
		by     int64
		whence uint64
		errno  uint64
		at     uint64
	}{
		{3, 0, success, 3}, {-1, 1, success, 2}, {-1, 2, success, uint64(len(cities)) - 1}, {1 << 40, 0, success, 1 << 40}, {0, 1, success, 1 << 40},
		{-1, 0, inval, 1 << 40}, {math.MinInt64, 1, inval, 1 << 40}, {math.MaxInt64, 1, inval, 1 << 40}, {math.MaxInt64, 2, inval, 1 << 40},
		{0, 3, inval, 1 << 40}, {0, math.MaxUint32, inval, 1 << 40}, {math.MaxInt64, 0, success, math.MaxInt64}, {1, 1, inval, math.MaxInt64},
	} {
		if errno := g.Call("fd_seek", fd, uint64(test.by), test.whence, wasitest.Result); errno != test.errno {
			t.Errorf("seek by %d from %d: got %d, want %d", test.by, test.whence, errno, test.errno)
		}
		if errno := g.Call("fd_tell", fd, wasitest.Result); errno != success || g.Uint64(wasitest.Result) != test.at {
			t.Errorf("after seek by %d from %d: at %d (%d), want %d", test.by, test.whence, g.Uint64(wasitest.Result), errno, test.at)
		}
		if got, errno := g.Read(fd, 0); got != "" || errno != success {
			t.Errorf("nothing at %d: got %q (%d)", test.at, got, errno)
		}
	}
	if got, errno := g.Read(fd, 10); got != "" || errno != success {
		t.Errorf("far beyond the end: got %q (%d)", got, errno)
	}
	list, count = g.Vectors(5)
	for offset, want := range map[uint64]struct {
		n     uint32
		errno uint64
	}{0: {5, success}, uint64(len(cities)) - 2: {2, success}, math.MaxInt64: {0, success}, 1 << 63: {0, inval}, math.MaxUint64: {0, inval}} {
		clear(g.Memory[:8])
		if errno := g.Call("fd_pread", fd, list, count, offset, wasitest.Result); errno != want.errno || g.Uint32(wasitest.Result) != want.n {
			t.Errorf("pread at %d: got %d bytes (%d), want %d (%d)", offset, g.Uint32(wasitest.Result), errno, want.n, want.errno)
		}
	}
}

// traps reports whether a function ends the call, as it must if it gets an address outside the memory.
func traps(g *wasitest.Guest, name string, params ...uint64) (trapped bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, trapped = r.(*hostcall.Trap); !trapped {
				panic(r)
			}
		}
	}()
	g.Call(name, params...)
	return false
}

// TestVectors passes lists of buffers that are outside the memory, too long, or overwritten by what is read.
func TestVectors(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, grant())
	fd, _ := g.Open("geo/large")
	list, count := g.Vectors(150<<10, 150<<10)
	if errno := g.Call("fd_read", fd, list, count, wasitest.Result); errno != success || g.Uint32(wasitest.Result) != 64<<10 {
		t.Errorf("read %d bytes (%d) at a time, want 64 KiB", g.Uint32(wasitest.Result), errno)
	}
	if errno := g.Call("fd_read", fd, list, 1025, wasitest.Result); errno != inval {
		t.Errorf("1,025 buffers: got %d, want %d", errno, inval)
	}
	g.Vectors(1<<32 - 1)
	for name, params := range map[string][]uint64{
		"a buffer that is too long": {fd, wasitest.List, 1, wasitest.Result},
		"a list outside":            {fd, wasitest.Size - 4, 1, wasitest.Result},
		"a list far outside":        {fd, 1<<32 - 8, 1, wasitest.Result},
		"a result outside":          {fd, wasitest.List, 0, wasitest.Size - 3},
	} {
		if !traps(g, "fd_read", params...) {
			t.Errorf("%s: the call goes on", name)
		}
	}
	// The second buffer overlaps the list of buffers. The read must use the list as it was before the read overwrote it.
	g.Call("fd_seek", fd, 0, 0, wasitest.Result)
	g.Vectors(8, 1<<20-wasitest.Buffer-8)
	copy(g.Memory[wasitest.List:], []byte{wasitest.List, 0, 0, 0, 16, 0, 0, 0})
	if errno := g.Call("fd_read", fd, wasitest.List, 2, wasitest.Result); errno != success || g.Uint32(wasitest.Result) != 64<<10 {
		t.Errorf("read %d bytes over the list (%d)", g.Uint32(wasitest.Result), errno)
	}
	ptr, _ := g.Path("geo")
	for name, params := range map[string][]uint64{
		"path_open":         {3, 1, wasitest.Size - 2, 3, 0, 2, 0, 0, wasitest.Result},
		"path_filestat_get": {3, 1, ptr, 3, wasitest.Size - 63},
		"fd_filestat_get":   {fd, wasitest.Size - 63},
		"fd_fdstat_get":     {fd, wasitest.Size - 23},
		"fd_readdir":        {3, wasitest.Buffer, wasitest.Size, 0, wasitest.Result},
		"fd_prestat_get":    {3, wasitest.Size - 7},
		"fd_seek":           {fd, 0, 0, wasitest.Size - 7},
	} {
		if !traps(g, name, params...) {
			t.Errorf("%s with a place outside the memory: the call goes on", name)
		}
	}
}

// TestDirectoriesAreNoFiles reads a directory as a file, a file as a directory, and descriptors that are not open.
func TestDirectoriesAreNoFiles(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, grant())
	file, _ := g.Open("geo/cities.csv")
	dir, _ := g.Open("geo")
	list, count := g.Vectors(5)
	for _, fd := range []uint64{3, dir} {
		for name, params := range map[string][]uint64{
			"fd_read": {fd, list, count, wasitest.Result}, "fd_pread": {fd, list, count, 0, wasitest.Result}, "fd_seek": {fd, 0, 0, wasitest.Result}, "fd_tell": {fd, wasitest.Result},
		} {
			if errno := g.Call(name, params...); errno != isDir {
				t.Errorf("%s of the directory %d: got %d, want %d", name, fd, errno, isDir)
			}
		}
	}
	if _, _, errno := g.ReadDir(file, 0, 100); errno != notDir {
		t.Errorf("the entries of a file: got %d, want %d", errno, notDir)
	}
	for fd, want := range map[uint64]uint64{file: notDir, 0: notDir, 1: notDir, dir + 1: badF, 1<<32 - 1: badF, 1 << 31: badF} {
		if _, errno := g.OpenAt(fd, 1, "cities.csv", 0, 2); errno != want {
			t.Errorf("open in descriptor %d: got %d, want %d", fd, errno, want)
		}
	}
	if fd, errno := g.OpenAt(dir, 1, "maps/world.json", 0, 2); errno != success {
		t.Errorf("open in a directory that is open: got %d", errno)
	} else if got, _ := g.Read(fd, 10); got != "{}" {
		t.Errorf("read %q", got)
	}
	if _, errno := g.OpenAt(dir, 1, "../many/file-000", 0, 2); errno != notCapable {
		t.Errorf("open outside a directory that is open: got %d, want %d", errno, notCapable)
	}
	for name, params := range map[string][]uint64{
		"fd_read": {file, list, count, wasitest.Result}, "fd_fdstat_get": {file, wasitest.Result}, "fd_filestat_get": {file, wasitest.Result},
	} {
		if g.Call("fd_close", file); g.Call(name, params...) != badF {
			t.Errorf("%s works with a descriptor that is closed", name)
		}
	}
}

// TestEntries reads directories with buffers of all sizes. It begins at cookies that earlier reads have returned, and at others.
func TestEntries(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("file-%03d", i))
	}
	g := wasitest.Serve(t, grant())
	for path, want := range map[string][]string{
		".": {"geo", "gone", "many"}, "geo": {"cities.csv", "device", "empty", "large", "maps", "out"}, "geo/maps": {"link", "world.json"}, "many": many,
	} {
		for _, size := range []int{40, 100, 1000, 4096, 1 << 19} {
			if got, errno := g.List(path, size); !slices.Equal(got, want) || errno != success {
				t.Errorf("%s with %d bytes: got %q (%d)", path, size, got, errno)
			}
		}
	}
	fd, _ := g.Open("many")
	entries, _, _ := g.ReadDir(fd, 0, 1<<18)
	for _, i := range []int{299, 0, 150, 63, 64, 65, 1} {
		if got, _, errno := g.ReadDir(fd, entries[i].Next, 100); errno != success || i+1 < 300 && got[0].Name != many[i+1] || i+1 == 300 && len(got) > 0 {
			t.Errorf("after %s: got %v (%d)", many[i], got, errno)
		}
	}
	other, _ := g.Open("many")
	for _, cookie := range []uint64{1, 300, 1 << 40, math.MaxUint64} {
		if _, _, errno := g.ReadDir(other, cookie, 100); errno != inval {
			t.Errorf("a cookie %d that was not given: got %d, want %d", cookie, errno, inval)
		}
	}
	if got, more, errno := g.ReadDir(fd, 0, 0); len(got) > 0 || !more || errno != success {
		t.Errorf("without room: got %v, more: %t (%d)", got, more, errno)
	}
}

// TestDescriptorsAreBounded opens as many files as a call may, and more than all calls together may.
// Proves: Files are read, and nothing else
func TestDescriptorsAreBounded(t *testing.T) {
	t.Parallel()
	allowed := grant()
	geo := allowed.Directories["geo"].(*directory)
	g := wasitest.Serve(t, allowed)
	var fds []uint64
	for {
		fd, errno := g.Open("geo/empty")
		if errno != success {
			if errno != mFile {
				t.Errorf("one file too many: got %d, want %d", errno, mFile)
			}
			break
		}
		fds = append(fds, fd)
	}
	if len(fds) != 63 {
		t.Errorf("a call opens %d files, want 63 beside \"/\"", len(fds))
	}
	if _, errno := g.Open("."); errno != mFile {
		t.Errorf("\"/\" can be opened once more although no descriptor is left: got %d", errno)
	}
	g.Call("fd_close", fds[10])
	if fd, errno := g.Open("geo/empty"); fd != fds[10] || errno != success {
		t.Errorf("got descriptor %d (%d), want the one that was closed, %d", fd, errno, fds[10])
	}
	if g.Descriptors != 1000-63-1 || geo.open != 1 {
		t.Errorf("%d descriptors are left of 1000, with %d trees", g.Descriptors, geo.open)
	}
	g.End()
	if g.Descriptors != 1000 || geo.open != 0 || g.Held != 0 {
		t.Errorf("after the end %d descriptors are left of 1000, %d trees, and %d bytes are held", g.Descriptors, geo.open, g.Held)
	}

	// Calls of the tool inside one another count as one client's call.
	outer, inner := wasitest.Serve(t, allowed), wasitest.Serve(t, allowed)
	inner.Tallies = outer.Tallies
	for range 60 {
		if _, errno := outer.Open("geo/empty"); errno != success {
			t.Fatalf("got %d, want %d", errno, success)
		}
	}
	opened := 0
	for ; ; opened++ {
		if _, errno := inner.Open("geo/empty"); errno != success {
			break
		}
	}
	if opened != 4 {
		t.Errorf("inside a call that has 60 files open, another one opens %d, want 4", opened)
	}
	inner.End()
	if _, errno := outer.Open("geo/empty"); errno != success {
		t.Errorf("after the end of the inner call: got %d, want %d", errno, success)
	}
	outer.End()
	if inner.Descriptors != 1000 || inner.Held != 0 {
		t.Errorf("after the end %d descriptors are left of 1000, and %d bytes are held", inner.Descriptors, inner.Held)
	}

	g = wasitest.Serve(t, allowed)
	g.Descriptors = 0
	if _, errno := g.Open("geo/empty"); errno != nFile {
		t.Errorf("without a descriptor for the tree: got %d, want %d", errno, nFile)
	}
	g.Descriptors = 1
	if _, errno := g.Open("geo/empty"); errno != nFile {
		t.Errorf("without a descriptor for the file: got %d, want %d", errno, nFile)
	}
	if _, errno := g.Open("geo/none"); errno != noEnt || g.Descriptors != 0 {
		t.Errorf("a missing file: got %d, and %d descriptors are left", errno, g.Descriptors)
	}

	// A descriptor of one call means nothing in another.
	first, second := wasitest.Serve(t, allowed), wasitest.Serve(t, allowed)
	fd, _ := first.Open("geo/cities.csv")
	if _, errno := second.Read(fd, 10); errno != badF {
		t.Errorf("the descriptor of another call: got %d, want %d", errno, badF)
	}
}

// TestUses counts what was opened in granted directories, and what could not be opened.
func TestUses(t *testing.T) {
	t.Parallel()
	g := wasitest.Serve(t, grant())
	g.ReadFile("geo/cities.csv")
	g.Open("geo/maps/link")
	g.OpenAt(3, 1, "geo/none", 1, 2)
	for _, own := range []string{"tool.py", "lib/python3.14/traceback.py", "geo2/x", "../geo", ".."} { // of an interpreter
		g.Open(own)
	}
	before := g.Held
	for range 10 {
		g.List(".", 4096)
		g.List("many", 4096)
	}
	held := g.Held - before // bytes held for the tree that was opened
	g.End()
	var got []string
	for _, u := range g.Uses {
		got = append(got, fmt.Sprintf("%s %s %d %s", u.Capability, u.Target, u.Received, u.Outcome))
	}
	want := []string{fmt.Sprintf("files /geo/cities.csv %d ", len(cities)), "files /geo/none 0 EROFS"}
	want = append(want, slices.Repeat([]string{"files /many 0 "}, 10)...)
	if want = append(want, "files /geo/maps/link 0 "); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if held != 1<<10 {
		t.Errorf("%d bytes are held for directories that are closed, want those of one tree", held)
	}
	g = wasitest.Serve(t, nil)
	if _, errno := g.Open("tool.py"); errno != notCapable || g.Uses != nil {
		t.Errorf("without a grant: got %d and the uses %v, want %d and none", errno, g.Uses, notCapable)
	}
	g = wasitest.Start(t)
	if _, errno := g.Open("pyvenv.cfg"); errno != noEnt || g.Uses != nil {
		t.Errorf("in a start: got %d and the uses %v, want %d and none", errno, g.Uses, noEnt)
	}
}

// TestErrors checks that trees' errors reach the guest.
func TestErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]uint64{
		fs.ErrNotExist: noEnt, &fs.PathError{Err: fs.ErrPermission}: acces, fs.ErrInvalid: inval, errors.New("path escapes from parent"): notCapable, io.ErrUnexpectedEOF: notCapable,
	} {
		g := wasitest.Serve(t, &wasi.Permission{Directories: map[string]wasi.Directory{"geo": &directory{fails: err}}})
		if _, errno := g.Open("geo"); errno != want {
			t.Errorf("%v: got %d, want %d", err, errno, want)
		}
	}
}

// TestWorkIsCharged checks that the call pays for whatever takes the host long.
// Proves: A tool stops
// Proves: Files are read, and nothing else
func TestWorkIsCharged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do    func(g *wasitest.Guest)
		least int64
	}{
		"a deep path":                  {func(g *wasitest.Guest) { g.Open(strings.Repeat("a/", 2000)) }, 3_000_000},
		"a path that goes up and down": {func(g *wasitest.Guest) { g.Stat(strings.Repeat("a/../", 800)+"geo", true) }, 2_000_000},
		"a path that leads out":        {func(g *wasitest.Guest) { g.Stat(strings.Repeat("../", 1300), true) }, 1_900_000},
		"a long name":                  {func(g *wasitest.Guest) { g.Stat(strings.Repeat("a", 4000), true) }, 7_000},
		"a full read":                  {func(g *wasitest.Guest) { fd, _ := g.Open("geo/large"); g.Read(fd, 64<<10) }, 10_000},
		"empty reads": {func(g *wasitest.Guest) {
			fd, _ := g.Open("geo/large")
			for range 100 {
				g.Read(fd, 1)
			}
		}, 150_000},
		"many entries": {func(g *wasitest.Guest) { g.List("many", 1<<18) }, 150_000},
		"entries anew": {func(g *wasitest.Guest) {
			fd, _ := g.Open("many")
			for range 10 {
				g.ReadDir(fd, 0, 1<<18)
			}
		}, 1_500_000},
		"what fails": {func(g *wasitest.Guest) {
			for range 100 {
				g.Open("geo/none")
			}
		}, 300_000},
		"descriptions": {func(g *wasitest.Guest) {
			for range 100 {
				g.Stat("geo/maps/link", true)
			}
		}, 300_000},
	} {
		g := wasitest.Serve(t, grant())
		if test.do(g); g.Charged() < test.least {
			t.Errorf("%s: charged %d ns, want at least %d", name, g.Charged(), test.least)
		}
	}
}
