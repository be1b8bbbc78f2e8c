package codecache_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/codecache"
)

func open(t testing.TB, dir string, limit int64) *codecache.Cache {
	t.Helper()
	c, err := codecache.Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func put(t testing.TB, c *codecache.Cache, key codecache.Key, parts ...[]byte) {
	t.Helper()
	if err := c.Put(key, parts...); err != nil {
		t.Fatal(err)
	}
}

// entries returns the entries of a directory, and their total size.
func entries(t testing.TB, dir string) (paths []string, total int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && len(f.Name()) == 64 {
			paths, total = append(paths, filepath.Join(dir, f.Name())), total+info.Size()
		}
	}
	return paths, total
}

// TestParts reads back what was put, by its key, also from another cache in the same directory.
func TestParts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	c := open(t, dir, 0)
	list := map[codecache.Key][][]byte{
		codecache.KeyOf("a", "b"):     {[]byte("one"), nil, make([]byte, 100_000)},
		codecache.KeyOf("ab", ""):     {[]byte("two")},
		codecache.KeyOf("", "ab"):     {},
		codecache.KeyOf("1 a 1 b"):    {nil, nil},
		codecache.KeyOf("a", "b", ""): {[]byte("three")},
	}
	if len(list) != 5 {
		t.Fatal("two keys are the same")
	}
	for key, parts := range list {
		if got, err := c.Get(key); got != nil || err != nil || c.Has(key) {
			t.Errorf("got %q, %v, want nothing yet", got, err)
		}
		put(t, c, key, parts...)
	}
	for key, want := range list {
		got, err := open(t, dir, 0).Get(key)
		if err != nil || !c.Has(key) || got == nil || !bytes.Equal(bytes.Join(got, []byte("|")), bytes.Join(want, []byte("|"))) {
			t.Errorf("got %.50q, %v, want %.50q", got, err, want)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 && runtime.GOOS != "windows" {
		t.Errorf("got %v, %v, want a directory for us alone", info.Mode(), err)
	}
	paths, _ := entries(t, dir)
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("got %v, %v, want a file for us alone", info.Mode(), err)
		}
	}
}

// TestSize puts more than there is room for. The entries that were used last stay, and calling Has counts as using an entry.
func TestSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := func(n int) codecache.Key { return codecache.KeyOf(string(rune('a' + n))) }
	content := make([]byte, 1000)
	put(t, open(t, dir, 0), key(0), content)
	first, one := entries(t, dir)
	limit := 5 * one
	c := open(t, dir, limit)
	for n := range 3 {
		put(t, c, key(1+n), content)
	}
	all, _ := entries(t, dir)
	for i, path := range all { // all as old as possible, the first one the oldest
		age := time.Duration(100+i) * time.Hour
		if path == first[0] {
			age = 1000 * time.Hour
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if !c.Has(key(0)) { // so it becomes the newest
		t.Error("the first entry is gone")
	}
	for n := range 2 {
		put(t, c, key(4+n), content)
	}
	left, total := entries(t, dir)
	if total > limit || len(left) < 3 {
		t.Errorf("%d entries of %d bytes are left, want some, of at most %d", len(left), total, limit)
	}
	if bytes, most, err := c.Size(); err != nil || bytes != total || most != limit {
		t.Errorf("it has %d bytes of %d (%v), want %d of %d", bytes, most, err, total, limit)
	}
	if _, err := os.Stat(first[0]); err != nil {
		t.Errorf("the entry that was used last is gone: %v", err)
	}
	for n := range 20 {
		put(t, c, key(n), content)
		if _, total := entries(t, dir); total > limit {
			t.Fatalf("the entries have %d bytes; the limit is %d", total, limit)
		}
	}
	if err := c.Put(key(30), make([]byte, 2*limit)); err == nil || !strings.Contains(err.Error(), "the limit is ") {
		t.Errorf("got %v for an entry above the limit", err)
	}
}

// TestOpen puts an entry again while it is being read, and meanwhile trims the cache: Windows neither replaces nor removes open files.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir, 5000)
	key := codecache.KeyOf("read")
	put(t, c, key, make([]byte, 3000))
	paths, _ := entries(t, dir)
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	put(t, c, key, make([]byte, 3000))
	put(t, c, codecache.KeyOf("another"), make([]byte, 3000))
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 { // including the folder for unfinished files
		t.Errorf("got %v, %v, want only one of the two entries", files, err)
	}
}

