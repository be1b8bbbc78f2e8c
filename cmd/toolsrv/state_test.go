//go:build unix

package main_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// keepingTools returns the files of a site whose configuration names no directory for state: a tool that keeps something, and one that doesn't.
func keepingTools(t *testing.T) map[string][]byte {
	const manifest = `{"abi":1,"namespace":"a","needs":{"kv":true},"tools":[{"name":"get","description":"Reads.","parameters":{"type":"object"}},
		{"name":"gets","description":"Reads often.","parameters":{"type":"object"}},{"name":"set","description":"Keeps.","parameters":{"type":"object"}}]}`
	return map[string][]byte{
		"shop.wasm": guest(t, "shop", "1.0.0", "echo"),
		"a.wasm":    sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/kv"), manifest),
	}
}

const grantsKeys = "[[grant]]\nmatch = \"a/*\"\nkv = \"1MiB\"\n"

// TestStateDirectory checks where a service keeps its state by default: beside its configuration, or where systemd says. No file is made before
// something is stored.
// Proves: State is whole and apart
func TestStateDirectory(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	for _, test := range []struct {
		name   string
		config string
		given  string // STATE_DIRECTORY
		want   string
	}{
		{"beside the configuration", grantsKeys, "", ".toolsrv"},
		{"where systemd says", grantsKeys, "DIR/given", "given"},
		{"in the first of several", grantsKeys, "DIR/first:DIR/second", "first"},
		{"where the configuration says", grantsKeys + "[state]\ndirectory = \"named\"\n", "DIR/given", "named"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := site(t, test.config, keepingTools(t))
			kept := func() (all []string) {
				for _, pattern := range []string{"*/state.db", ".toolsrv/state.db"} {
					found, err := filepath.Glob(filepath.Join(dir, pattern))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, found...)
				}
				slices.Sort(all)
				return slices.Compact(all)
			}
			serve := func() *service {
				cmd := command("openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0")
				cmd.Env = append(cmd.Env, "STATE_DIRECTORY="+strings.ReplaceAll(test.given, "DIR", dir))
				return run(t, cmd, false)
			}
			s := serve()
			if a := s.post("/a/get", "{}"); a.status != http.StatusOK || a.body != "0" {
				t.Errorf("nothing has been kept yet, but got %d %s", a.status, a.body)
			}
			if all := kept(); len(all) > 0 && test.want != "named" {
				t.Errorf("nothing has been kept yet, but the folder has %q", all)
			}
			if a := s.post("/a/set", "{}"); a.status != http.StatusOK {
				t.Errorf("keep: got %d %s", a.status, a.body)
			}
			if all := kept(); len(all) != 1 || all[0] != filepath.Join(dir, test.want, "state.db") {
				t.Errorf("the state is %q, want it in %s", all, test.want)
			}
			if info, err := os.Stat(filepath.Join(dir, test.want)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the directory has the mode %v, %v", info, err)
			}
			s.signal(syscall.SIGTERM)
			if code := s.exitCode(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			s = serve()
			if a := s.post("/a/get", "{}"); a.body != "116" {
				t.Errorf("what was kept is %d %s", a.status, a.body)
			}
		})
	}
}

// TestNoStateDirectory checks that a service whose state can't be made serves the tools that need none, and the others once the state can be made.
func TestNoStateDirectory(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	dir := site(t, grantsKeys, keepingTools(t))
	put(t, filepath.Join(dir, ".toolsrv"), nil)
	s := start(t, dir)
	if a := s.post("/a/set", "{}"); !strings.Contains(a.body, `"code":"unavailable"`) {
		t.Errorf("keep: got %d %s", a.status, a.body)
	}
	s.waitLine("why", func(line map[string]any) bool {
		return line["level"] == "ERROR" && line["msg"] == "the state can't be used, so whatever needs it gets errors" && strings.Contains(textOf(line), "name a directory under [state]")
	})
	if a := s.post("/shop/echo", order); a.status != http.StatusOK {
		t.Errorf("a tool that keeps nothing: got %d %s", a.status, a.body)
	}
	if a := s.get("/readyz"); a.status != http.StatusOK || !strings.Contains(a.body, `"state":"unavailable"`) {
		t.Errorf("/readyz: got %d %s", a.status, a.body)
	}
	if err := os.Remove(filepath.Join(dir, ".toolsrv")); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is kept", func() bool { return s.post("/a/set", "{}").body == "8" })
	if a := s.get("/readyz"); strings.Contains(a.body, "state") {
		t.Errorf("/readyz: got %d %s", a.status, a.body)
	}
}

// TestNoStateWithoutConfiguration checks that a command that serves a folder for its author stores nothing on disk.
func TestNoStateWithoutConfiguration(t *testing.T) {
	t.Parallel()
	dir := site(t, "", keepingTools(t))
	if err := os.Remove(filepath.Join(dir, "toolsrv.toml")); err != nil {
		t.Fatal(err)
	}
	grants := filepath.Join(t.TempDir(), "grants.toml")
	put(t, grants, []byte(grantsKeys))
	s := startUp(t, dir, "--grant", grants, "--address", "127.0.0.1:0")
	if a := s.post("/a/set", "{}"); a.body != "8" {
		t.Errorf("keep: got %d %s", a.status, a.body)
	}
	for _, place := range []string{dir, filepath.Join(dir, "tools")} {
		if _, err := os.Stat(filepath.Join(place, ".toolsrv")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a state in %s: %v", place, err)
		}
	}
}
