package catalog_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

func TestOpenFails(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	full := t.TempDir()
	testkit.Put(t, full, "a.wasm", version(t, "v0001", "", "a"))
	for _, c := range []struct {
		name string
		ctx  context.Context
		o    catalog.Options
		want string
	}{
		{"no source", t.Context(), catalog.Options{Engine: engine}, "Options.Sources is empty"},
		{"a nil source", t.Context(), catalog.Options{Engine: engine, Sources: []catalog.Sourced{{}}}, "one of Options.Sources is nil"},
		{"a source twice", t.Context(), catalog.Options{Engine: engine, Sources: []catalog.Sourced{{Source: newMemory()}, {Source: newMemory()}}}, `the source "memory" is listed twice`},
		{"no engine", t.Context(), catalog.Options{Sources: []catalog.Sourced{{Source: newDirectory(t, options{Directory: t.TempDir()})}}}, "Options.Engine is nil"},
		{"cancelled", cancelled, catalog.Options{Engine: engine, Sources: []catalog.Sourced{{Source: newDirectory(t, options{Directory: full})}}}, "context canceled"},
	} {
		got, err := catalog.Open(c.ctx, c.o)
		if err == nil {
			got.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// TestOpen checks which tools are served and which files are refused when Open returns.
func TestOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		files          map[string][]byte
		tools, refused []string
	}{
		{"nothing", nil, nil, nil},
		{"top level", map[string][]byte{"a.wasm": version(t, "v0001", "", "a")}, []string{"/a"}, nil},
		{"several tools", map[string][]byte{"m.wasm": version(t, "v0001", "", "b", "a")}, []string{"/a", "/b"}, nil},
		{"folders are namespaces", map[string][]byte{"math/more/a.wasm": version(t, "v0001", "", "add")}, []string{"/math/more/add"}, nil},
		{"the manifest's namespace wins", map[string][]byte{"no name/a.wasm": version(t, "v0001", "math", "add")}, []string{"/math/add"}, nil},
		{"a folder named like a module", map[string][]byte{"x.wasm/a.wasm": version(t, "v0001", "n", "add")}, []string{"/n/add"}, nil},
		{"other names", map[string][]byte{
			"a.txt": []byte("x"), ".a.wasm": []byte("x"), "a.wasm~": []byte("x"), "a.WASM": []byte("x"), "a.wasm.tmp": []byte("x"),
			".git/a.wasm": []byte("x"), "old~/a.wasm": []byte("x"), "new.tmp/a.wasm": []byte("x"),
		}, nil, nil},
		{"a refused file among good ones", map[string][]byte{"a.wasm": []byte("no module"), "b.wasm": version(t, "v0001", "", "b")},
			[]string{"/b"}, []string{"a.wasm"}},
		{"the first by path wins", map[string][]byte{"b/x.wasm": version(t, "v0001", "n", "add"), "a/x.wasm": version(t, "v0002", "n", "add", "sub")},
			[]string{"/n/add", "/n/sub"}, []string{"x.wasm"}},
		{"one conflict refuses the whole file", map[string][]byte{"a.wasm": version(t, "v0001", "", "one"), "b.wasm": version(t, "v0002", "", "one", "two")},
			[]string{"/one"}, []string{"b.wasm"}},
		{"as deep as is allowed", map[string][]byte{strings.Repeat("d/", 16) + "a.wasm": version(t, "v0001", "n", "a")}, []string{"/n/a"}, nil},
		{"deeper", map[string][]byte{strings.Repeat("d/", 17) + "a.wasm": version(t, "v0001", "n", "a")}, nil, []string{"d"}},
	} {
		directory := t.TempDir()
		for name, content := range c.files {
			testkit.Put(t, directory, name, content)
		}
		g := open(t, options{Directory: directory}).Table().Current()
		if got := paths(g); !slices.Equal(got, c.tools) {
			t.Errorf("%s: got tools %q, want %q", c.name, got, c.tools)
		}
		if got := sources(g); !slices.Equal(got, c.refused) {
			t.Errorf("%s: got refused %q, want %q\n%s", c.name, got, c.refused, describe(g))
		}
	}
}

// TestRefused puts each bad file beside a good one. The bad one is refused with a message that says why and what to do, and the good one is served.
func TestRefused(t *testing.T) {
	t.Parallel()
	answer := testkit.Fixture(t, "catalog/answer")
	for _, c := range []struct {
		name, file string
		content    []byte
		want       []string
	}{
		{"garbage", "x.wasm", []byte("not a module"), []string{"wasm"}},
		{"empty", "x.wasm", nil, []string{"wasm"}},
		{"truncated", "x.wasm", version(t, "v0001", "", "x")[:200], []string{"are declared"}},
		{"no manifest", "x.wasm", answer, []string{manifest.Section, "toolsrv pack"}},
		{"two manifests", "x.wasm", append(version(t, "v0001", "", "x"), version(t, "v0001", "", "x")[len(answer):]...), []string{manifest.Section}},
		{"manifest is not JSON", "x.wasm", sandboxtest.WithManifest(t, answer, []byte("{")), []string{manifest.Section}},
		{"unknown member", "x.wasm", sandboxtest.WithManifest(t, answer, []byte(`{"abi":1,"tools":[],"colour":1}`)), []string{"colour"}},
		{"namespace climbs", "x.wasm", sandboxtest.WithManifest(t, answer, manifestText(t, "../etc", "x")), []string{`".."`}},
		{"folder is not a namespace", "a b/x.wasm", version(t, "v0001", "", "x"), []string{`"a b"`, "namespace"}},
		{"path belongs to the service", "x.wasm", version(t, "v0001", "", "tools"), []string{"/tools"}},
		{"invalid schema", "x.wasm", sandboxtest.WithManifest(t, answer, []byte(`{"abi":1,"tools":[{"name":"x","description":"Does x.","parameters":{"type":"object","minProperties":"one"}}]}`)), []string{"tool x", "parameters"}},
		{"invalid result schema", "x.wasm", sandboxtest.WithManifest(t, answer, []byte(`{"abi":1,"tools":[{"name":"x","description":"Does x.","parameters":{"type":"object"},"result":{"type":7}}]}`)), []string{"tool x", "result"}},
		{"two tools in a command", "x.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/command"), manifestText(t, "", "x", "y")), []string{"2 tools", "toolsrv_call"}},
		{"an import that is not offered", "x.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/refused/import_module"), manifestText(t, "", "x")), []string{"import"}},
		{"does not compile", "x.wasm", uncompilable(t, "x"), []string{"compiled"}},
		{"describes without end", "x.wasm", testkit.Fixture(t, "wat/hostile/describe_spin"), []string{"toolsrv_describe", "limit of 10000000 instructions"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			testkit.Put(t, directory, c.file, c.content)
			testkit.Put(t, directory, "good.wasm", version(t, "v0001", "", "good"))
			log := &testkit.Log{}
			cat := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo)})
			awaitTable(t, cat, []string{"/good"}, []string{"x.wasm"})
			why := reason(cat.Table().Current(), filepath.Join(directory, filepath.FromSlash(c.file)))
			for _, want := range c.want {
				if !strings.Contains(why, want) {
					t.Errorf("got reason %q, want one with %q", why, want)
				}
			}
			closeNow(t, cat)
			if n := log.Count("level=WARN", "x.wasm", "file refused"); n != 1 {
				t.Errorf("got %d warnings, want 1", n)
			}
		})
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	module := sandboxtest.WithManifest(t, testkit.Fixture(t, "catalog/answer"), []byte(`{"abi":1,"version":"2.0","tools":[{"name":"a","description":"Adds.",
		"parameters":{"type":"object","required":["x"]},"result":{"type":"string"},"examples":[{"arguments":{"x":1},"result":"v"}]}]}`))
	testkit.Put(t, directory, "n/a.wasm", module)
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo), Limits: func(path string) limits.Limits {
		if path != "/n/a" {
			t.Errorf("limits of %q were asked for", path)
		}
		return limits.Limits{Input: 77}
	}})
	r, ok := c.Table().Lookup("/n/a")
	if !ok {
		t.Fatal(describe(c.Table().Current()))
	}
	tool, digest := r.Tool, sha256.Sum256(module)
	for _, f := range []struct{ name, got, want string }{
		{"Namespace", tool.Namespace, "n"},
		{"Description", tool.Description, "Adds."},
		{"Version", tool.Version, "2.0"},
		{"Digest", tool.Digest, hex.EncodeToString(digest[:])},
		{"Source", tool.Source, filepath.Join(directory, "n", "a.wasm")},
		{"Parameters", string(tool.Parameters.JSON()), `{"type":"object","required":["x"]}`},
		{"Result", string(tool.Result.JSON()), `{"type":"string"}`},
		{"Examples", string(tool.Examples[0].Arguments), `{"x":1}`},
		{"answer", call(t, tool), "v0000"},
	} {
		if f.got != f.want {
			t.Errorf("%s: got %q, want %q", f.name, f.got, f.want)
		}
	}
	if tool.MaxInput != 77 {
		t.Errorf("got MaxInput %d, want 77", tool.MaxInput)
	}
	closeNow(t, c)
	if n := log.Count("tool added", "path=/n/a", "version=2.0", "digest="+tool.Digest[:12]); n != 1 {
		t.Errorf("got %d log lines of the tool, want 1", n)
	}
}

