package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A memory is a source that holds its files in memory, and misbehaves as a test wants.
type memory struct {
	id      string
	changes chan struct{}

	mu       sync.Mutex
	files    map[string]stored
	versions int
	problems []catalog.Problem
	partial  bool
	twice    bool                            // each file is listed twice
	list     func(ctx context.Context) error // called first by List; may be nil
	lists    int
	number   uint64          // the number of the last listing
	touched  map[string]bool // since then
}

// A stored is a file in a memory.
type stored struct {
	catalog.Entry
	content []byte
	open    func(ctx context.Context) (io.ReadCloser, error) // nil: the content
}

var _ catalog.Source = (*memory)(nil)

func newMemory() *memory {
	return &memory{id: "memory", changes: make(chan struct{}, 1), files: map[string]stored{}, touched: map[string]bool{}}
}

func (m *memory) ID() string               { return m.id }
func (m *memory) Place(name string) string { return m.id + ":" + name }
func (m *memory) Changes() <-chan struct{} { return m.changes }

func (m *memory) List(ctx context.Context) (*catalog.Listing, error) {
	m.mu.Lock()
	m.lists++
	fails := m.list
	m.mu.Unlock()
	if fails != nil {
		if err := fails(ctx); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &catalog.Listing{Problems: m.problems, Partial: m.partial}
	for _, f := range m.files { // in no order
		l.Entries = append(l.Entries, f.Entry)
		if m.twice {
			l.Entries = append(l.Entries, f.Entry)
		}
	}
	if m.number++; m.number%5 != 0 { // every fifth listing says that any file may have changed
		l.Since, l.Only = m.number-1, m.touched
	}
	l.Number, m.touched = m.number, map[string]bool{}
	return l, nil
}

func (m *memory) Open(ctx context.Context, name, version string) (io.ReadCloser, error) {
	m.mu.Lock()
	f, ok := m.files[name]
	m.mu.Unlock()
	switch {
	case !ok || f.Version != version:
		return nil, catalog.ErrChanged
	case f.open != nil:
		return f.open(ctx)
	}
	return io.NopCloser(bytes.NewReader(f.content)), nil
}

// set stores a file and reports a change. change, if not nil, falsifies the entry.
func (m *memory) set(name string, content []byte, change func(*stored)) {
	m.mu.Lock()
	m.versions++
	f := stored{Entry: catalog.Entry{ID: name, Folder: strings.Trim(path.Dir(name), "./"), Version: fmt.Sprint("v", m.versions), Size: int64(len(content))}, content: content}
	if change != nil {
		change(&f)
	}
	m.files[name], m.touched[name] = f, true
	m.mu.Unlock()
	m.tell()
}

func (m *memory) remove(name string) {
	m.mu.Lock()
	delete(m.files, name)
	m.touched[name] = true
	m.mu.Unlock()
	m.tell()
}

// listing makes List do something first.
func (m *memory) listing(f func(ctx context.Context) error) {
	m.mu.Lock()
	m.list = f
	m.mu.Unlock()
	m.tell()
}

func (m *memory) tell() {
	select {
	case m.changes <- struct{}{}:
	default:
	}
}

func (m *memory) listed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lists
}

// openMemory opens a catalog of a memory.
func openMemory(t testing.TB, m *memory, begin func(context.Context, catalog.Options) (*catalog.Catalog, error)) (*catalog.Catalog, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	return of(t, m, options{Engine: sandboxtest.Engine(t, sandbox.Config{}), Poll: 20 * time.Millisecond, Logger: log.Logger(slog.LevelInfo)}, begin), log
}

