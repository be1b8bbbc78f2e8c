// Package examples_test builds the example tools and the SDK's guests as their authors would, and runs them in the real
// host.
package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/directory"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// build builds the Go program pkg, seen from dir, as a module.
func build(t *testing.T, dir, pkg, to string) {
	t.Helper()
	testkit.NeedBuild(t)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-buildmode=c-shared", "-o", to, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
}

// serve opens a catalog on a directory, waits until it lists the tools at paths, and returns its table.
func serve(t *testing.T, folder string, logger *slog.Logger, paths ...string) *wasmtools.RouteTable {
	t.Helper()
	engine := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir(), Logger: logger})
	source, err := directory.Open(folder, directory.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), catalog.Options{
		Sources: []catalog.Sourced{{Source: source}},
		Engine:  engine,
		Logger:  logger,
		Limits:  func(string) limits.Limits { return limits.Limits{Timeout: 5 * time.Minute} }, // compiling takes seconds, and the machine may be busy
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), source.Close()); err != nil {
			t.Error(err)
		}
	})
	changed := make(chan struct{}, 1)
	stop := c.Table().Subscribe(func(*wasmtools.Generation) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	for {
		missing := ""
		for _, p := range paths {
			if _, ok := c.Table().Lookup(p); !ok {
				missing = p
			}
		}
		for _, r := range c.Table().Current().Refused() {
			t.Fatalf("%s is refused: %v", r.Source, r.Err)
		}
		if missing == "" {
			return c.Table()
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("the catalog does not list %s", missing)
		}
	}
}

// call calls a tool as the HTTP service does.
func call(t *testing.T, table *wasmtools.RouteTable, path, arguments string) (string, *wasmtools.Error) {
	t.Helper()
	return callWithin(t.Context(), t, table, path, arguments)
}

func callWithin(ctx context.Context, t *testing.T, table *wasmtools.RouteTable, path, arguments string) (string, *wasmtools.Error) {
	t.Helper()
	self := wasmtools.Self()
	route, err := invoke.Find(table.Current(), path, self)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	result, err := invoker.New(invoker.Options{}).Call(ctx, route, &wasmtools.Call{Arguments: []byte(arguments), Principal: self})
	if err == nil {
		return string(result), nil
	}
	var e *wasmtools.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: got the error %v, want one for the client", path, err)
	}
	return "", e
}

func same(a, b string) bool {
	var x, y any
	err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y))
	return err == nil && reflect.DeepEqual(x, y)
}

