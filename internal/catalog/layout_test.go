package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// script and part set the kind of a file.
func script(f *stored) { f.Kind = catalog.Script }
func part(f *stored)   { f.Kind = catalog.Part }

// openElsewhere opens a catalog of a source whose files are not on disk. It changes the folder for temporary files, so its tests are not parallel.
func openElsewhere(t *testing.T, m *memory, b catalog.Builder) *catalog.Catalog {
	t.Helper()
	return of(t, m, options{Scripts: b, Engine: sandboxtest.Engine(t, sandbox.Config{}), Poll: 20 * time.Millisecond}, catalog.Open)
}

// TestScriptsElsewhere follows scripts of a source that is not on disk: they come, change with their parts, break, and go.
func TestScriptsElsewhere(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	m, r := newMemory(), &recipes{t: t}
	m.set("top/lib/_a", []byte("v0001"), part)
	m.set("top/a.recipe", []byte("lib/_a"), script)
	m.set("b.recipe", []byte("_b?"), script)
	m.set("c.recipe", []byte("_c"), script)
	m.set("d.wasm", version(t, "v0009", "", "d"), nil)
	c := openElsewhere(t, m, r)
	awaitTable(t, c, []string{"/b", "/d", "/top/a"}, []string{"memory:c.recipe"})
	awaitAnswer(t, c, "/top/a", "v0001")
	if got, want := reason(c.Table().Current(), "memory:c.recipe"), "c.recipe:1:1: there is no _c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.set("top/lib/_a", []byte("v0002"), part)
	awaitAnswer(t, c, "/top/a", "v0002")
	m.set("_b", []byte("v0003"), part) // a script has looked for it in vain
	awaitAnswer(t, c, "/b", "v0003")
	m.set("_c", []byte("v0004"), part) // it was missing
	awaitTable(t, c, []string{"/b", "/c", "/d", "/top/a"}, nil)
	r.builds()
	m.set("other", []byte("other"), part) // no script depends on it
	m.set("e.recipe", []byte("_b"), script)
	awaitTable(t, c, []string{"/b", "/c", "/d", "/e", "/top/a"}, nil)
	if got := r.builds(); !slices.Equal(got, []string{"e.recipe"}) {
		t.Errorf("built %q, want e.recipe only", got)
	}
	m.remove("top/lib/_a")
	awaitTable(t, c, []string{"/b", "/c", "/d", "/e", "/top/a"}, []string{"a.recipe"})
	awaitAnswer(t, c, "/top/a", "v0002") // as it was
	m.remove("b.recipe")
	awaitTable(t, c, []string{"/c", "/d", "/e", "/top/a"}, []string{"a.recipe"})
	closeNow(t, c)
	if left, err := os.ReadDir(temp); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestScriptsElsewhereSettle writes a part slowly: what was served stays until the part is complete.
func TestScriptsElsewhereSettle(t *testing.T) {
	t.Parallel()
	m, r := newMemory(), &recipes{t: t}
	m.set("_a", []byte("v0001"), part)
	m.set("a.recipe", []byte("_a"), script)
	c := openElsewhere(t, m, r)
	awaitAnswer(t, c, "/a", "v0001")
	r.builds()
	m.set("_a", []byte("v"), func(f *stored) { part(f); f.Settling = time.Hour })
	m.set("b.wasm", version(t, "v0009", "", "b"), nil)
	awaitTable(t, c, []string{"/a", "/b"}, nil)
	if got := r.builds(); len(got) > 0 {
		t.Errorf("built %q from a part that is still being written", got)
	}
	m.set("_a", []byte("v0002"), part)
	awaitAnswer(t, c, "/a", "v0002")
}

// TestScriptsElsewhereOvertaken changes a part while a script is made from it, and has the source listed before that ends. The script is made again.
func TestScriptsElsewhereOvertaken(t *testing.T) {
	t.Parallel()
	m, r := newMemory(), &recipes{t: t}
	m.set("_a", []byte("v0001"), part)
	m.set("a.recipe", []byte("_a"), script)
	c := openElsewhere(t, m, r)
	awaitAnswer(t, c, "/a", "v0001")
	var once sync.Once
	r.read = func() {
		once.Do(func() {
			changed := time.Now()
			m.set("_a", []byte("v0003"), part)
			for end := changed.Add(time.Minute); !c.State().Sources[0].Listed.After(changed) && time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
		})
	}
	m.set("_a", []byte("v0002"), part)
	awaitAnswer(t, c, "/a", "v0003")
}

// TestScriptsElsewhereHostile makes a source name paths outside the folder, and more files than may be laid out.
// Proves: Files of others are not trusted
func TestScriptsElsewhereHostile(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "_a")
	for name, test := range map[string]struct {
		fill func(m *memory)
		want string
	}{
		"a script above":   {func(m *memory) { m.set("../a.recipe", []byte("x?"), script) }, "is not a path that a script could import"},
		"an absolute part": {func(m *memory) { m.set(outside, []byte("x"), part) }, "is not a path that a script could import"},
		"a part above":     {func(m *memory) { m.set("lib/../../_a", []byte("x"), part) }, "is not a path that a script could import"},
		"many parts": {func(m *memory) {
			for i := range 1000 {
				m.set(fmt.Sprint("_", i), nil, part)
			}
		}, "1001 files with"},
		"large parts": {func(m *memory) {
			m.set("_a", nil, func(f *stored) { part(f); f.Size = 1 << 62 })
			m.set("_b", nil, func(f *stored) { part(f); f.Size = 1 << 62 })
		}, "33554432 bytes are allowed"},
		"a part that is larger than listed": {func(m *memory) { m.set("_a", []byte("abc"), func(f *stored) { part(f); f.Size = 1 }) }, "has more than the 1 bytes"},
		"a part with a negative size":       {func(m *memory) { m.set("_a", []byte("abc"), func(f *stored) { part(f); f.Size = -1 }) }, "has -1 bytes"},
		"a script of endless size":          {func(m *memory) { m.set("b.recipe", nil, func(f *stored) { script(f); f.Size = 1 << 62 }) }, "the limit for a script is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			m.set("a.recipe", []byte("x?"), script)
			m.set("c.wasm", version(t, "v0009", "", "c"), nil)
			test.fill(m)
			c := openElsewhere(t, m, &recipes{t: t})
			refused := c.Table().Current().Refused()
			if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), test.want) {
				t.Errorf("refused %v, want one with %q", refused, test.want)
			}
			if _, ok := c.Table().Current().Lookup("/c"); !ok {
				t.Error("a module beside it is not served")
			}
		})
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a part was written outside")
	}
}

// TestScriptsNotServed makes a source list a script that nobody can make into a module.
func TestScriptsNotServed(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.set("a.recipe", nil, script)
	m.set("_a", nil, part)
	m.set("b.wasm", version(t, "v0001", "", "b"), nil)
	c := openElsewhere(t, m, nil)
	awaitTable(t, c, []string{"/b"}, []string{"memory:a.recipe"})
	if got, want := reason(c.Table().Current(), "memory:a.recipe"), "is a script, and scripts of its source are not served"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPartRefused makes a source list a part that can't be used: the part is reported, and so is the script that lacks it.
func TestPartRefused(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.set("a.recipe", []byte("_a"), script)
	m.set("_a", nil, func(f *stored) { part(f); f.Err = errors.New("is not yours") })
	c := openElsewhere(t, m, &recipes{t: t})
	awaitTable(t, c, nil, []string{"memory:_a", "memory:a.recipe"})
	if got, want := reason(c.Table().Current(), "memory:_a"), "is not yours"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
