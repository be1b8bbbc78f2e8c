package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An area is several sources and the folder of their records.
type area struct {
	t       *testing.T
	engine  *sandbox.Engine
	records string
	log     *testkit.Log
	bound   map[string]catalog.Sourced // further settings, by the IDs of the sources
	paths   state.Space                // nil: not shared
}

func newArea(t *testing.T) *area {
	return &area{t, sandboxtest.Engine(t, sandbox.Config{}), t.TempDir(), &testkit.Log{}, map[string]catalog.Sourced{}, nil}
}

// source returns a source with this ID and a file for each name. A file's only tool is named after the last element of the file's name.
func (a *area) source(id, answer string, names ...string) *memory {
	m := newMemory()
	m.id = id
	for _, name := range names {
		a.put(m, name, answer)
	}
	return m
}

func (a *area) put(m *memory, name, answer string) {
	tool, _, _ := strings.Cut(filepath.Base(name), ".")
	m.set(name, version(a.t, answer, "", strings.TrimRight(tool, "0123456789")), nil)
}

// catalog starts a catalog of sources, in this order.
func (a *area) catalog(sources ...*memory) *catalog.Catalog {
	o := catalog.Options{Engine: a.engine, Poll: 20 * time.Millisecond, Logger: a.log.Logger(slog.LevelInfo), Paths: a.paths}
	for _, s := range sources {
		one := a.bound[s.id]
		one.Source, one.Record = s, filepath.Join(a.records, strings.ReplaceAll(s.id, "/", "-")+".json")
		o.Sources = append(o.Sources, one)
	}
	c, err := catalog.Start(a.t.Context(), o)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { c.Close() })
	return c
}

var errAway = errors.New("the volume is not mounted")

// away makes a source fail to list. back makes it succeed again.
func away(m *memory) { m.listing(func(context.Context) error { return errAway }) }
func back(m *memory) { m.listing(nil) }

// TestSources serves two sources in one table. If two files want a path, at the start the first source's file gets it, and later the file that had it
// first.
func TestSources(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001", "a/x.wasm", "a/y.wasm"), a.source("/two", "v0002", "a/x.wasm", "b/z.wasm")
	c := a.catalog(one, two)
	await(t, c, "the first source's x", func(g *wasmtools.Generation) bool {
		return c.Ready() == nil && strings.Contains(reason(g, "/two:a/x.wasm"), "/one:a/x.wasm")
	})
	awaitTable(t, c, []string{"/a/x", "/a/y", "/b/z"}, []string{"x.wasm"})
	awaitAnswer(t, c, "/a/x", "v0001")
	one.remove("a/x.wasm")
	awaitAnswer(t, c, "/a/x", "v0002")
	awaitTable(t, c, []string{"/a/x", "/a/y", "/b/z"}, nil)
	a.put(one, "a/x.wasm", "v0003")
	await(t, c, "the second source keeps x", func(g *wasmtools.Generation) bool {
		return strings.Contains(reason(g, "/one:a/x.wasm"), "/two:a/x.wasm")
	})
	awaitAnswer(t, c, "/a/x", "v0002")
	if s := c.State(); len(s.Sources) != 2 || s.Sources[0].Place != "/one:." || s.Sources[1].Place != "/two:." || s.Sources[1].Listed.IsZero() {
		t.Errorf("got %+v", s.Sources)
	}
	// Files of the same name in different sources have nothing to do with each other.
	two.remove("b/z.wasm")
	awaitTable(t, c, []string{"/a/x", "/a/y"}, []string{"x.wasm"})
}

// TestSourceAway: a catalog is ready without a source that can't be listed, and says so. If a source goes away later, what it served stays.
func TestSourceAway(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001", "x.wasm"), a.source("/two", "v0002", "z.wasm")
	away(two)
	c := a.catalog(one, two)
	awaitTable(t, c, []string{"/x"}, []string{"two:."})
	if err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	back(two)
	awaitTable(t, c, []string{"/x", "/z"}, nil)
	away(two)
	awaitTable(t, c, []string{"/x", "/z"}, []string{"two:."})
	if got := reason(c.Table().Current(), "/two:."); got != errAway.Error() {
		t.Errorf("got %q", got)
	}
	one.set("y.wasm", version(t, "v0001", "", "y"), nil) // the source still works
	awaitTable(t, c, []string{"/x", "/y", "/z"}, []string{"two:."})
}

