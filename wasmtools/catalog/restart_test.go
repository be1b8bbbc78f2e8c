package catalog_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
)

// TestRestartKeeps has the file that served a path serve it after a restart, too: another that wants it comes first by its name,
// and the one that serves was replaced since.
func TestRestartKeeps(t *testing.T) {
	t.Parallel()
	directory, record := t.TempDir(), filepath.Join(t.TempDir(), "paths.json")
	o := options{Directory: directory, Record: record}
	testkit.Put(t, directory, "m.wasm", version(t, "v0001", "", "a", "b"))
	c := open(t, o)
	swap(t, directory, "first.wasm", version(t, "v0002", "", "b"))
	awaitTable(t, c, []string{"/a", "/b"}, []string{"first.wasm"})
	swap(t, directory, "m.wasm", version(t, "v0003", "", "a", "b"))
	awaitAnswer(t, c, "/b", "v0003")
	closeNow(t, c)

	for range 2 { // what was read from the record is kept in it
		c = open(t, o)
		awaitTable(t, c, []string{"/a", "/b"}, []string{"first.wasm"})
		awaitAnswer(t, c, "/b", "v0003")
		closeNow(t, c)
	}
	files, err := catalog.List(t.Context(), newDirectory(t, o), record)
	if err != nil || len(files) != 2 || files[0].Turn <= files[1].Turn {
		t.Errorf("List: got %v, %v; want that first.wasm waits for m.wasm", files, err)
	}

	// Without the record the order of the paths decides, as for a replica that never saw the one before the other.
	other := open(t, options{Directory: directory})
	awaitTable(t, other, []string{"/b"}, []string{"m.wasm"})

	// Once nobody waits any more, there is nothing to remember.
	c = open(t, o)
	remove(t, directory, "m.wasm")
	awaitTable(t, c, []string{"/b"}, nil)
	closeNow(t, c)
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("the record is still there (%v)", err)
	}
}

// TestRestartWithAThird has a third file that wants the path come while no server runs, whose name stands between those of the
// other two: by the record z goes before a, by the names a before b and b before z.
func TestRestartWithAThird(t *testing.T) {
	t.Parallel()
	directory, record := t.TempDir(), filepath.Join(t.TempDir(), "paths.json")
	o := options{Directory: directory, Record: record}
	testkit.Put(t, directory, "z.wasm", version(t, "v0001", "", "tool"))
	c := open(t, o)
	swap(t, directory, "a.wasm", version(t, "v0002", "", "tool"))
	awaitTable(t, c, []string{"/tool"}, []string{"a.wasm"})
	closeNow(t, c)
	testkit.Put(t, directory, "b.wasm", version(t, "v0003", "", "tool"))
	c = open(t, o)
	awaitTable(t, c, []string{"/tool"}, []string{"a.wasm", "b.wasm"})
	awaitAnswer(t, c, "/tool", "v0001")
}

// TestRecordUnwritable serves without a record, and says once that it can't keep it.
func TestRecordUnwritable(t *testing.T) {
	t.Parallel()
	directory, log := t.TempDir(), &testkit.Log{}
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	testkit.Put(t, directory, "b.wasm", version(t, "v0002", "", "a"))
	c := open(t, options{Directory: directory, Record: filepath.Join(directory, "nowhere", "paths.json"), Logger: log.Logger(slog.LevelInfo)})
	testkit.Put(t, directory, "c.wasm", version(t, "v0003", "", "a"))
	awaitTable(t, c, []string{"/a"}, []string{"b.wasm", "c.wasm"})
	closeNow(t, c)
	if n := log.Count("level=WARN", "after a restart another file may have a path"); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}