// TestDescribed shows that a module without a manifest is run to be described, and that no race decides which file gets a path.
func TestDescribed(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range []string{"c", "a", "b"} { // different files, each with the tool /told
		testkit.Put(t, directory, name+".wasm", patch(t, testkit.Fixture(t, "catalog/described"), "v0000", "v000"+name))
	}
	c := open(t, options{Directory: directory})
	awaitTable(t, c, []string{"/told"}, []string{"b.wasm", "c.wasm"})
	if err := c.Ready(); err != nil {
		t.Errorf("got Ready() = %v, want nil: every file is served or refused", err)
	}
	awaitAnswer(t, c, "/told", "v000a")
	// A manifest is known before anything is run, so it wins.
	testkit.Put(t, directory, "z.wasm", version(t, "v000z", "", "told"))
	c = open(t, options{Directory: directory})
	awaitTable(t, c, []string{"/told"}, []string{"a.wasm", "b.wasm", "c.wasm"})
	awaitAnswer(t, c, "/told", "v000z")
}

// TestOutcomes calls a tool for each way in which a call can end, and expects the service's code for it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	type row struct {
		fixture, tool string
		index         int
		input         string
		code          wasmtools.Code
	}
	rows := []row{
		{"wat/good/echo", "fail", 1, `{"message":"Gone.","code":"gone","status":410,"data":[1]}`, wasmtools.CodeToolError},
		{"wat/hostile/spin", "spin", 0, "{}", wasmtools.CodeToolTimeout},
		{"wat/hostile/recurse", "recurse", 0, "{}", wasmtools.CodeToolStack},
		{"wat/hostile/memory", "memory", 0, "{}", wasmtools.CodeToolMemory},
		{"wat/hostile/traps", "traps", 0, "{}", wasmtools.CodeToolTrapped},
		{"wat/hostile/output", "output", 0, "{}", wasmtools.CodeToolBadOutput},
		{"wat/good/echo", "large", 0, `{"x":"` + strings.Repeat("x", 2000) + `"}`, wasmtools.CodeInputTooLarge},
	}
	directory := t.TempDir()
	for _, r := range rows {
		names := []string{"f0", "f1"}[:r.index]
		for i := range names {
			names[i] = r.tool + names[i]
		}
		testkit.Put(t, directory, r.tool+".wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, r.fixture), manifestText(t, "", append(names, r.tool)...)))
	}
	c := open(t, options{Directory: directory, Limits: func(path string) limits.Limits {
		l := limits.Limits{Timeout: time.Minute, Input: 1000, Memory: 32 << 20}
		if path == "/spin" {
			l.Timeout = 100 * time.Millisecond
		}
		return l
	}})
	for _, r := range rows {
		route, ok := c.Table().Lookup("/" + r.tool)
		if !ok {
			t.Fatal(describe(c.Table().Current()))
		}
		_, err := route.Tool.Caller.Call(t.Context(), &wasmtools.Call{Arguments: []byte(r.input)})
		var failed *wasmtools.Error
		if !errors.As(err, &failed) {
			t.Errorf("%s: got %v, want an *Error", r.tool, err)
			continue
		}
		if failed.Code != r.code || failed.Message == "" {
			t.Errorf("%s: got code %s and message %q, want code %s", r.tool, failed.Code, failed.Message, r.code)
		}
		if r.tool == "fail" && (failed.Status != 410 || failed.ToolCode != "gone" || string(failed.Data) != "[1]" || failed.Message != "Gone.") {
			t.Errorf("fail: got %+v, want all that the tool said", failed)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	route, _ := c.Table().Lookup("/spin")
	_, err := route.Tool.Caller.Call(cancelled, &wasmtools.Call{Arguments: []byte("{}")})
	if failed := (*wasmtools.Error)(nil); !errors.As(err, &failed) || failed.Code != wasmtools.CodeCancelled {
		t.Errorf("a cancelled call: got %v, want code %s", err, wasmtools.CodeCancelled)
	}
}

func TestReconfigure(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "m.wasm", version(t, "v0001", "", "a", "b"))
	testkit.Put(t, directory, "z.wasm", version(t, "v0002", "", "a")) // waits
	c := open(t, options{Directory: directory, Policy: wasmtools.Policy{Disabled: []string{"a"}}})
	before := c.Table().Tools()
	if before[0].Enabled || !before[1].Enabled {
		t.Error("the policy of the options has no effect")
	}
	limits := func(path string) limits.Limits {
		if path == "/a" {
			return limits.Limits{Input: 9}
		}
		return limits.Limits{}
	}
	if err := c.Reconfigure(catalog.Configuration{Limits: limits, Policy: wasmtools.Policy{Disabled: []string{"b"}}}); err != nil {
		t.Fatal(err)
	}
	after := c.Table().Tools()
	if !after[0].Enabled || after[1].Enabled {
		t.Error("the new policy has no effect")
	}
	if got := after[0].Tool.MaxInput; got != 9 {
		t.Errorf("/a: got MaxInput %d, want 9", got)
	}
	if after[1].Tool != before[1].Tool {
		t.Error("/b was made again although its limits are the same")
	}
	if got := call(t, after[0].Tool); got != "v0001" {
		t.Errorf("got %q, want v0001", got)
	}
	remove(t, directory, "m.wasm")
	awaitTable(t, c, []string{"/a"}, nil)
	if got := c.Table().Tools()[0].Tool.MaxInput; got != 9 {
		t.Errorf("/a of the file that waited: got MaxInput %d, want 9", got)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	testkit.Put(t, directory, "b.wasm", testkit.Fixture(t, "wat/hostile/describe_spin"))
	c := start(t, options{Engine: endless(t), Directory: directory})
	awaitTable(t, c, []string{"/a"}, nil)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := c.Reconfigure(catalog.Configuration{}); err == nil {
		t.Error("a closed catalog was reconfigured")
	}
	if _, ok := c.Table().Lookup("/a"); !ok {
		t.Error("Close took the tools away")
	}
}

// TestThousand opens a large directory: Open lists it, and a change is served, before everything is compiled.
func TestThousand(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range fill(t, directory, 1000) {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	engine := sandboxtest.Engine(t, sandbox.Config{})
	c := open(t, options{Directory: directory, Engine: engine})
	if got := len(c.Table().Tools()); got != 1000 {
		t.Fatalf("got %d tools, want 1000", got)
	}
	testkit.Put(t, directory, "ns0/t500.wasm", version(t, "v9999", "", "t500"))
	awaitAnswer(t, c, "/ns0/t500", "v9999")
	if left := engine.State().Code[sandbox.CodeMissing]; left < 100 {
		t.Errorf("a new version waited until all but %d modules were compiled", left)
	}
}