// TestSource follows a source that is not a directory: files come, change, are renamed and go.
func TestSource(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.set("z.wasm", version(t, "v0001", "", "z"), nil)
	m.set("n/a.wasm", version(t, "v0001", "", "a"), nil)
	m.set("bad.wasm", []byte("no module"), nil)
	c, log := openMemory(t, m, catalog.Open)
	awaitTable(t, c, []string{"/n/a", "/z"}, []string{"memory:bad.wasm"})
	if route, _ := c.Table().Lookup("/n/a"); route.Tool.Source != "memory:n/a.wasm" {
		t.Errorf("got the source %q", route.Tool.Source)
	}
	m.set("z.wasm", version(t, "v0002", "", "z"), nil)
	awaitAnswer(t, c, "/z", "v0002")
	m.set("z.wasm", version(t, "v0003", "", "z"), func(f *stored) { f.Settling = 30 * time.Millisecond })
	time.AfterFunc(60*time.Millisecond, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		f := m.files["z.wasm"]
		f.Settling = 0
		m.files["z.wasm"], m.touched["z.wasm"] = f, true // this is not reported: the catalog finds it by listing again
	})
	awaitAnswer(t, c, "/z", "v0003")
	m.set("late.wasm", version(t, "v0001", "", "z"), nil)
	awaitTable(t, c, []string{"/n/a", "/z"}, []string{"memory:bad.wasm", "memory:late.wasm"})
	m.remove("z.wasm")
	m.remove("bad.wasm")
	awaitTable(t, c, []string{"/n/a", "/z"}, nil)
	m.set("n/a.wasm", nil, func(f *stored) { f.Err = errors.New("is signed by nobody") })
	awaitTable(t, c, []string{"/n/a", "/z"}, []string{"a.wasm"}) // the version before it stays
	closeNow(t, c)
	if n := log.Count("file refused", "file=memory:n/a.wasm", `reason="is signed by nobody"`); n != 1 {
		t.Errorf("the log says %d times why a file is refused, want once", n)
	}
}

// TestSourceUnknown checks that files are still served while their source can't list them.
func TestSourceUnknown(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for _, name := range []string{"n/a", "n/m/b", "nn/c"} {
		m.set(name+".wasm", version(t, "v0001", "", name[strings.LastIndex(name, "/")+1:]), nil)
	}
	c, _ := openMemory(t, m, catalog.Open)
	m.mu.Lock()
	clear(m.files)
	m.problems = []catalog.Problem{{Name: "n", Err: errors.New("is locked")}}
	m.mu.Unlock()
	m.tell()
	awaitTable(t, c, []string{"/n/a", "/n/m/b"}, []string{"memory:n"})
	m.mu.Lock()
	m.problems, m.partial = nil, true
	m.mu.Unlock()
	m.set("z.wasm", version(t, "v0001", "", "z"), nil)
	awaitTable(t, c, []string{"/n/a", "/n/m/b", "/z"}, nil)
	m.mu.Lock()
	m.partial = false
	m.mu.Unlock()
	m.tell()
	awaitTable(t, c, []string{"/z"}, nil)
}

// hang is a file that sends nothing until it is closed, or a source that does not open it.
type hang struct{ closed chan struct{} }

func (h hang) Read([]byte) (int, error) {
	<-h.closed
	return 0, errors.New("closed")
}

func (h hang) Close() error {
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
	return nil
}

