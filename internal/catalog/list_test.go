package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestList checks that List returns what a catalog serves and refuses.
func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "b.wasm", []byte("bee"))
	testkit.Put(t, dir, "a/deep/a.wasm", version(t, "v0001", "", "ay"))
	testkit.Put(t, dir, ".hidden.wasm", "")
	testkit.Put(t, dir, "c.wasm.tmp", "")
	testkit.Put(t, dir, "readme.txt", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out.wasm")); err != nil {
		t.Skip(err)
	}
	files, err := catalog.List(t.Context(), []catalog.Sourced{{Source: newDirectory(t, options{Directory: dir})}})
	if err != nil {
		t.Fatal(err)
	}
	want := []catalog.File{{Name: "a/deep/a.wasm"}, {Name: "b.wasm"}, {Name: "out.wasm"}}
	if len(files) != len(want) {
		t.Fatalf("got %+v", files)
	}
	for i, f := range files {
		if f.Place != filepath.Join(dir, want[i].Name) || f.Name != want[i].Name || (f.Err != nil) != (f.Name == "out.wasm") {
			t.Errorf("got %s at %s, %v; want %s", f.Name, f.Place, f.Err, want[i].Name)
		}
	}
	engine := sandboxtest.Engine(t, sandbox.Config{})
	m, err := files[0].Load(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if paths := m.Paths(); !slices.Equal(paths, []string{"/a/deep/ay"}) {
		t.Errorf("got the paths %q", paths)
	}
	testkit.Put(t, dir, "b.wasm", []byte("something else"))
	if m, err := files[1].Load(t.Context(), engine); err == nil {
		m.Close()
		t.Error("a file that has changed was loaded")
	}
	source := newDirectory(t, options{Directory: dir})
	remove(t, dir)
	files, err = catalog.List(t.Context(), []catalog.Sourced{{Source: source}})
	if err != nil || len(files) != 1 || files[0].Err == nil || files[0].Place != dir {
		t.Errorf("a directory that does not exist: got %+v, %v", files, err)
	}
}
