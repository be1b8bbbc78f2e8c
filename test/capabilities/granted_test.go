// Package capabilities_test lets guests in all languages try to reach things that they have declared and were granted, and things that they have not.
package capabilities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/capability/files"
	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/capability/settings"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/projecttest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// A world has the things that tools can reach: a server, a secret, a directory and another tool.
type world struct {
	url, key, folder string
	visits           atomic.Int64 // of the server
	calls            atomic.Int64 // the calls of the other tool
	table            *wasmtools.RouteTable
}

const (
	secretText = "the secret of the test"
	fileText   = "the file of the test"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{folder: t.TempDir()}
	s := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, _ *http.Request) {
		w.visits.Add(1)
		fmt.Fprint(a, "here")
	}))
	t.Cleanup(s.Close)
	w.url = s.URL + "/v1/"
	w.key = testkit.Put(t, t.TempDir(), "key", []byte(secretText))
	testkit.Put(t, w.folder, "a.txt", []byte(fileText))
	convert := gotool.New("convert", "Converts.", func(context.Context, struct{}) (int, error) {
		w.calls.Add(1)
		return 7, nil
	})
	convert.Namespace = "units"
	var err error
	if w.table, err = wasmtools.NewRouteTable(convert); err != nil {
		t.Fatal(err)
	}
	return w
}

// A kind is one capability: what to declare, and what to grant, in the world.
type kind struct {
	need    func(w *world) wasmtools.Needs
	grant   func(w *world) capability.Rule
	missing func(w *world) string // the description of a tool without the grant
}

// schema is a schema of settings with a required member.
var schema = json.RawMessage(`{"type":"object","required":["limit"],"properties":{"limit":{"type":"integer"}}}`)