// TestSourceFile makes one file of a source misbehave, at the start and later. The file is refused with the reason, in time. The other files are
// served, and once this file behaves, it is served, too.
func TestSourceFile(t *testing.T) {
	t.Parallel()
	module := version(t, "v0001", "", "x")
	for _, c := range []struct {
		name   string
		change func(*stored)
		says   string // the reason of the refusal; "" if the file is not refused, but read again and again
		again  bool   // the catalog notices that the file is good again without a report
	}{
		{"can't be opened", func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no route to host") }
		}, "can't be read: no route to host", true},
		{"can't be read", func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(bytes.NewReader(module[:10]), broken{})), nil
			}
		}, "can't be read: connection reset", true},
		{"shorter than listed", func(f *stored) { f.Size++ }, "but its source listed", false},
		{"empty, but listed as larger", func(f *stored) { f.content = nil }, "has 0 bytes, but its source listed", false},
		{"longer than listed", func(f *stored) { f.Size-- }, "has more than the", false},
		{"listed as empty", func(f *stored) { f.Size = 0 }, "has more than the 0 bytes", false},
		{"huge", func(f *stored) { f.Size = 1 << 40 }, "has 1099511627776 bytes; the limit for a module is", false},
		{"listed with a negative size", func(f *stored) { f.Size = -1 }, "has -1 bytes", false},
		{"endless", func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil }
		}, "has more than the", false},
		{"hangs when it is opened", func(f *stored) {
			f.open = func(ctx context.Context) (io.ReadCloser, error) { <-ctx.Done(); return nil, ctx.Err() }
		}, "reading it took too long (more than 5s)", true},
		{"hangs when it is read", func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) { return hang{make(chan struct{})}, nil }
		}, "reading it took too long (more than 5s)", true},
		{"lacks memory", func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) {
				return nil, &catalog.PassingError{Err: errors.New("no memory now")}
			}
		}, "no memory now", true},
		{"changes all the time", func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) { return nil, catalog.ErrChanged }
		}, "", true},
	} {
		for _, when := range []string{"start", "later"} {
			t.Run(c.name+"/"+when, func(t *testing.T) {
				t.Parallel()
				m := newMemory()
				if when == "start" {
					m.set("x.wasm", module, c.change)
				}
				m.set("y.wasm", version(t, "v0001", "", "y"), nil)
				k, log := openMemory(t, m, catalog.Start)
				awaitTools := func(tools ...string) {
					t.Helper()
					await(t, k, fmt.Sprint(tools), func(g *wasmtools.Generation) bool { return slices.Equal(paths(g), tools) })
				}
				awaitTools("/y")
				if when == "later" {
					if err := k.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
					m.set("x.wasm", module, c.change)
				}
				m.set("z.wasm", version(t, "v0001", "", "z"), nil) // served at once
				awaitTools("/y", "/z")
				if err := k.Wait(t.Context()); err != nil { // the start ends in its time
					t.Error(err)
				}
				if c.says != "" {
					awaitTable(t, k, []string{"/y", "/z"}, []string{"memory:x.wasm"})
					if got := reason(k.Table().Current(), "memory:x.wasm"); !strings.Contains(got, c.says) {
						t.Errorf("refused for %q, want %q", got, c.says)
					}
				}
				if c.again {
					m.mu.Lock()
					f := m.files["x.wasm"]
					f.open = nil
					m.files["x.wasm"] = f
					m.mu.Unlock()
				} else {
					m.set("x.wasm", module, nil)
				}
				awaitTable(t, k, []string{"/x", "/y", "/z"}, nil)
				closeNow(t, k)
				if n := log.Count("file refused", "x.wasm"); (n > 0) != (c.says != "") || n > 1 {
					t.Errorf("the log says %d times that the file is refused", n)
				}
			})
		}
	}
}

// TestSourcePasses has a file that can't be opened for a while: it is tried again, each time after twice the pause, and other changes don't cause an
// earlier try.
// Proves: Files of others are not trusted
func TestSourcePasses(t *testing.T) {
	t.Parallel()
	const fails = 4
	m := newMemory()
	var mu sync.Mutex
	var tries []time.Time
	content := version(t, "v0001", "", "x")
	m.set("x.wasm", content, func(f *stored) {
		f.open = func(context.Context) (io.ReadCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			if tries = append(tries, time.Now()); len(tries) > fails {
				return io.NopCloser(bytes.NewReader(content)), nil
			}
			m.tell()
			return nil, &catalog.PassingError{Err: errors.New("no memory now")}
		}
	})
	k, _ := openMemory(t, m, catalog.Start)
	awaitTable(t, k, []string{"/x"}, nil)
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i <= fails; i++ {
		if least, got := 20*time.Millisecond<<(i-1), tries[i].Sub(tries[i-1]); got < least {
			t.Errorf("try %d came after %v, want %v", i, got, least)
		}
	}
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// zeros is a file without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestSourceHangs lists good files beside many that hang: the good ones don't wait for the others, and the start doesn't wait forever.
func TestSourceHangs(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range 100 { // two of them are read at a time
		m.set(fmt.Sprintf("a%02d.wasm", i), []byte("small"), func(f *stored) {
			f.open = func(ctx context.Context) (io.ReadCloser, error) { <-ctx.Done(); return nil, ctx.Err() }
		})
	}
	m.set("z.wasm", version(t, "v0001", "", "z"), nil)
	began := time.Now()
	c, log := openMemory(t, m, catalog.Open)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the start waited for %v", took)
	}
	await(t, c, "the good file", func(g *wasmtools.Generation) bool { _, ok := g.Lookup("/z"); return ok })
	if n := log.Count("not waiting for files"); n != 1 {
		t.Errorf("got %d warnings, want 1", n)
	}
}

