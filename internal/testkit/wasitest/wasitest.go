// Package wasitest calls the functions of WASI as a guest would.
package wasitest

import (
	"encoding/binary"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
)

// The places in the guest's memory that functions read and write. Everything from Buffer to the end is for data that is read.
const (
	Result = 0 // 64 bytes
	List   = 64
	Path   = 16 << 10
	Buffer = 64 << 10
	Size   = 1 << 20
)

// A Guest is one call of a guest. A test uses it on one goroutine.
type Guest struct {
	*hosttest.Guest

	t     testing.TB
	set   *hostcall.Set
	ended bool
}

// Serve returns a guest that serves a call with a WASI grant, which may be nil. The call ends with the test.
func Serve(t testing.TB, grant *wasi.Permission) *Guest {
	run := hostcall.Run{Serving: true}
	if grant != nil {
		run.Grants = []any{grant}
	}
	return begin(t, run)
}

// Start returns a guest that is starting.
func Start(t testing.TB) *Guest { return begin(t, hostcall.Run{}) }

func begin(t testing.TB, run hostcall.Run) *Guest {
	g := &Guest{Guest: hosttest.Begin(t, make([]byte, Size), 1, run), t: t, set: wasi.Set()}
	t.Cleanup(func() { g.End() })
	return g
}

// End ends the call.
func (g *Guest) End() {
	if !g.ended {
		g.ended = true
		g.ABI.End()
	}
}

// Call calls a function, and returns its error number. Parameters that are left out are 0.
func (g *Guest) Call(name string, params ...uint64) (errno uint64) {
	g.t.Helper()
	for i := range g.set.Functions {
		f := &g.set.Functions[i]
		if f.Name != name {
			continue
		}
		all := make([]uint64, len(f.Params))
		copy(all, params)
		return g.Invoke(f, 0, all...)
	}
	g.t.Fatalf("there is no function %s", name)
	return 0
}

// Uint32 reads the number at an offset in memory.
func (g *Guest) Uint32(at int) uint32 { return binary.LittleEndian.Uint32(g.Memory[at:]) }

// Uint64 reads the number at an offset in memory.
func (g *Guest) Uint64(at int) uint64 { return binary.LittleEndian.Uint64(g.Memory[at:]) }

// Path writes a path into memory, and returns its offset and length.
func (g *Guest) Path(path string) (ptr, length uint64) {
	return Path, uint64(copy(g.Memory[Path:Buffer], path))
}

// Vectors writes a list of adjacent buffers of these sizes, and returns the offset of the list and the number of buffers.
func (g *Guest) Vectors(sizes ...uint32) (list, count uint64) {
	at := uint32(Buffer)
	for i, size := range sizes {
		binary.LittleEndian.PutUint32(g.Memory[List+8*i:], at)
		binary.LittleEndian.PutUint32(g.Memory[List+8*i+4:], size)
		at += size
	}
	return List, uint64(len(sizes))
}

// Open opens a path below "/" for reading, and follows links.
func (g *Guest) Open(path string) (fd, errno uint64) { return g.OpenAt(3, 1, path, 0, 1<<1) }

// OpenAt is path_open.
func (g *Guest) OpenAt(dir, lookup uint64, path string, flags, rights uint64) (fd, errno uint64) {
	g.t.Helper()
	ptr, length := g.Path(path)
	errno = g.Call("path_open", dir, lookup, ptr, length, flags, rights, 0, 0, Result)
	return uint64(g.Uint32(Result)), errno
}

// Read reads up to n bytes.
func (g *Guest) Read(fd uint64, n uint32) (content string, errno uint64) {
	g.t.Helper()
	list, count := g.Vectors(n)
	if errno = g.Call("fd_read", fd, list, count, Result); errno != 0 {
		return "", errno
	}
	return string(g.Memory[Buffer:][:g.Uint32(Result)]), 0
}

// ReadFile opens a file, reads up to 1 KiB of it and closes it.
func (g *Guest) ReadFile(path string) (content string, errno uint64) {
	g.t.Helper()
	fd, errno := g.Open(path)
	if errno != 0 {
		return "", errno
	}
	defer g.Call("fd_close", fd)
	return g.Read(fd, 1<<10)
}

// Stat returns the type and the size of the file that a path leads to.
func (g *Guest) Stat(path string, follow bool) (kind byte, size, errno uint64) {
	g.t.Helper()
	lookup := uint64(0)
	if follow {
		lookup = 1
	}
	ptr, length := g.Path(path)
	errno = g.Call("path_filestat_get", 3, lookup, ptr, length, Result)
	return g.Memory[Result+16], g.Uint64(Result + 32), errno
}

// An Entry is an entry of a directory.
type Entry struct {
	Name string
	Kind byte
	Next uint64 // the cookie of the next entry
}

// ReadDir reads the entries from a cookie on that fit into size bytes as a whole. It reports whether there are more.
func (g *Guest) ReadDir(fd, cookie uint64, size int) (entries []Entry, more bool, errno uint64) {
	g.t.Helper()
	if errno = g.Call("fd_readdir", fd, Buffer, uint64(size), cookie, Result); errno != 0 {
		return nil, false, errno
	}
	used := int(g.Uint32(Result))
	for b := g.Memory[Buffer:][:used]; len(b) >= 24; {
		n := int(binary.LittleEndian.Uint32(b[16:]))
		if len(b) < 24+n {
			break
		}
		entries = append(entries, Entry{string(b[24 : 24+n]), b[20], binary.LittleEndian.Uint64(b)})
		b = b[24+n:]
	}
	return entries, used == size, 0
}

// List reads a whole directory, as a library with a buffer of that size does.
func (g *Guest) List(path string, size int) (names []string, errno uint64) {
	g.t.Helper()
	fd, errno := g.OpenAt(3, 1, path, 1<<1, 1<<14)
	if errno != 0 {
		return nil, errno
	}
	defer g.Call("fd_close", fd)
	for cookie := uint64(0); ; {
		entries, more, errno := g.ReadDir(fd, cookie, size)
		if errno != 0 {
			return names, errno
		}
		for _, e := range entries {
			names = append(names, e.Name)
			cookie = e.Next
		}
		if !more {
			return names, 0
		}
	}
}