var kinds = map[string]kind{
	"http": {
		func(w *world) wasmtools.Needs { return wasmtools.Needs{"http": {Words: []string{w.url}}} },
		func(w *world) capability.Rule {
			return &httpcap.Rule{Granted: []string{w.url}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		},
		func(w *world) string { return "http " + w.url },
	},
	"kv": {
		func(*world) wasmtools.Needs { return wasmtools.Needs{"kv": {}} },
		func(*world) capability.Rule { return &kv.Rule{Bytes: 1 << 20} },
		func(*world) string { return "kv" },
	},
	"secrets": {
		func(*world) wasmtools.Needs { return wasmtools.Needs{"secrets": {Words: []string{"stripe_key"}}} },
		func(*world) capability.Rule { return &secrets.Rule{Visible: []string{"stripe_key"}} },
		func(*world) string { return "secrets stripe_key" },
	},
	"settings": {
		func(*world) wasmtools.Needs { return wasmtools.Needs{"settings": {Object: schema}} },
		func(*world) capability.Rule { return &settings.Rule{Settings: json.RawMessage(`{"limit":1}`)} },
		func(*world) string { return "settings (limit: Field required)" },
	},
	"tools": {
		func(*world) wasmtools.Needs { return wasmtools.Needs{"tools": {Words: []string{"units/convert"}}} },
		func(*world) capability.Rule { return &tools.Rule{Tools: []string{"units/*"}} },
		func(*world) string { return "tools units/convert" },
	},
	"files": {
		func(*world) wasmtools.Needs { return wasmtools.Needs{"files": {Words: []string{"geo"}}} },
		func(w *world) capability.Rule { return &files.Rule{Directories: map[string]string{"geo": w.folder}} },
		func(*world) string { return "files geo" },
	},
}

// A probe calls one function of a capability.
type probe struct {
	tool, kind string
	arguments  string // in which URL stands for the world's address
	imports    string // the function of the raw guest that the probe stands for
}

var probes = []probe{
	{"http_send", "http", `{"method":"GET","url":"URL"}`, "toolsrv_http_v1.send"},
	{"kv_get", "kv", `{"key":"key"}`, "toolsrv_kv_v1.get"},
	{"kv_set", "kv", `{"key":"key","value":"value"}`, "toolsrv_kv_v1.set"},
	{"kv_delete", "kv", `{"key":"key"}`, "toolsrv_kv_v1.delete"},
	{"kv_list", "kv", `{}`, "toolsrv_kv_v1.list"},
	{"secret_read", "secrets", `{"name":"stripe_key"}`, "toolsrv_secrets_v1.read"},
	{"settings_read", "settings", `{}`, "toolsrv_settings_v1.read"},
	{"tool_call", "tools", `{"path":"units/convert"}`, "toolsrv_tools_v1.call"},
	{"file_read", "files", `{"folder":"geo","path":"a.txt"}`, "wasi_snapshot_preview1.path_open"},
	{"file_stat", "files", `{}`, "wasi_snapshot_preview1.path_filestat_get"},
}

// A language makes the module of a guest with the tools of the probes, or skips the test. lacks names the tools that it does not have.
type language struct {
	name   string
	module func(t *testing.T) []byte
	lacks  []string
}

var languages = []language{
	{"WAT", func(t *testing.T) []byte {
		var tools []string
		for _, p := range probes {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Tries it.","parameters":{"type":"object"}}`, p.tool))
		}
		return sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/reach"), `{"abi":1,"namespace":"reach","tools":[`+strings.Join(tools, ",")+`]}`)
	}, nil},
	{"Go", func(t *testing.T) []byte {
		return testkit.Guest(t, "../../sdk/go", "go", "build", "-buildmode=c-shared", "-o", "@", "./internal/reach")
	}, []string{"file_stat"}},
	{"TinyGo", buildTinyGo, []string{"file_stat"}},
	{"Rust", buildRust, []string{"file_stat"}},
	{"Python", func(t *testing.T) []byte { return buildScript(t, "python", "../../sdk/python/conformance/reach.py") }, []string{"file_stat"}},
	{"JavaScript", func(t *testing.T) []byte { return buildScript(t, "javascript", "../../sdk/js/conformance/reach.js") }, []string{"file_stat"}},
}

// buildTinyGo builds the guest in Go with TinyGo, as toolsrv build does. That takes a minute, so make test-tinygo does it.
func buildTinyGo(t *testing.T) []byte {
	t.Helper()
	testkit.NeedBuild(t)
	if os.Getenv("TOOLSRV_TINYGO") == "" {
		t.Skip("builds the guest with TinyGo: make test-tinygo does")
	}
	if _, err := exec.LookPath("tinygo"); err != nil {
		t.Skip("tinygo is not installed, so nothing was built with it")
	}
	sdk, err := filepath.Abs("../../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testkit.Put(t, dir, "main.go", testkit.Read(t, sdk, "internal/reach/main.go"))
	testkit.Put(t, dir, "tinygo.go", "//toolsrv:tinygo\n\npackage main\n")
	testkit.Put(t, dir, "go.mod", fmt.Sprintf("module example.com/reach\n\ngo 1.24\n\nrequire github.com/toolsrv/toolsrv/sdk/go v0.1.0\n\nreplace github.com/toolsrv/toolsrv/sdk/go => %q\n", sdk))
	return projecttest.Compile(t, dir)
}

func buildRust(t *testing.T) []byte {
	testkit.NeedBuild(t, "cargo")
	build := exec.CommandContext(t.Context(), "./cargo.sh", "build", "--release", "--locked", "--package", "reach", "--target", "wasm32-wasip1")
	build.Dir = "../../sdk/rust"
	if out, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "target may not be installed") || strings.Contains(string(out), "unable to find library -lc") {
			t.Skip("the Rust target wasm32-wasip1 is not installed: make setup-rust")
		}
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return testkit.Read(t, "../../build/rust/wasm32-wasip1/release/reach.wasm")
}

func buildScript(t *testing.T, language, file string) []byte {
	enginetest.Need(t, language)
	module, _, err := script.Build(t.Context(), file, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// A state says what a tool declares, and what it was granted, relative to the kind that it tries.
type state struct {
	name string
	// declares and granted report whether a tool that tries the first kind declares, or was granted, the second kind.
	declares, granted func(tried, kind string) bool
	match             string
	want              outcome
}

// An outcome is the result of a call.
type outcome string

const (
	works   outcome = "it works"
	refused outcome = "the function refuses the use"
	missing outcome = "the tool can't be called"
)

func always(string, string) bool     { return true }
func never(string, string) bool      { return false }
func same(tried, kind string) bool   { return tried == kind }
func others(tried, kind string) bool { return tried != kind }

var states = []state{
	{"neither", never, never, "reach/*", refused},
	{"declared", same, never, "reach/*", missing},
	{"granted", never, always, "reach/*", refused},
	{"both", same, same, "reach/*", works},
	{"declared and granted, like all other kinds", always, always, "reach/*", works},
	{"declared, and granted to another tool", same, same, "other/*", missing},
	{"declared, and all other kinds granted", same, others, "reach/*", missing},
	{"granted, and all other kinds declared and granted", others, always, "reach/*", refused},
}

// TestNothingWithoutBoth makes guests in each language call each function of each capability. A function must work only if the tool declares the
// need and was granted it, whatever else it declares and was granted. The host decides that and knows no languages, so one guest is tried in all
// states. The other guests are tried in two states, which show that their SDKs pass on what the host allows and what it refuses.
func TestNothingWithoutBoth(t *testing.T) {
	t.Parallel()
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			t.Parallel()
			g := newGuest(t, newWorld(t), language.module(t))
			for _, p := range probes {
				if slices.Contains(language.lacks, p.tool) {
					continue
				}
				for _, s := range states {
					if language.name == "WAT" || s.name == "granted" || s.name == "both" {
						g.try(t, p, s)
					}
				}
			}
		})
	}
}