// TestSourceLists makes List fail, and then hang: the error is reported, and what was served stays. Once List succeeds again, everything is as
// before.
func TestSourceLists(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.set("a.wasm", version(t, "v0001", "", "a"), nil)
	c, _ := openMemory(t, m, catalog.Open)
	for _, k := range []struct {
		name string
		list func(context.Context) error
		says string
	}{
		{"fails", func(context.Context) error { return errors.New("no route to host") }, "no route to host"},
		{"hangs", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "listing it took longer than 5s"},
	} {
		m.remove("a.wasm") // nobody sees this removal
		m.listing(k.list)
		awaitTable(t, c, []string{"/a"}, []string{"memory:."})
		if got := reason(c.Table().Current(), "memory:."); got != k.says {
			t.Errorf("%s: got the reason %q, want %q", k.name, got, k.says)
		}
		if err := c.Reconfigure(catalog.Configuration{}); err != nil { // while it hangs, too
			t.Error(err)
		}
		m.set("b.wasm", version(t, "v0002", "", "b"), nil)
		m.set("a.wasm", version(t, "v0003", "", "a"), nil)
		m.listing(nil)
		awaitTable(t, c, []string{"/a", "/b"}, nil)
		m.remove("b.wasm")
		awaitTable(t, c, []string{"/a"}, nil)
	}
	m.listing(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	began := time.Now()
	closeNow(t, c)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("closing waited %v for a listing that hangs", took)
	}
}

// TestSourceEvents reports changes faster than the catalog can list the source.
func TestSourceEvents(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.set("a.wasm", version(t, "v0001", "", "a"), nil)
	c, _ := openMemory(t, m, catalog.Open)
	began, before := time.Now(), m.listed()
	for range 1_000_000 {
		m.tell()
	}
	m.set("b.wasm", version(t, "v0001", "", "b"), nil)
	awaitTable(t, c, []string{"/a", "/b"}, nil)
	const debounce = 2 * time.Millisecond // a tenth of Poll
	if n, most := m.listed()-before, int(time.Since(began)/debounce)+2; n > most {
		t.Errorf("it was listed %d times, want %d at most", n, most)
	}
	close(m.changes)
	m.mu.Lock()
	lists := m.lists
	m.mu.Unlock()
	if err := c.Reconfigure(catalog.Configuration{}); err != nil || m.listed() > lists+1 {
		t.Errorf("because of a closed channel, the source is listed %d more times (%v)", m.listed()-lists, err)
	}
}

// A builder makes modules of scripts by their names, and counts them.
type builder struct {
	mu    sync.Mutex
	built int
	made  map[string]func() (wasmbin.Made, error)
}

func (b *builder) Build(_ context.Context, _, path string, _ []byte) (wasmbin.Made, []string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.built++
	made, err := b.made[filepath.Base(path)]()
	return made, nil, err
}

// TestSourceMade has scripts that become modules of a size other than the listed one, and scripts that can't be made into modules.
func TestSourceMade(t *testing.T) {
	t.Parallel()
	m, b := newMemory(), &builder{made: map[string]func() (wasmbin.Made, error){}}
	set := func(name string, content wasmbin.Made, err error) {
		b.mu.Lock()
		b.made[name] = func() (wasmbin.Made, error) { return content, err }
		b.mu.Unlock()
		m.set(name, []byte("abc"), func(f *stored) { f.Kind = catalog.Script })
	}
	set("a.py", whole(t, version(t, "v0001", "", "a")), nil)
	c := of(t, m, options{Scripts: b, Engine: sandboxtest.Engine(t, sandbox.Config{}), Poll: 20 * time.Millisecond}, catalog.Open)
	awaitTable(t, c, []string{"/a"}, nil)
	const broken = "a.py:1:1: there is no tool"
	set("a.py", wasmbin.Made{}, errors.New(broken))
	awaitTable(t, c, []string{"/a"}, []string{"memory:a.py"}) // the version that was served stays
	set("large.py", wasmbin.Made{Module: whole(t, version(t, "v0001", "", "l")).Module, Bundle: make([]byte, sandbox.MaxModule)}, nil)
	awaitTable(t, c, []string{"/a"}, []string{"memory:a.py", "memory:large.py"})
	for source, want := range map[string]string{"memory:a.py": broken, "memory:large.py": "becomes a module of more than"} {
		if got := reason(c.Table().Current(), source); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
	// The same version is not made again.
	b.mu.Lock()
	before := b.built
	b.mu.Unlock()
	set("b.py", whole(t, version(t, "v0001", "", "b")), nil)
	awaitTable(t, c, []string{"/a", "/b"}, []string{"memory:a.py", "memory:large.py"})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.built != before+1 {
		t.Errorf("made %d files, want the new one only", b.built-before)
	}
}