// TestAllSourcesAway: a service is not ready while all of its sources are away, since it would say that there are no tools.
func TestAllSourcesAway(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001", "x.wasm"), a.source("/two", "v0002", "z.wasm")
	away(one)
	away(two)
	c := a.catalog(one, two)
	awaitTable(t, c, nil, []string{"one:.", "two:."})
	if c.Ready() == nil {
		t.Error("ready without any source")
	}
	back(two)
	awaitTable(t, c, []string{"/z"}, []string{"one:."})
	if err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOtherSourceHangs: a catalog is ready without a source whose listing never ends.
func TestOtherSourceHangs(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001", "x.wasm"), a.source("/two", "v0002", "z.wasm")
	two.listing(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	c := a.catalog(one, two)
	awaitTable(t, c, []string{"/x"}, nil)
	if err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	awaitAnswer(t, c, "/x", "v0001")
}

// TestSourcesRestart: a path stays with the source that had it, even after a restart. If that source is away, no other one gets the path.
func TestSourcesRestart(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001"), a.source("/two", "v0002", "x2.wasm")
	c := a.catalog(one, two)
	awaitTable(t, c, []string{"/x"}, nil)
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.put(one, "x1.wasm", "v0001")
	awaitTable(t, c, []string{"/x"}, []string{"one:x1.wasm"})
	closeNow(t, c)

	c = a.catalog(one, two)
	awaitTable(t, c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, c, "/x", "v0002")
	closeNow(t, c)
	files, err := catalog.List(t.Context(), []catalog.Sourced{{Source: one, Record: filepath.Join(a.records, "-one.json")}, {Source: two, Record: filepath.Join(a.records, "-two.json")}})
	if err != nil || len(files) != 2 || files[0].Turn <= files[1].Turn {
		t.Errorf("List: got %+v, %v; want that x1 waits for x2", files, err)
	}

	away(two)
	c = a.catalog(one, two)
	awaitTable(t, c, nil, []string{"two:.", "one:x1.wasm"})
	if got := reason(c.Table().Current(), "/one:x1.wasm"); !strings.Contains(got, "x2.wasm had one of this file's paths") {
		t.Errorf("got %q", got)
	}
	back(two)
	awaitTable(t, c, []string{"/x"}, []string{"one:x1.wasm"})
	awaitAnswer(t, c, "/x", "v0002")
	closeNow(t, c)

	away(two)
	two.remove("x2.wasm") // the waiting file gets the path once this is known
	c = a.catalog(one, two)
	awaitTable(t, c, nil, []string{"two:.", "one:x1.wasm"})
	back(two)
	awaitTable(t, c, []string{"/x"}, nil)
	awaitAnswer(t, c, "/x", "v0001")
	closeNow(t, c)

	// A source that is no longer configured keeps no path.
	a.put(two, "x2.wasm", "v0002")
	c = a.catalog(two)
	awaitTable(t, c, []string{"/x"}, nil)
	closeNow(t, c)
	c = a.catalog(one)
	awaitTable(t, c, []string{"/x"}, nil)
}

// TestListedTwice: a file that its source lists twice is served once, and that is reported.
func TestListedTwice(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one := a.source("/one", "v0001", "x.wasm")
	one.twice = true
	c := a.catalog(one)
	await(t, c, "the tool x, and the problem", func(g *wasmtools.Generation) bool {
		return len(g.Routes()) == 1 && strings.Contains(reason(g, "/one:x.wasm"), "is listed more than once")
	})
	one.remove("x.wasm")
	awaitTable(t, c, nil, nil)
}

// hung returns a function that blocks, whatever its context says, until the test has closed its catalog.
func hung(t *testing.T) func(context.Context) error {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(context.Context) error {
		<-end
		return errAway
	}
}

// TestSourceNeverReturns has a source that returns neither from List nor from Open, and ignores its context. The other sources are served, the hang
// is reported, and Close does not wait for it.
func TestSourceNeverReturns(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	never := hung(t) // ends after the catalogs are closed
	one, two := a.source("/one", "v0001", "x.wasm"), a.source("/two", "v0002", "z.wasm")
	two.listing(never)
	c := a.catalog(one, two)
	awaitTable(t, c, []string{"/x"}, nil)
	if err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	await(t, c, "what hangs", func(g *wasmtools.Generation) bool {
		return strings.Contains(reason(g, "/two:."), "it does not answer: an earlier request to it is still unanswered")
	})
	a.put(one, "y.wasm", "v0001")
	awaitTable(t, c, []string{"/x", "/y"}, []string{"two:."})
	if n := two.listed(); n != 1 {
		t.Errorf("it was listed %d times at once", n)
	}
	closeNow(t, c)
}

// TestFilesNeverOpen has a source with more files, small and large, than are read at a time. Opening any of these files never ends. Small and large
// files of another source that come later are served before a read of the first source times out.
func TestFilesNeverOpen(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	end := make(chan struct{})
	defer close(end)
	opened := func(f *stored) {
		f.open = func(context.Context) (io.ReadCloser, error) {
			<-end
			return nil, errAway
		}
	}
	large := func(name string) []byte { // the module is large because of a custom section
		return append(version(t, "v0001", "", name), append([]byte{0, 0x82, 0x80, 0x80, 0x01, 1, 'x'}, make([]byte, 2<<20)...)...)
	}
	one, two, three := a.source("/one", ""), a.source("/two", ""), a.source("/three", "")
	for i := range 40 {
		for _, s := range []*memory{two, three} {
			s.set(fmt.Sprintf("small%d.wasm", i), []byte("x"), opened) // cheaper than all others
			s.set(fmt.Sprintf("large%d.wasm", i), make([]byte, 1<<20), opened)
		}
	}
	c := a.catalog(one, two, three)
	await(t, c, "the first reads", func(*wasmtools.Generation) bool { return len(c.State().Loading) > 0 })
	one.set("small.wasm", version(t, "v0001", "", "small"), nil)
	one.set("large.wasm", large("large"), nil)
	began := time.Now()
	awaitTable(t, c, []string{"/large", "/small"}, nil)
	if took := time.Since(began); took > 4*time.Second { // a read may take 5 s
		t.Errorf("they were served after %v", took)
	}
	closeNow(t, c)
}

// TestEndlessSource has a source that grows without end, with new names each time, and with as many problems.
func TestEndlessSource(t *testing.T) {
	t.Parallel()
	a := newArea(t)
	one, two := a.source("/one", "v0001", "x.wasm"), a.source("/two", "v0002", "z.wasm")
	a.bound["/two"] = catalog.Sourced{Most: 50}
	c := a.catalog(one, two)
	awaitTable(t, c, []string{"/x", "/z"}, nil)
	files := 100_000
	if testkit.Race(t) { // the race detector makes each round ten times as slow
		files /= 10
	}
	for round := range 3 {
		two.mu.Lock()
		two.problems = nil
		for i := range files {
			name := fmt.Sprintf("m%d-%d.wasm", round, i)
			two.files[name] = stored{Entry: catalog.Entry{ID: name, Version: "1", Err: errAway}}
			if round > 0 {
				delete(two.files, fmt.Sprintf("m%d-%d.wasm", round-1, i))
			}
			if i < 5000 {
				two.problems = append(two.problems, catalog.Problem{Name: name, Err: errAway})
			}
		}
		two.mu.Unlock()
		before := two.listed()
		two.tell()
		await(t, c, "the listing", func(g *wasmtools.Generation) bool {
			return two.listed() > before && strings.Contains(a.reasons(g, "/two:."), "more than 50 modules and scripts")
		})
		s := c.State()
		if n := s.Sources[1].Files[catalog.StageRefused] + s.Sources[1].Files[catalog.StageServed]; n > 51 || s.Sources[1].Problems > 1002 {
			t.Fatalf("round %d: there are %d files and %d problems", round, n, s.Sources[1].Problems)
		}
		a.put(one, fmt.Sprintf("a/x%d.wasm", round), fmt.Sprintf("v%04d", round))
		awaitAnswer(t, c, "/a/x", "v0000") // the tool of the first round
	}
	awaitAnswer(t, c, "/z", "v0002")
}

// reasons returns all refusals in one text.
func (a *area) reasons(g *wasmtools.Generation, source string) (all string) {
	for _, r := range g.Refused() {
		if r.Source == source {
			all += r.Err.Error() + "\n"
		}
	}
	return all
}
