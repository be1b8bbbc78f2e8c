package core_test

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

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// TestMain fails when goroutines outlive the tests: every service has been closed by then.
func TestMain(m *testing.M) { testkit.Main(m, "wasmtools/service", "internal/catalog") }

// guest returns a module with these tools, each of which returns its arguments.
func guest(t *testing.T, namespace string, tools ...string) []byte {
	t.Helper()
	var list []string
	for _, name := range tools {
		list = append(list, fmt.Sprintf(`{"name":%q,"description":"Echoes.","parameters":{"type":"object"}}`, name))
	}
	return sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), fmt.Sprintf(`{"abi":1,"namespace":%q,"tools":[%s]}`, namespace, strings.Join(list, ",")))
}

// open opens a service, which is closed with the test.
func open(t *testing.T, c *config.Config, o core.Options) *core.Service {
	t.Helper()
	s, err := core.Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	})
	return s
}

// await waits until a service has these tools.
func await(t *testing.T, s *core.Service, want ...string) {
	t.Helper()
	news := make(chan struct{}, 1)
	defer s.Table.Subscribe(func(*wasmtools.Generation) {
		select {
		case news <- struct{}{}:
		default:
		}
	})()
	for deadline := time.After(time.Minute); ; {
		var got []string
		for _, route := range s.Table.Tools() {
			if route.Enabled {
				got = append(got, route.Path)
			}
		}
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-news:
		case <-deadline:
			t.Fatalf("got the tools %q, want %q; refused are %v", got, want, s.Table.Current().Refused())
		}
	}
}

// call calls a tool.
func call(t *testing.T, s *core.Service, path, arguments string) string {
	t.Helper()
	route, err := invoke.Find(s.Table.Current(), path, wasmtools.Self())
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Invoker.Call(t.Context(), route, &wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Self()})
	if err != nil {
		t.Fatal(err)
	}
	return string(result)
}

// sources returns a configuration of some directories, none of which exists yet.
func sources(t *testing.T, names ...string) (c *config.Config, directories []string) {
	t.Helper()
	dir := t.TempDir()
	c = config.Default()
	c.Tools.Directory, c.Tools.CacheDir = "", filepath.Join(dir, "cache")
	for _, name := range names {
		directories = append(directories, filepath.Join(dir, name))
		c.Sources = append(c.Sources, config.Source{Directory: filepath.Join(dir, name)})
	}
	return c, directories
}

// TestSources serves two directories whose tools have the same path, while a third one does not exist yet, and puts another configuration in force.
func TestSources(t *testing.T) {
	t.Parallel()
	c, at := sources(t, "one", "two", "three")
	testkit.Put(t, at[0], "a.wasm", guest(t, "shop", "echo"))
	testkit.Put(t, at[1], "a.wasm", guest(t, "shop", "echo"))
	testkit.Put(t, at[1], "b.wasm", guest(t, "bank", "echo"))
	log := &testkit.Log{}
	s := open(t, c, core.Options{Logger: slog.New(slog.NewJSONHandler(log, nil))})
	await(t, s, "/bank/echo", "/shop/echo")
	if err := s.Catalog.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if route, ok := s.Table.Current().Lookup("/shop/echo"); !ok || route.Tool.Source != filepath.Join(at[0], "a.wasm") {
		t.Errorf("got %+v, want the tool of the first directory", route.Tool)
	}
	refused := map[string]string{}
	for _, r := range s.Table.Current().Refused() {
		refused[r.Source] = r.Err.Error()
	}
	if !strings.Contains(refused[filepath.Join(at[1], "a.wasm")], "/shop/echo is taken") || refused[at[2]] == "" || len(refused) != 2 {
		t.Errorf("refused: got %q, want a.wasm of the second directory, and the third", refused)
	}
	if got := call(t, s, "/bank/echo", `{"n":1}`); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}

	next := *c
	next.Tools.Disabled = []string{"bank"}
	made, err := s.Configure(&next)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(made); err != nil {
		t.Fatal(err)
	}
	if s.InForce() != made {
		t.Error("another configuration is in force")
	}
	await(t, s, "/shop/echo")
	testkit.Put(t, at[2], "c.wasm", guest(t, "zoo", "echo"))
	await(t, s, "/shop/echo", "/zoo/echo")
	if err := os.Remove(filepath.Join(at[0], "a.wasm")); err != nil {
		t.Fatal(err)
	}
	await(t, s, "/shop/echo", "/zoo/echo")
	if !strings.Contains(log.String(), `"file":"`+at[2]+`"`) {
		t.Errorf("the log does not mention the third directory:\n%s", log)
	}
}

