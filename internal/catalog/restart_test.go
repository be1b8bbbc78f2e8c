package catalog_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestRestartKeeps: the file that served a path serves it after a restart, too, although another one comes first by name and the file has since been
// replaced.
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

	for range 2 { // at the second start, a record that was only read must stay
		c = open(t, o)
		awaitTable(t, c, []string{"/a", "/b"}, []string{"first.wasm"})
		awaitAnswer(t, c, "/b", "v0003")
		closeNow(t, c)
	}
	files, err := catalog.List(t.Context(), []catalog.Sourced{{Source: newDirectory(t, o), Record: record}})
	if err != nil || len(files) != 2 || files[0].Turn <= files[1].Turn {
		t.Errorf("List: got %v, %v; want that first.wasm waits for m.wasm", files, err)
	}

	// Without the record the order of the paths decides, as it does for a replica that never saw one file before the other.
	other := open(t, options{Directory: directory})
	awaitTable(t, other, []string{"/b"}, []string{"m.wasm"})

	// Once no file waits any more, there is nothing to record.
	c = open(t, o)
	remove(t, directory, "m.wasm")
	awaitTable(t, c, []string{"/b"}, nil)
	closeNow(t, c)
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("the record is still there (%v)", err)
	}
}

// TestRestartWithAThird adds a third file that wants the path while no server runs, with a name between the other two: by the record z
// comes before a, by the names a before b and b before z.
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

// TestRestartWaitsForKeeper: a file that kept a path keeps it, however long reading the file takes after the restart. The file that waits for the
// path gets it as soon as the other one turns out not to want it.
func TestRestartWaitsForKeeper(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		keeper  []byte // the keeper's content, once it has been read
		gone    bool   // the keeper is removed before it is read
		tools   []string
		refused []string
		answer  string
	}{
		{"kept", version(t, "v0001", "", "tool"), false, []string{"/tool"}, []string{"memory:a.wasm"}, "v0001"},
		{"wanted no more", version(t, "v0001", "", "other"), false, []string{"/other", "/tool"}, nil, "v0002"},
		{"broken", []byte("no module"), false, []string{"/tool"}, []string{"memory:z.wasm"}, "v0002"},
		{"removed", nil, true, []string{"/tool"}, nil, "v0002"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, o := newMemory(), options{Engine: sandboxtest.Engine(t, sandbox.Config{}), Record: filepath.Join(t.TempDir(), "paths.json"), Poll: 20 * time.Millisecond}
			m.set("z.wasm", version(t, "v0001", "", "tool"), nil)
			c := of(t, m, o, catalog.Open)
			m.set("a.wasm", version(t, "v0002", "", "tool"), nil)
			awaitTable(t, c, []string{"/tool"}, []string{"memory:a.wasm"})
			closeNow(t, c)

			read := make(chan struct{})
			m.set("z.wasm", test.keeper, func(f *stored) {
				f.open = func(ctx context.Context) (io.ReadCloser, error) {
					select {
					case <-read:
					case <-ctx.Done():
					}
					return io.NopCloser(bytes.NewReader(test.keeper)), ctx.Err()
				}
			})
			c = of(t, m, o, catalog.Start)
			awaitTable(t, c, nil, []string{"memory:a.wasm"})
			if c.Ready() == nil {
				t.Error("ready before the file was read")
			}
			if test.gone {
				m.remove("z.wasm")
			} else {
				close(read)
			}
			awaitTable(t, c, test.tools, test.refused)
			awaitAnswer(t, c, "/tool", test.answer)
		})
	}
}

// TestRecordUnwritable checks that files are served if the record can't be written, and that the log says so once.
func TestRecordUnwritable(t *testing.T) {
	t.Parallel()
	directory, log := t.TempDir(), &testkit.Log{}
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	testkit.Put(t, directory, "b.wasm", version(t, "v0002", "", "a"))
	c := open(t, options{Directory: directory, Record: filepath.Join(directory, "nowhere", "paths.json"), Logger: log.Logger(slog.LevelInfo)})
	testkit.Put(t, directory, "c.wasm", version(t, "v0003", "", "a"))
	awaitTable(t, c, []string{"/a"}, []string{"b.wasm", "c.wasm"})
	closeNow(t, c)
	if n := log.Count("level=WARN", "can't record which of two files has a path"); n != 1 {
		t.Errorf("the log says so %d times, want once", n)
	}
}
