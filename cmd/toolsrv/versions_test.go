//go:build unix

package main_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/tokens"
)

// TestOtherVersions has files that other versions of toolsrv have left: each is refused with a sentence that says what to do, or is ignored. None of
// these files is changed.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	refused := func(t *testing.T, file string, says string, args ...string) {
		t.Helper()
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := command(args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("toolsrv %q: %v, %s; want an error that says %q", args, err, out, says)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
			t.Errorf("toolsrv %q has changed %s (%v)", args, file, err)
		}
	}
	t.Run("a configuration of a newer version", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(site(t, "[server]\naddress = \"127.0.0.1:0\"\nfuture = true\n", nil), "toolsrv.toml")
		for _, name := range []string{"openapi", "mcp", "check"} {
			refused(t, file, file+":3:1: unknown key in [server]: remove it, or update toolsrv if a newer one has it", name, "--config", file)
		}
	})
	t.Run("a state of a newer version", func(t *testing.T) {
		t.Parallel()
		dir, s := keepingSite(t)
		s.signal(syscall.SIGTERM)
		if code := s.exitCode(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		kept := filepath.Join(dir, "state", "state.db")
		text, err := os.ReadFile(kept)
		if err != nil || !bytes.Contains(text, []byte("format1")) {
			t.Fatalf("the state no longer names its format in the same way (%v)", err)
		}
		put(t, kept, bytes.ReplaceAll(text, []byte("format1"), []byte("format2")))
		for _, name := range []string{"openapi", "mcp"} {
			refused(t, kept, `its format is "2", but this version reads 1: name another directory under [state], or run the version that wrote it`,
				name, "--config", filepath.Join(dir, "toolsrv.toml"))
		}
		for _, args := range [][]string{{"state", "check", kept}, {"state", "check", "--config", filepath.Join(dir, "toolsrv.toml")}} {
			refused(t, kept, `its format is "2", but this version reads 1: run the version that wrote it, or a newer one`, args...)
		}
		put(t, kept, text) // in the form of the version that wrote it
		s = run(t, command("openapi", "--config", filepath.Join(dir, "toolsrv.toml")), false)
		if a := s.post("/a/get", "{}"); a.status != http.StatusOK || a.body != "116" {
			t.Errorf("what was kept is %d %s, want 200 116", a.status, a.body)
		}
	})
	t.Run("records of a newer version", func(t *testing.T) {
		t.Parallel()
		for _, space := range []string{audit.Space, switches.Space, tokens.Space} {
			dir, s := keepingSite(t)
			s.signal(syscall.SIGTERM)
			if code := s.exitCode(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			store, err := local.Open(filepath.Join(dir, "state"), local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Space(space).Set(t.Context(), "future", []byte("\x63{}"), state.Any, state.SetOptions{})
			if err := errors.Join(err, store.Close()); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"openapi"}, {"mcp"}, {"state", "check"}} {
				refused(t, filepath.Join(dir, "state", "state.db"), "written by a newer version of toolsrv: its form is 99",
					append(args, "--config", filepath.Join(dir, "toolsrv.toml"))...)
			}
		}
	})
	t.Run("a cache of an older version", func(t *testing.T) {
		t.Parallel()
		dir := site(t, "[tools]\ncache_directory = \"cache\"\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
		if err := os.Mkdir(filepath.Join(dir, "cache"), 0o700); err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(dir, "cache", strings.Repeat("0a", 32))
		const entry = "toolsrv compiled code 1\n and the code that that version has compiled"
		put(t, old, []byte(entry))
		s := start(t, dir)
		if a := s.post("/shop/echo", order); a.status != http.StatusOK {
			t.Errorf("%d %s, want 200", a.status, a.body)
		}
		if text, err := os.ReadFile(old); err != nil || string(text) != entry {
			t.Errorf("the entry of the older version is now %q (%v)", text, err)
		}
		for _, line := range s.log.all() {
			if strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, "cache") || strings.Contains(line, `"level":"ERROR"`) {
				t.Errorf("nothing is wrong, but the server logs %s", line)
			}
		}
	})
}
