package admin

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/upload"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestStill has a file that is edited, removed or made while a new one is checked stay as it is.
func TestStill(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(path string) error{
		"nothing happens": func(string) error { return nil },
		"it is edited":    func(path string) error { return os.WriteFile(path, []byte("edited"), 0o600) },
		"it is removed":   os.Remove,
		"a link comes":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("elsewhere.wasm", path)) },
	} {
		dir := t.TempDir()
		path := testkit.Put(t, dir, "a.wasm", "before")
		at := &spot{Directory: upload.Directory{Path: dir}, keeper: &versions.Store{}, FileID: catalog.FileID{SourceID: dir, Name: "a.wasm"}, place: path}
		was, err := at.lying()
		if err != nil {
			t.Fatal(err)
		}
		if err := edit(path); err != nil {
			t.Fatal(err)
		}
		if err := at.still(was); (err == nil) != (name == "nothing happens") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir := t.TempDir()
	at := &spot{Directory: upload.Directory{Path: dir}, keeper: &versions.Store{}, FileID: catalog.FileID{SourceID: dir, Name: "a.wasm"}, place: filepath.Join(dir, "a.wasm")}
	if err := at.still(lying{}); err != nil {
		t.Error(err)
	}
	testkit.Put(t, dir, "a.wasm", "made meanwhile")
	if failed, ok := errors.AsType[*wasmtools.Error](at.still(lying{})); !ok || failed.Code != wasmtools.CodeChanged {
		t.Errorf("got %v", failed)
	}
}