// TestScriptsOfSources serves scripts only in the directories whose sources allow them.
func TestScriptsOfSources(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads scripts of three sources several times: not with -short")
	}
	enginetest.Need(t, "python")
	c, at := sources(t, "one", "two", "three")
	c.Sources[0].Scripts, c.Sources[1].Scripts = true, true
	for i, dir := range at {
		testkit.Put(t, dir, fmt.Sprintf("s%d/hi.py", i), "from _words import WORD\nfrom toolsrv import tool\n\n@tool\ndef hi() -> str:\n    \"\"\"Greets.\"\"\"\n    return WORD\n")
		testkit.Put(t, dir, fmt.Sprintf("s%d/_words.py", i), fmt.Sprintf("WORD = 'hi %d'\n", i))
	}
	s := open(t, c, core.Options{})
	await(t, s, "/s0/hi", "/s1/hi")
	for i := range 2 {
		if got, want := call(t, s, fmt.Sprintf("/s%d/hi", i), "{}"), fmt.Sprintf(`"hi %d"`, i); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestNoSource refuses a configuration with no directory that can be used.
func TestNoSource(t *testing.T) {
	t.Parallel()
	c, at := sources(t, "one", "two")
	if s, err := core.Open(t.Context(), c, core.Options{}); err == nil {
		s.Close()
		t.Error("no error")
	} else if !strings.Contains(err.Error(), "there is no tools directory "+at[0]) || !strings.Contains(err.Error(), at[1]) {
		t.Errorf("got %v", err)
	}
}

// TestTools has functions of the program beside files, and refuses a file that wants the path of one.
func TestTools(t *testing.T) {
	t.Parallel()
	c, at := sources(t, "one")
	testkit.Put(t, at[0], "a.wasm", guest(t, "shop", "echo"))
	own := gotool.New("shop/echo", "Counts.", func(context.Context, struct{}) (int, error) { return 7, nil })
	s := open(t, c, core.Options{Tools: []*wasmtools.Tool{own}})
	if err := s.Catalog.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "/shop/echo", "{}"); !json.Valid([]byte(got)) || got != "7" {
		t.Errorf("got %s", got)
	}
	if refused := s.Table.Current().Refused(); len(refused) != 1 {
		t.Errorf("refused: got %v", refused)
	}
}

// TestPack packs a module, and also things that must be refused because the service could not serve them.
func TestPack(t *testing.T) {
	t.Parallel()
	c, at := sources(t, "tools")
	if err := os.Mkdir(at[0], 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, c, core.Options{})
	guest := testkit.Fixture(t, "e2e/guest")
	const manifest = `{"abi":1,"namespace":"x","tools":[{"name":"echo","description":"Echoes.","parameters":{"type":"object"}}]}`
	packed, err := s.Pack(t.Context(), guest, []byte(manifest))
	if err != nil || !bytes.HasPrefix(packed, []byte("\x00asm")) || !bytes.Contains(packed, []byte("Echoes.")) || bytes.Contains(guest, []byte("Echoes.")) {
		t.Errorf("got %d bytes and %v", len(packed), err)
	}
	for name, c := range map[string]struct{ module, manifest []byte }{
		"no module":          {nil, []byte(manifest)},
		"half a module":      {guest[:len(guest)/2], []byte(manifest)},
		"no manifest at all": {guest, nil},
		"no JSON":            {guest, []byte("{")},
		"a reserved path":    {guest, []byte(`{"abi":1,"namespace":"admin","tools":[{"name":"echo","description":"Echoes.","parameters":{"type":"object"}}]}`)},
	} {
		if packed, err := s.Pack(t.Context(), c.module, c.manifest); err == nil || packed != nil {
			t.Errorf("%s: got %d bytes and %v", name, len(packed), err)
		}
	}
}
