package server_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// keeping is a manifest for testdata/capability/kv.wat, which uses its input as the key.
const keeping = `{"abi":1,"namespace":"NAMESPACE","needs":{"kv":true},"tools":[{"name":"get","description":"Reads.","parameters":{"type":"object"}},
	{"name":"gets","description":"Reads often.","parameters":{"type":"object"}},{"name":"set","description":"Keeps.","parameters":{"type":"object"}}]}`

// TestState lets tools keep values from one server to the next. Only one server at a time can use a directory.
// Proves: State is whole and apart
func TestState(t *testing.T) {
	t.Parallel()
	c := settings(t)
	for _, namespace := range []string{"a", "b"} {
		module := sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/kv"), strings.Replace(keeping, "NAMESPACE", namespace, 1))
		testkit.Put(t, c.Tools.Directory, namespace+".wasm", module)
	}
	c.State.Directory = filepath.Join(t.TempDir(), "state")
	granted := changed(c, func(c *config.Config) {
		c.Grants = []config.Grant{{Match: "a/*", Rules: capability.Rules{"kv": &kv.Rule{Bytes: 1 << 20}}}, {Match: "b/*", Rules: capability.Rules{"kv": &kv.Rule{Bytes: 1 << 20}}}}
	})
	expect := func(r *running, path string, status int, want string) {
		t.Helper()
		if got, body, err := r.call(path, ""); err != nil || got != status || !strings.HasPrefix(body, want) {
			t.Errorf("%s answers %d %s (%v), want %d %s", path, got, body, err, status, want)
		}
	}
	first := start(t, c)
	expect(first, "/a/get", 503, `{"detail":"Tool /a/get was not granted what it needs: kv"`)
	if err := first.Reload(granted); err != nil {
		t.Fatal(err)
	}
	expect(first, "/a/get", 200, "0")
	expect(first, "/a/set", 200, "8")
	expect(first, "/a/get", 200, "116")
	expect(first, "/b/get", 200, "0")
	if _, err := core.Open(t.Context(), granted, core.Options{}); err == nil || !strings.Contains(err.Error(), "is in use by another process: stop that one, or name another directory under [state]") {
		t.Errorf("a second server of that directory: got %v", err)
	}
	first.stop()
	if err := first.result(); err != nil {
		t.Fatal(err)
	}
	second := start(t, granted)
	expect(second, "/a/get", 200, "116")
	lowered := changed(granted, func(c *config.Config) {
		c.Grants = []config.Grant{{Match: "**", Rules: capability.Rules{"kv": &kv.Rule{Bytes: 100}}}}
	})
	if err := second.Reload(lowered); err != nil {
		t.Fatal(err)
	}
	expect(second, "/a/set", 200, "8") // no larger than before
	expect(second, "/b/set", 200, `{"code":"quota"`)
	expect(second, "/b/get", 200, "0")
}

// TestDamagedState checks that a server does not start with a damaged state, and a reload does not switch to one.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	c := settings(t)
	damaged := t.TempDir()
	testkit.Put(t, damaged, "state.db", "not a state")
	granted := changed(c, func(c *config.Config) {
		c.State.Directory = damaged
		c.Grants = []config.Grant{{Match: "a/*", Rules: capability.Rules{"kv": &kv.Rule{Bytes: 1 << 20}}}}
	})
	const want = "state.db is not a state that this version can read"
	if _, err := core.Open(t.Context(), granted, core.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("start: got %v, want an error with %s", err, want)
	}
	r := start(t, c)
	if err := r.Reload(granted); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reload: got %v, want an error with %s", err, want)
	}
	if got := r.status("/shop/echo", ""); got != 200 {
		t.Errorf("a refused reload: %d", got)
	}
}

// TestBrokenState empties the state file of a running server, as a careless restore would. Calls are answered at once, the probe reports the damage,
// other tools work, and the server stops when it is told to.
func TestBrokenState(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the emulator handles page faults itself")
	c := settings(t)
	testkit.Put(t, c.Tools.Directory, "a.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/kv"), strings.Replace(keeping, "NAMESPACE", "a", 1)))
	c.State.Directory = t.TempDir()
	c.Grants = []config.Grant{{Match: "a/*", Rules: capability.Rules{"kv": &kv.Rule{Bytes: 1 << 20}}}}
	r := start(t, c)
	expect := func(path, want string) {
		t.Helper()
		if _, body, err := r.call(path, ""); err != nil || !strings.HasPrefix(body, want) {
			t.Errorf("%s answers %s (%v), want %s", path, body, err, want)
		}
	}
	ready := func(want string) {
		t.Helper()
		answer, err := http.Get("http://" + r.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); string(body) != want || answer.StatusCode != 200 || err != nil {
			t.Errorf("/readyz answers %d %s %v, want 200 %s", answer.StatusCode, body, err, want)
		}
	}
	expect("/a/set", "8")
	r.log.Wait(t, `"msg":"all tools are compiled"`)
	ready(`{"status":"ready","compiled":true}`)
	if err := os.Truncate(filepath.Join(c.State.Directory, "state.db"), 0); err != nil {
		t.Skip(err) // not every system lets a mapped file be emptied
	}
	for range 3 {
		for _, path := range []string{"/a/get", "/a/gets", "/a/set"} {
			expect(path, `{"code":"unavailable"`)
		}
	}
	ready(`{"status":"ready","state":"unavailable","compiled":true}`)
	if got := r.status("/shop/echo", ""); got != 200 {
		t.Errorf("a tool that keeps nothing answers %d", got)
	}
	r.stop()
	if err := r.result(); err == nil || !strings.Contains(err.Error(), "restart the server") {
		t.Errorf("the server ends with %v, want an error that says what is wrong with its state", err)
	}
}
