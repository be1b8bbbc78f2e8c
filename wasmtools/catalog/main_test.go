package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/abi1"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
	"github.com/toolsrv/toolsrv/wasmtools/catalog/directory"
)

// TestMain fails when goroutines outlive the tests: every catalog has been closed by then.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines outlive their catalogs:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of the package's goroutines, once they do not get fewer any more.
func leaked() (left string) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if (strings.Contains(stack, "wasmtools/catalog") || strings.Contains(stack, "fsnotify.")) && !strings.Contains(stack, "TestMain") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			break
		}
	}
	return left
}

// fixture returns a module below testdata.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	module, err := os.ReadFile(filepath.Join("..", "..", "testdata", filepath.FromSlash(name)+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// version returns a module with tools of these names that answer with version, five characters.
func version(t testing.TB, version, namespace string, names ...string) []byte {
	t.Helper()
	return embed(t, patch(t, fixture(t, "catalog/answer"), "v0000", version), manifest(t, namespace, names...))
}

func patch(t testing.TB, module []byte, from, to string) []byte {
	t.Helper()
	if len(from) != len(to) || bytes.Count(module, []byte(from)) != 1 {
		t.Fatalf("%q can't be patched to %q", from, to)
	}
	return bytes.Replace(module, []byte(from), []byte(to), 1)
}