// A guest is a module whose manifest can be changed.
type guest struct {
	world    *world
	engine   *sandbox.Engine
	module   []byte
	manifest *manifest.Manifest
}

func newGuest(t *testing.T, w *world, module []byte) *guest {
	t.Helper()
	g := &guest{world: w, engine: sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir()}), module: module}
	m, err := toolfile.Load(g.engine, module, toolfile.Place{Folder: "reach"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close) // m stays open until the end of the test, and keeps the code that guests with other manifests share
	if err := m.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.manifest = m.Manifest()
	g.manifest.Needs = wasmtools.Needs{}
	for i := range g.manifest.Tools {
		g.manifest.Tools[i].Needs = wasmtools.Needs{}
	}
	return g
}

// try calls the tool of a probe in a state.
func (g *guest) try(t *testing.T, p probe, s state) {
	t.Helper()
	said := *g.manifest
	said.Tools = slices.Clone(g.manifest.Tools)
	at := slices.IndexFunc(said.Tools, func(tool manifest.Tool) bool { return tool.Name == p.tool })
	if at < 0 {
		t.Fatalf("there is no tool %s", p.tool)
	}
	c, grant := config.Default(), config.Grant{Match: s.match, Rules: capability.Rules{}}
	c.Secrets.Files = map[string]string{"stripe_key": g.world.key}
	for name, k := range kinds {
		if s.declares(p.kind, name) {
			needs := k.need(g.world)
			if needs[name].Object != nil {
				said.Needs = needs
			} else {
				said.Tools[at].Needs = manifest.Joined(said.Tools[at].Needs, needs)
			}
		}
		if s.granted(p.kind, name) {
			grant.Rules[name] = k.grant(g.world)
		}
	}
	c.Grants = []config.Grant{grant}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	m, err := toolfile.Load(g.engine, sandboxtest.WithManifest(t, g.module, text), toolfile.Place{Folder: "reach"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	invokes := invoker.New(invoker.Options{})
	b := broker.New(c, broker.Options{Table: func() *wasmtools.RouteTable { return g.world.table }, Invoker: invokes})
	grants, err := b.Make(c, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	l := limits.Limits{Timeout: time.Minute, Memory: 256 << 20}
	if err := m.Build(func(string) limits.Limits { return l }, grants); err != nil {
		t.Fatal(err)
	}
	tool := m.Tools()[at]
	visits, calls := g.world.visits.Load(), g.world.calls.Load()
	call := &wasmtools.Call{Arguments: []byte(strings.ReplaceAll(p.arguments, "URL", g.world.url)), Principal: wasmtools.Everybody()}
	result, err := invokes.Call(t.Context(), invoker.RouteTo(tool), call)
	if got := g.outcome(result, err, p); got != string(s.want) {
		t.Errorf("%s, %s: %s (%v), want that %s", p.tool, s.name, got, err, s.want)
	}
	if s.want == works {
		return
	}
	if s.want == missing && !strings.Contains(lacking.Of(tool), kinds[p.kind].missing(g.world)) {
		t.Errorf("%s, %s: missing %q, want %q", p.tool, s.name, lacking.Of(tool), kinds[p.kind].missing(g.world))
	}
	if g.world.visits.Load() != visits || g.world.calls.Load() != calls {
		t.Errorf("%s, %s: the use was refused, but it has reached the server or the other tool", p.tool, s.name)
	}
	if got := fmt.Sprint(string(result), err); strings.Contains(got, secretText) || strings.Contains(got, fileText) {
		t.Errorf("%s, %s: the use was refused, but got %s", p.tool, s.name, got)
	}
}

// outcome returns the outcome of a call.
func (g *guest) outcome(result []byte, err error, p probe) string {
	var failed *wasmtools.Error
	switch {
	case err == nil:
		return string(works)
	case !errors.As(err, &failed):
		return err.Error()
	case failed.Code == wasmtools.CodeToolNotGranted:
		return string(missing)
	case failed.Code == wasmtools.CodeToolError && failed.ToolCode == "not_granted":
		return string(refused)
	case failed.Code == wasmtools.CodeToolError && p.tool == "file_read": // in the language's own form
		return string(refused)
	}
	return fmt.Sprintf("%s %s: %s", failed.Code, failed.ToolCode, failed.Message)
}

// TestProbesAreAll checks that there is a probe for each function of a capability.
func TestProbesAreAll(t *testing.T) {
	t.Parallel()
	module, err := wasmbin.Parse(testkit.Fixture(t, "capability/reach"))
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]bool{}
	for _, i := range module.Imports() {
		imported[i.Module+"."+i.Name] = true
	}
	for _, set := range toolfile.Imports() {
		if slices.Contains(abi1.Modules(), set.Module) {
			continue
		}
		for _, f := range set.Functions {
			name := set.Module + "." + f.Name
			tried := f.Name == "answer_read" || slices.ContainsFunc(probes, func(p probe) bool { return p.imports == name })
			if !tried || !imported[name] {
				t.Errorf("%s is tried: %t, and imported by the raw guest: %t", name, tried, imported[name])
			}
		}
	}
}

// TestEach checks each capability of a server: its need, its package, its import module and the key that grants it have the same
// name; its page says how it is declared; a probe tries it; and each key of its grants has a row.
func TestEach(t *testing.T) {
	t.Parallel()
	page, keys := string(testkit.Read(t, "../../docs/capabilities.md")), string(testkit.Read(t, "../../docs/generated/keys.md"))
	owners := map[string]string{"match": "all"}
	for _, k := range builtin.Kinds() {
		if _, ok := kinds[k.Name]; !ok || !slices.ContainsFunc(probes, func(p probe) bool { return p.kind == k.Name }) {
			t.Errorf("no probe tries %s", k.Name)
		}
		if !strings.Contains(page, "| `\""+k.Name+"\": ") {
			t.Errorf("docs/capabilities.md does not say how %s is declared", k.Name)
		}
		if k.Suggest == nil || k.Review == nil {
			t.Errorf("%s is not suggested, or not reviewed", k.Name)
		}
		if of := path.Base(reflect.TypeOf(k.New()).Elem().PkgPath()); of != k.Name {
			t.Errorf("%s is in a package %s", k.Name, of)
		}
		if want := "toolsrv_" + k.Name + "_v1"; k.Set != nil && k.Module != want { // without a Set, its functions are those of WASI
			t.Errorf("the import module of %s is %s, want %s", k.Name, k.Module, want)
		}
		if k.New().Keys("")[k.Name] == nil {
			t.Errorf("no key of the name %s grants the capability", k.Name)
		}
		for name := range k.New().Keys("") {
			if owners[name] != "" {
				t.Errorf("the key %s belongs to both %s and %s", name, owners[name], k.Name)
			}
			if owners[name] = k.Name; !strings.Contains(keys, "\n| `"+name+"` | ") {
				t.Errorf("docs/generated/keys.md has no row for the key %s of %s", name, k.Name)
			}
			if !slices.ContainsFunc(k.New().Shown(), isShown(name)) {
				t.Errorf("a reload does not tell when %s changes", name)
			}
		}
	}
}

// isShown reports whether a key has that name.
func isShown(name string) func(key.Shown) bool {
	return func(s key.Shown) bool { return keys.Shown(s).Key() == name }
}
