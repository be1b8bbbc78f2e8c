package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/directory"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestMain fails when goroutines outlive the tests: every catalog has been closed by then.
func TestMain(m *testing.M) { testkit.Main(m, "internal/catalog", "fsnotify.") }

// version returns a module with tools of these names. They answer with version, which must have five characters.
func version(t testing.TB, version, namespace string, names ...string) []byte {
	t.Helper()
	return sandboxtest.WithManifest(t, patch(t, testkit.Fixture(t, "catalog/answer"), "v0000", version), manifestText(t, namespace, names...))
}

func patch(t testing.TB, module []byte, from, to string) []byte {
	t.Helper()
	if len(from) != len(to) || bytes.Count(module, []byte(from)) != 1 {
		t.Fatalf("%q can't be patched to %q", from, to)
	}
	return bytes.Replace(module, []byte(from), []byte(to), 1)
}

func manifestText(t testing.TB, namespace string, names ...string) []byte {
	t.Helper()
	m := manifest.Manifest{ABI: manifest.ABI, Namespace: namespace, Version: "1.2.3"}
	for _, name := range names {
		m.Tools = append(m.Tools, manifest.Tool{Name: name, Description: "Does " + name + ".", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// uncompilable is a module with valid sections and invalid code.
func uncompilable(t testing.TB, names ...string) []byte {
	t.Helper()
	module := testkit.Fixture(t, "catalog/answer")
	body := []byte{0x41, 0x00, 0x0b}    // i32.const 0, end
	if bytes.Count(module, body) != 2 { // the pattern is in toolsrv_call, and in the data segment's offset
		t.Fatal("the fixture has changed")
	}
	return sandboxtest.WithManifest(t, bytes.Replace(module, body, []byte{0x01, 0x01, 0x0b}, 1), manifestText(t, "", names...))
}

// swap writes a file under a temporary name and renames it.
func swap(t testing.TB, directory, name string, content []byte) {
	t.Helper()
	testkit.Put(t, directory, name+".tmp", content)
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

// options are the options of a catalog and of its source, a directory.
type options struct {
	Directory string
	PollOnly  bool

	Scripts catalog.Builder

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

// start is like open, but does not wait for the files.
func start(t testing.TB, o options) *catalog.Catalog {
	t.Helper()
	return with(t, o, catalog.Start)
}

func with(t testing.TB, o options, begin func(context.Context, catalog.Options) (*catalog.Catalog, error)) *catalog.Catalog {
	t.Helper()
	if o.Engine == nil {
		o.Engine = sandboxtest.Engine(t, sandbox.Config{DescribeFuel: sandboxtest.Briefly})
	}
	if o.Poll == 0 {
		o.Poll = 20 * time.Millisecond
	}
	return of(t, newDirectory(t, o), o, begin)
}

// The function of does what with does, for any kind of source.
func of(t testing.TB, s catalog.Source, o options, begin func(context.Context, catalog.Options) (*catalog.Catalog, error)) *catalog.Catalog {
	t.Helper()
	c, err := begin(t.Context(), catalog.Options{Sources: []catalog.Sourced{{Source: s, Record: o.Record, Scripts: o.Scripts}}, Engine: o.Engine, Limits: o.Limits, Policy: o.Policy,
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

// closeNow closes a catalog, so that its log is complete: a line is written after the generation that it is about.
func closeNow(t testing.TB, c *catalog.Catalog) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// await waits for a generation for which ok returns true.
func await(t testing.TB, c *catalog.Catalog, what string, good func(*wasmtools.Generation) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !good(c.Table().Current()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s\n%s", what, describe(c.Table().Current()))
		}
	}
}

// awaitTable waits until exactly these tools are served and exactly these files (by base name) are refused.
func awaitTable(t testing.TB, c *catalog.Catalog, tools, refused []string) {
	t.Helper()
	await(t, c, fmt.Sprintf("tools %q, refused %q", tools, refused), func(g *wasmtools.Generation) bool {
		return slices.Equal(paths(g), tools) && slices.Equal(sources(g), refused)
	})
}

// awaitAnswer waits until the tool at path gives this answer.
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