func embed(t testing.TB, module, manifest []byte) []byte {
	t.Helper()
	module, err := wasmbin.SetCustom(module, wasmtools.ManifestSection, manifest)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func manifest(t testing.TB, namespace string, names ...string) []byte {
	t.Helper()
	m := wasmtools.Manifest{ABI: wasmtools.ABI, Namespace: namespace, Version: "1.2.3"}
	for _, name := range names {
		m.Tools = append(m.Tools, wasmtools.ManifestTool{Name: name, Description: "Does " + name + ".", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// uncompilable is a module whose frame is right and whose code is not.
func uncompilable(t testing.TB, names ...string) []byte {
	t.Helper()
	module := fixture(t, "catalog/answer")
	body := []byte{0x41, 0x00, 0x0b}    // i32.const 0, end
	if bytes.Count(module, body) != 2 { // that of toolsrv_call, and the data segment's offset
		t.Fatal("the fixture has changed")
	}
	return embed(t, bytes.Replace(module, body, []byte{0x01, 0x01, 0x0b}, 1), manifest(t, "", names...))
}

// put writes a file in place, with the folders on its way.
func put(t testing.TB, directory, name string, content []byte) {
	t.Helper()
	path := filepath.Join(directory, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// swap writes a file beside its place and renames it.
func swap(t testing.TB, directory, name string, content []byte) {
	t.Helper()
	put(t, directory, name+".tmp", content)
	rename(t, filepath.Join(directory, name+".tmp"), filepath.Join(directory, name))
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, path ...string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

func newEngine(t testing.TB) *sandbox.Engine {
	t.Helper()
	e, err := sandbox.New(t.Context(), sandbox.Config{Imports: abi1.Sets()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

// options are those of a catalog and of the directory that is its source.
type options struct {
	Directory string
	PollOnly  bool

	Engine *sandbox.Engine
	Limits func(path string) limits.Limits
	Record string
	Policy wasmtools.Policy
	Tools  []*wasmtools.Tool
	Logger *slog.Logger
	Poll   time.Duration
}

// open opens a catalog that polls fast and is closed with the test. Zero options are filled in.
func open(t testing.TB, o options) *catalog.Catalog {
	t.Helper()
	return with(t, o, catalog.Open)
}

// start is open without waiting for the files.
func start(t testing.TB, o options) *catalog.Catalog {
	t.Helper()
	return with(t, o, catalog.Start)
}

func with(t testing.TB, o options, begin func(context.Context, catalog.Options) (*catalog.Catalog, error)) *catalog.Catalog {
	t.Helper()
	if o.Engine == nil {
		o.Engine = newEngine(t)
	}
	if o.Poll == 0 {
		o.Poll = 20 * time.Millisecond
	}
	return of(t, newDirectory(t, o), o, begin)
}

// of is with for a source of any kind.
func of(t testing.TB, s catalog.Source, o options, begin func(context.Context, catalog.Options) (*catalog.Catalog, error)) *catalog.Catalog {
	t.Helper()
	c, err := begin(t.Context(), catalog.Options{Source: s, Engine: o.Engine, Limits: o.Limits, Record: o.Record, Policy: o.Policy,
		Tools: o.Tools, Logger: o.Logger, Poll: o.Poll})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// newDirectory returns the source of a catalog with these options. It is closed with the test.
func newDirectory(t testing.TB, o options) *directory.Directory {
	t.Helper()
	d, err := directory.Open(o.Directory, directory.Options{Logger: o.Logger, Poll: o.Poll, PollOnly: o.PollOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the directory: %v", err)
		}
	})
	return d
}

// closeNow closes a catalog, so that its log is complete: lines are written after the generation that they tell of.
func closeNow(t testing.TB, c *catalog.Catalog) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// await waits until a generation is as it should be.
func await(t testing.TB, c *catalog.Catalog, what string, good func(*wasmtools.Generation) bool) {
	t.Helper()
	news := make(chan struct{}, 1)
	unsubscribe := c.Table().Subscribe(func(*wasmtools.Generation) {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	defer unsubscribe()
	deadline := time.After(20 * time.Second)
	for !good(c.Table().Current()) {
		select {
		case <-news:
		case <-deadline:
			t.Fatalf("waited in vain for: %s\n%s", what, describe(c.Table().Current()))
		}
	}
}

// awaitTable waits for exactly these tools, and refusals of exactly these files (their last elements).
func awaitTable(t testing.TB, c *catalog.Catalog, tools, refused []string) {
	t.Helper()
	await(t, c, fmt.Sprintf("tools %q, refused %q", tools, refused), func(g *wasmtools.Generation) bool {
		return slices.Equal(paths(g), tools) && slices.Equal(sources(g), refused)
	})
}

// awaitAnswer waits until the tool at path answers so.
func awaitAnswer(t testing.TB, c *catalog.Catalog, path, answer string) {
	t.Helper()
	await(t, c, path+" answers "+answer, func(g *wasmtools.Generation) bool {
		r, ok := g.Lookup(path)
		return ok && call(t, r.Tool) == answer
	})
}

func call(t testing.TB, tool *wasmtools.Tool) string {
	t.Helper()
	result, err := tool.Caller.Call(t.Context(), &wasmtools.Call{Arguments: []byte("{}")})
	if err != nil {
		t.Fatalf("call %s: %v", tool.Path(), err)
	}
	var answer string
	if err := json.Unmarshal(result, &answer); err != nil {
		t.Fatalf("result of %s: %v", tool.Path(), err)
	}
	return answer
}

func paths(g *wasmtools.Generation) []string {
	var list []string
	for _, r := range g.Routes() {
		list = append(list, r.Tool.Path())
	}
	return list
}

func sources(g *wasmtools.Generation) []string {
	var list []string
	for _, r := range g.Refused() {
		list = append(list, filepath.Base(r.Source))
	}
	return list
}

// reason returns why a file is refused, or "".
func reason(g *wasmtools.Generation, source string) string {
	for _, r := range g.Refused() {
		if r.Source == source {
			return r.Err.Error()
		}
	}
	return ""
}

func describe(g *wasmtools.Generation) string {
	var b strings.Builder
	for _, r := range g.Routes() {
		fmt.Fprintln(&b, "serves ", r.Tool.Path(), "of", r.Tool.Source)
	}
	for _, r := range g.Refused() {
		fmt.Fprintln(&b, "refuses", r.Source+":", r.Err)
	}
	return b.String()
}

// A record keeps what is logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// count returns the number of lines that hold all parts.
func (r *record) count(parts ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, nil))
}