// TestForeign puts things in the place of an entry. No honest process would leave them there.
func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, key := open(t, dir, 0), codecache.KeyOf("x")
	put(t, c, key, []byte("code"))
	paths, _ := entries(t, dir)
	path := paths[0]
	if err := os.Truncate(path, 1<<40); err != nil { // sparse: a terabyte of holes
		t.Skip(err)
	}
	if _, err := c.Get(key); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("got %v, want an error about the damage", err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("a damaged entry is left")
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(key); err == nil || c.Has(key) || c.Put(key, []byte("code")) == nil {
		t.Errorf("got %v for a directory in place of an entry, want an error", err)
	}
}

// TestOther puts one entry in the place of another. Anybody who may write links into a shared directory could do that. The entry is intact, but its
// code is another module's.
// Proves: Files of others are not trusted
func TestOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, key, other := open(t, dir, 0), codecache.KeyOf("x"), codecache.KeyOf("y")
	put(t, c, other, []byte("other code"))
	paths, _ := entries(t, dir)
	if err := os.Rename(paths[0], filepath.Join(dir, hex.EncodeToString(key[:]))); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(key); got != nil || err == nil {
		t.Errorf("got %q, %v, want an error: it is another entry", got, err)
	}
}

// TestScratch removes the scratch directory, and puts something else in its place.
func TestScratch(t *testing.T) {
	t.Parallel()
	name := "[a]*" // a pattern, too
	if runtime.GOOS == "windows" {
		name = "[a]" // names there must not contain a *
	}
	dir := filepath.Join(t.TempDir(), name)
	stale := filepath.Join(dir, ".staging-1")
	if err := os.MkdirAll(filepath.Join(stale, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(stale, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, 0)
	if _, err := os.Stat(stale); err == nil {
		t.Error("what another process left two days ago is still there")
	}
	scratch, err := c.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(scratch); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Scratch(); err != nil || again != scratch {
		t.Errorf("got %s, %v, want %s again", again, err, scratch)
	}
	if err := os.Remove(scratch); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(scratch, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scratch(); err == nil {
		t.Error("a file is taken for a directory")
	}
}

// FuzzGet reads entries that are damaged in any place and in any way. It must return what was put, or an error.
// Proves: Files of others are not trusted
func FuzzGet(f *testing.F) {
	dir := f.TempDir()
	c, key := open(f, dir, 0), codecache.KeyOf("x")
	parts := [][]byte{[]byte("about"), make([]byte, 200), nil, []byte("code")}
	put(f, c, key, parts...)
	paths, _ := entries(f, dir)
	path := paths[0]
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, at := range []int{0, 24, 56, 60, 68, 92, len(good) - 1} {
		f.Add(uint32(at), byte(0xff), uint32(0), []byte(nil))
		f.Add(uint32(0), byte(0), uint32(at), []byte(nil))
	}
	f.Add(uint32(0), byte(0), uint32(0), []byte("more"))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, cut uint32, more []byte) {
		bad := append(bytes.Clone(good[:len(good)-int(cut)%(len(good)+1)]), more...)
		if len(bad) > 0 {
			bad[int(at)%len(bad)] ^= flip
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := c.Get(key)
		if whole := bytes.Equal(bad, good); whole != (err == nil) || whole != (got != nil) {
			t.Fatalf("got %q, %v; whole: %t", got, err, whole)
		}
	})
}

// TestDirectoryRemoved removes the whole directory of a cache in use. The cache makes it again, for its user alone.
func TestDirectoryRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	c := open(t, dir, 0)
	key := codecache.KeyOf("a")
	remove := func() {
		t.Helper()
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		remove()
		if got, err := c.Get(key); got != nil || err != nil || c.Has(key) {
			t.Errorf("got %q, %v for an entry that was removed", got, err)
		}
		put(t, c, key, []byte("one"))
		if got, err := c.Get(key); err != nil || len(got) != 1 || string(got[0]) != "one" {
			t.Errorf("got %q, %v, want what was put after all was removed", got, err)
		}
		remove()
		scratch, err := c.Scratch()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(scratch, "file"), nil, 0o600); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 && runtime.GOOS != "windows" {
			t.Errorf("got %v, %v, want a directory for us alone", info, err)
		}
	}
}
