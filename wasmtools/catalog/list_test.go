package catalog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
)

// TestList has List see what a catalog serves and refuses.
func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "b.wasm", []byte("bee"))
	testkit.Put(t, dir, "a/deep/a.wasm", []byte("ay"))
	testkit.Put(t, dir, ".hidden.wasm", "")
	testkit.Put(t, dir, "c.wasm.tmp", "")
	testkit.Put(t, dir, "readme.txt", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out.wasm")); err != nil {
		t.Skip(err)
	}
	files, err := catalog.List(t.Context(), newDirectory(t, options{Directory: dir}), "")
	if err != nil {
		t.Fatal(err)
	}
	want := []catalog.File{{Name: "a/deep/a.wasm", Folder: "a/deep"}, {Name: "b.wasm"}, {Name: "out.wasm"}}
	if len(files) != len(want) {
		t.Fatalf("got %+v", files)
	}
	for i, f := range files {
		if f.Name != want[i].Name || f.Folder != want[i].Folder || (f.Err != nil) != (f.Name == "out.wasm") {
			t.Errorf("got %s in %q, %v; want %s in %q", f.Name, f.Folder, f.Err, want[i].Name, want[i].Folder)
		}
	}
	if content, err := files[0].Read(t.Context()); err != nil || string(content) != "ay" {
		t.Errorf("got %q, %v", content, err)
	}
	testkit.Put(t, dir, "b.wasm", []byte("something else"))
	if content, err := files[1].Read(t.Context()); err == nil {
		t.Errorf("got %q of a file that has changed", content)
	}
	source := newDirectory(t, options{Directory: dir})
	remove(t, dir)
	if _, err := catalog.List(t.Context(), source, ""); err == nil {
		t.Error("no error of a directory that is not there")
	}
}
