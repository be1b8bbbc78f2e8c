package nats_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A pair is a server with two directories, each of which has a file with the same path of a tool.
type pair struct {
	*core.Service
	t        testing.TB
	one, two string
	close    func()
}

// newPair starts a server whose directories already have these files.
func newPair(t testing.TB, url string, files ...string) *pair {
	t.Helper()
	p := &pair{t: t, one: t.TempDir(), two: t.TempDir()}
	for _, name := range files {
		p.put(name)
	}
	c := config.Default()
	c.Tools.Directory, c.Tools.CacheDir, c.State.URL = "", t.TempDir(), url
	c.Sources = []config.Source{{Name: "one", Directory: p.one}, {Name: "two", Directory: p.two}}
	s, err := core.Open(t.Context(), c, core.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	p.Service = s
	closed := false
	p.close = func() {
		if !closed {
			closed = true
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(p.close)
	if err := s.Catalog.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// put puts its file into one of the directories.
func (p *pair) put(directory string) {
	p.t.Helper()
	to, text := p.one, "v0001"
	if directory == "two" {
		to, text = p.two, "v0002"
	}
	testkit.Put(p.t, to, "x.wasm", tool(p.t, text, "", 0, "x"))
}

// serves returns a function that reports whether the path /x is served from a directory while the given number of files
// is refused.
func (p *pair) serves(directory string, refused int) func() bool {
	folder := map[string]string{"one": p.one, "two": p.two}[directory]
	return func() bool {
		g := p.Table.Current()
		route, ok := g.Lookup("/x")
		return ok && strings.HasPrefix(route.Tool.Source, filepath.ToSlash(folder)) && len(g.Refused()) == refused
	}
}

func record(t testing.TB, space state.Space) string {
	t.Helper()
	e, _, err := space.Get(t.Context(), "files", state.MaxValue)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value)
}

const oneWaits = "\x01" + `{"waits_for":{"one//x.wasm":["two//x.wasm"]}}`

// TestPaths lets two servers see two files with the same path in opposite order: both serve the one that was recorded first, and so do servers that
// start later with nothing on disk.
func TestPaths(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	first, other := newPair(t, c.url()), newPair(t, c.url())
	first.put("two")
	eventually(t, "the first file is served", first.serves("two", 0))
	first.put("one")
	eventually(t, "the other one waits", first.serves("two", 1))
	other.put("one")
	eventually(t, "the only file is served", other.serves("one", 0))
	other.put("two")
	eventually(t, "both servers agree", other.serves("two", 1))
	if got := record(t, first.State.Store().Space(catalog.PathsSpace)); got != oneWaits {
		t.Errorf("the record is %q", got)
	}
	later := newPair(t, c.url(), "one", "two")
	if !later.serves("two", 1)() {
		t.Error("a server that starts later serves the other file")
	}
	for _, p := range []*pair{first, other, later} {
		p.close()
	}
	again := newPair(t, c.url(), "one", "two")
	if !again.serves("two", 1)() {
		t.Error("after a restart of all servers, the other file is served")
	}
}

// TestPathsCutOff lets two servers decide differently while one of them is cut off. That server gives way once it is back. The path can be
// called throughout.
func TestPathsCutOff(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	one, cut := newPair(t, c.url()), newPair(t, gate.url())
	for round := range 3 {
		gate.shut()
		eventually(t, "a server is cut off", func() bool { return cut.State.CutOff() != nil })
		one.put("two")
		cut.put("one")
		eventually(t, "each server serves its first file", func() bool { return one.serves("two", 0)() && cut.serves("one", 0)() })
		one.put("one")
		cut.put("two")
		eventually(t, "each server has decided for itself", func() bool { return one.serves("two", 1)() && cut.serves("one", 1)() })
		lost := false
		stop := cut.Table.Subscribe(func(g *wasmtools.Generation) {
			if _, ok := g.Lookup("/x"); !ok {
				lost = true
			}
		})
		gate.open()
		eventually(t, "both servers agree", func() bool { return one.serves("two", 1)() && cut.serves("two", 1)() })
		stop()
		if lost {
			t.Errorf("round %d: the path was served by nobody", round)
		}
		for _, p := range []*pair{one, cut} {
			for _, directory := range []string{p.one, p.two} {
				if err := os.Remove(filepath.Join(directory, "x.wasm")); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, "nothing is served", func() bool {
			return len(one.Table.Current().Routes())+len(cut.Table.Current().Routes())+len(one.Table.Current().Refused())+len(cut.Table.Current().Refused()) == 0
		})
		eventually(t, "nothing is recorded", func() bool { return record(t, one.State.Store().Space(catalog.PathsSpace)) == "" })
	}
}

// TestPathsForeign lets somebody else overwrite the record: servers continue, and write the record again when a file waits for a path.
func TestPathsForeign(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one, other := newPair(t, c.url(), "two"), newPair(t, c.url(), "two")
	one.put("one")
	other.put("one")
	both := func(directory string) func() bool {
		return func() bool { return one.serves(directory, 1)() && other.serves(directory, 1)() }
	}
	space := one.State.Store().Space(catalog.PathsSpace)
	for _, record := range []string{"\x01{", "\x01[]", "\x01" + `{"waits_for":{"one//x.wasm":["one//x.wasm"]}}`, strings.Repeat("x", state.MaxValue), "\x01" + `{"waits_for":{"` + strings.Repeat("x", 900<<10) + `":["y"]}}`} {
		if record[0] == 'x' {
			record = "\x01" + record[1:]
		}
		if _, err := space.Set(t.Context(), "files", []byte(record), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the foreign record is replaced", func() bool {
			e, ok, err := other.State.Store().Space(catalog.PathsSpace).Get(t.Context(), "files", state.MaxValue)
			return err == nil && ok && (string(e.Value) == oneWaits || strings.HasPrefix(string(e.Value), oneWaits[:len(oneWaits)-2]))
		})
		eventually(t, "both serve the same file", both("two"))
	}
	js, _ := raw(t, c)
	kv, err := js.KeyValue(t.Context(), "toolsrv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "e.cGF0aHM.ZmlsZXM", "nothing of the kind"); err != nil { // "paths", "files"
		t.Fatal(err)
	}
	eventually(t, "the record exists again", func() bool { return strings.HasPrefix(record(t, space), oneWaits[:len(oneWaits)-2]) })
	// An operator chooses the other file.
	if _, err := space.Set(t.Context(), "files", []byte("\x01"+`{"waits_for":{"two//x.wasm":["one//x.wasm"]}}`), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both serve the other file", both("one"))
}