// goExamples returns the folders below examples with a Go tool that needs no grant.
func goExamples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*/main.go")
	if err != nil || len(files) < 7 {
		t.Fatalf("got %q, %v, want the examples in Go", files, err)
	}
	var names []string
	for _, f := range files {
		if name := filepath.Base(filepath.Dir(f)); !slices.Contains(granted, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestExamples(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	for _, name := range goExamples(t) {
		file := filepath.Join(tools, name+".wasm")
		build(t, "../../examples", "./"+name, file)
		checkModule(t, file)
	}
	buildPlain(t, tools)
	table := serve(t, tools, nil, "/csv/query", "/fuzzy/distance", "/math/add", "/math/divide", "/net/cidr", "/regex/extract", "/regex/replace", "/template/render",
		"/text/stats", "/time/add", "/time/convert", "/time/difference", "/time/now", "/units/convert", "/units/list")
	checkManifests(t, table)
	t.Run("readmes", func(t *testing.T) { checkReadmes(t, table, ".go", ".c") })
	t.Run("plain", func(t *testing.T) { checkPlain(t, table) })
	t.Run("error", func(t *testing.T) {
		t.Parallel()
		_, err := call(t, table, "/math/divide", `{"dividend": 1, "divisor": 0}`)
		if err == nil || err.Code != wasmtools.CodeToolError || err.ToolCode != "division_by_zero" || string(err.Data) != `{"dividend":1}` {
			t.Errorf("got %+v, want a tool error with the code division_by_zero", err)
		}
	})
	checkHard(t, table)
}

// checkManifests makes the calls in the manifests' examples, except for tools without the grants that they need.
func checkManifests(t *testing.T, table *wasmtools.RouteTable) {
	checkDocument(t, table)
	for _, route := range table.Tools() {
		if said := route.Tool.Annotations; route.Tool.Title == "" || said.ReadOnly == nil || said.OpenWorld == nil {
			t.Errorf("%s has no title or no annotations", route.Tool.Path())
		}
		if len(route.Tool.Examples) == 0 {
			t.Errorf("%s has no examples", route.Tool.Path())
		}
		if len(route.Tool.Missing) > 0 {
			continue
		}
		for i, example := range route.Tool.Examples {
			t.Run(fmt.Sprintf("%s/%d", route.Tool.Path(), i+1), func(t *testing.T) {
				t.Parallel()
				got, err := call(t, table, route.Tool.Path(), string(example.Arguments))
				if err != nil || example.Result != nil && !same(got, string(example.Result)) {
					t.Errorf("%s: got %s, %v, want %s", example.Arguments, got, err, example.Result)
				}
			})
		}
	}
}

// checkHard calls the tools with arguments that are large, deep or costly.
func checkHard(t *testing.T, table *wasmtools.RouteTable) {
	for _, test := range []struct{ name, path, arguments, want string }{
		{"a megabyte of numbers", "/text/stats", fmt.Sprintf(`{"text": %q}`, numbers(1<<20-300)), `"sentences":1,`},
		{"a megabyte of cells", "/csv/query", fmt.Sprintf(`{"csv": "a,b\n%s", "limit": 1, "sort": [{"column": "b"}]}`, strings.Repeat(`1,2\n`, 200_000)), `"total":200000`},
		{"a megabyte of rows", "/csv/query", fmt.Sprintf(`{"csv": "a\n%s", "limit": 10000}`, strings.Repeat(`1\n`, 340_000)), `"next_offset":10000`},
		{"a megabyte of commas", "/csv/query", fmt.Sprintf(`{"csv": %q}`, strings.Repeat(",", 1<<20-300)), `!more than 10000 cells`},
		{"a megabyte of quotes", "/csv/query", fmt.Sprintf(`{"csv": "%s"}`, strings.Repeat(`\"`, 500_001)), `!Line 1`},
		{"a match at every place in a megabyte", "/regex/extract", fmt.Sprintf(`{"pattern": "((((x*))))", "text": %q, "limit": 10000}`, strings.Repeat("a", 1<<20-300)), `"more":true`},
		{"many replaced", "/regex/replace", fmt.Sprintf(`{"pattern": "a", "replacement": "b", "text": %q}`, strings.Repeat("a", 100_000)), `"count":100000`},
		{"a costly expression", "/regex/extract", fmt.Sprintf(`{"pattern": "(?:a?){1000}[ab]{0,1000}x$", "text": %q}`, strings.Repeat("a", 300)+"b"), `"more":false`},
		{"a deep expression", "/regex/extract", `{"pattern": "` + strings.Repeat("(a", 30) + strings.Repeat(")*", 30) + `", "text": "aaaa"}`, `"more":false`},
		{"a loop in a template", "/template/render", `{"template": "{{range 1000000000}}{{end}}"}`, `!more than 100000 steps`},
		{"a template that calls itself", "/template/render", `{"template": "{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}"}`, `!more than 50 levels deep`},
		{"a large result of a template", "/template/render", `{"template": "{{range 50000}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{end}}", "max_bytes": 2000000}`, `xxxxxxxxxx`},
		{"a template of a megabyte of data", "/template/render", fmt.Sprintf(`{"template": "{{len .a}}", "data": {"a": [%s0]}}`, strings.Repeat("0,", 500_000)), `"500001"`},
		{"templates within templates", "/template/render", fmt.Sprintf(`{"template": "%s"}`, nested(45)), `"xx`},
		{"far dates", "/time/difference", `{"from": "0001-01-01", "to": "9999-12-31 23:59:59"}`, `"years":9998,`},
		{"many business days", "/time/add", `{"time": "2026-01-01", "business_days": 100000}`, `"2409-`},
	} {
		if _, ok := table.Lookup(test.path); !ok {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, table, test.path, test.arguments)
			if want, fails := strings.CutPrefix(test.want, "!"); fails {
				if err == nil || err.Code != wasmtools.CodeToolError || !strings.Contains(err.Message, want) {
					t.Errorf("got %.200s, %v, want a tool error with %q", got, err, want)
				}
			} else if err != nil || !strings.Contains(got, want) {
				t.Errorf("got %.200s, %v, want %q in it", got, err, want)
			}
		})
	}
}

// nested returns templates that call each other n levels deep, each within loops and conditions.
func nested(n int) string {
	out := &strings.Builder{}
	for i := range n {
		fmt.Fprintf(out, `{{define \"%d\"}}{{range 1}}{{if true}}{{with 1}}x{{template \"%d\"}}{{end}}{{end}}{{end}}{{end}}`, i, i+1)
	}
	fmt.Fprintf(out, `{{define \"%d\"}}x{{end}}{{template \"0\"}}`, n)
	return out.String()
}

// numbers returns about n bytes of text, which consists of numbers.
func numbers(n int) string {
	words := &strings.Builder{}
	for i := 0; words.Len() < n; i++ {
		fmt.Fprintf(words, "%d ", i)
	}
	return words.String()
}

// checkModule checks that a module has the exports of ABI 1, and imports only from the two modules that the host offers.
func checkModule(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasmbin.Parse(content)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	exports := map[string]string{}
	for _, e := range m.Exports() {
		exports[e.Name] = e.Kind.String()
	}
	want := map[string]string{
		"memory": "memory", "_initialize": "function",
		"toolsrv_call": "function", "toolsrv_warm": "function", "toolsrv_describe": "function",
	}
	if !reflect.DeepEqual(exports, want) {
		t.Errorf("%s: got the exports %v, want %v", file, exports, want)
	}
	for _, i := range m.Imports() {
		if i.Module != "toolsrv_v1" && i.Module != "wasi_snapshot_preview1" {
			t.Errorf("%s imports %s.%s, which no host offers", file, i.Module, i.Name)
		}
	}
}

// TestGuest tries things that only guests in Go can do in a call. The conformance kit tries everything else.
func TestGuest(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	build(t, "../../sdk/go", "./internal/guest", filepath.Join(tools, "guest.wasm"))
	var log testkit.Log
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	table := serve(t, tools, logger, "/guest/tree")

	for _, test := range []struct{ tool, arguments, want string }{
		{"tree", `{"name": "a", "kids": [{"name": "b"}]}`, `{"name":"a","kids":[{"name":"b"}]}`},
		{"log", `{}`, `{}`},
	} {
		if got, err := call(t, table, "/guest/"+test.tool, test.arguments); err != nil || got != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.tool, got, err, test.want)
		}
	}
	got, failed := call(t, table, "/guest/context", `{}`)
	if seconds, err := strconv.ParseFloat(got, 64); failed != nil || err != nil || seconds <= 1 || seconds > 300 {
		t.Errorf("context: got %s, %v, want what is left of the call's five minutes", got, failed)
	}
	for tool, want := range map[string]wasmtools.Error{ // an error whose text contains its Message
		"wrap":     {Code: wasmtools.CodeToolError, Message: "row 3: It is taken.", Status: 409, ToolCode: "taken", Data: json.RawMessage("[1,2]")},
		"nan":      {Code: wasmtools.CodeToolBadOutput},
		"nan_data": {Code: wasmtools.CodeToolBadOutput},
		"exit":     {Code: wasmtools.CodeToolTrapped},
	} {
		got, err := call(t, table, "/guest/"+tool, `{}`)
		if err == nil || err.Code != want.Code || !strings.Contains(err.Message, want.Message) || err.Status != want.Status ||
			err.ToolCode != want.ToolCode || !bytes.Equal(err.Data, want.Data) {
			t.Errorf("%s: got %s, %+v, want %+v", tool, got, err, want)
		}
	}
	lines := log.String()
	for _, want := range []string{
		`"level":"DEBUG".*"d 1"`, `"slog n=2"`, `stdout`, `stderr`,
		`the result can't be written as JSON: json: unsupported value: NaN`, `the data of an error can't be written as JSON`,
	} {
		if !regexp.MustCompile(want).MatchString(lines) {
			t.Errorf("the log has no line with %s:\n%s", want, lines)
		}
	}
}

// TestRefused checks that the author of a module that can't be described is told why.
func TestRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "refused.wasm")
	build(t, "../../sdk/go", "./internal/refused", file)
	content := testkit.Read(t, file)
	program := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir()}), content)
	if err := program.Compile(t.Context()); err != nil { // describing a module may take longer than the time limit
		t.Fatal(err)
	}
	got, err := program.Describe(t.Context())
	const want = `tool "wait": arguments.items[].done: chan bool is a chan, which JSON can't hold`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %s, %v, want an error with %s", got, err, want)
	}
}
