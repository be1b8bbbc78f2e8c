package main_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestStartFails calls toolsrv in ways that end at once.
func TestStartFails(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	good := filepath.Join(site(t, "", nil), "toolsrv.toml")
	wrong := filepath.Join(site(t, "[server]\nadress = \":0\"\n", nil), "toolsrv.toml")
	empty := filepath.Join(t.TempDir(), "toolsrv.toml")
	put(t, empty, nil)
	missing := filepath.Join(filepath.Dir(empty), "tools")
	file := filepath.Join(site(t, "[tools]\ndirectory = \"toolsrv.toml\"\n", nil), "toolsrv.toml")
	away := filepath.Join(site(t, "[[source]]\ndirectory = \"away\"\n", nil), "toolsrv.toml")
	noKeys := filepath.Join(site(t, "[[source]]\noci = \"127.0.0.1:1/a\"\ntag = \"1\"\ncredentials = \"none.json\"\n[[source]]\noci = \"127.0.0.1:1/b\"\ntag = \"1\"\nca = \"none.pem\"\n", nil), "toolsrv.toml")
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"unknown flag", []string{"openapi", "--confg", "x"}, 2, []string{"--confg", "--help"}},
		{"unknown command", []string{"opnapi"}, 2, []string{`"opnapi"`, "openapi"}},
		{"no such configuration", []string{"openapi", "--config", "nowhere.toml"}, 1, []string{"nowhere.toml"}},
		{"wrong configuration", []string{"openapi", "--config", wrong}, 1, []string{wrong + ":2", "adress", "address"}},
		{"no tools directory", []string{"openapi", "--config", empty, "--address", "127.0.0.1:0"}, 1, []string{"there is no tools directory " + missing + ": make it", "tools.directory"}},
		{"a source without its directory", []string{"openapi", "--config", away, "--address", "127.0.0.1:0"}, 1, []string{"away: make it", "the directory of its [[source]]"}},
		{"two registries whose files are missing", []string{"openapi", "--config", noKeys, "--address", "127.0.0.1:0"}, 1, []string{"127.0.0.1:1/a: ", "none.json", "127.0.0.1:1/b: ", "none.pem"}},
		{"a file as tools directory", []string{"openapi", "--config", file, "--address", "127.0.0.1:0"}, 1, []string{file + " is a file", "tools.directory"}},
		{"address in use", []string{"openapi", "--config", good, "--address", taken.Addr().String()}, 1, []string{"in use", "--address"}},
		{"no address", []string{"openapi", "--config", good, "--address", "nonsense"}, 1, []string{"nonsense", "--address"}},
		{"bad token", []string{"openapi", "--config", good, "--address", "127.0.0.1:0", "--auth-token", "two words"}, 1, []string{"token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := command(c.args...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code {
				t.Errorf("toolsrv %q: %v, want exit code %d", c.args, err, c.code)
			}
			for _, word := range c.says {
				if !strings.Contains(stderr.String(), word) {
					t.Errorf("standard error does not say %q: %s", word, stderr.String())
				}
			}
			if stdout.Len() > 0 || strings.Contains(stderr.String(), "two words") {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
		})
	}
}

// TestStartWithoutConfig checks that toolsrv.toml in the working directory is used, and that a server also starts without it.
func TestStartWithoutConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, config, says string // the directory that the error names
	}{
		{"the file is read", "[tools]\ndirectory = \"not-there\"\n", "not-there"},
		{"defaults", "", "tools"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.config != "" {
				put(t, filepath.Join(dir, "toolsrv.toml"), []byte(c.config))
			}
			cmd := command("openapi", "--address", "127.0.0.1:0")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput() // there is no tools directory, so the command ends
			if says := "no tools directory " + filepath.Join(dir, c.says); err == nil || !strings.Contains(string(out), says) {
				t.Errorf("got %v and %s, want an error about %s", err, out, says)
			}
		})
	}
}

// TestStartWithoutHome checks that a server without a usable home directory runs without a cache, and says which key sets one.
func TestStartWithoutHome(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	for name, home := range map[string][]string{"no home": nil, "a home that is a file": {"HOME=" + os.DevNull, "LocalAppData=" + os.DevNull}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
			environment := append([]string{"SystemRoot=" + os.Getenv("SystemRoot")}, home...) // sockets need it on Windows
			cmd := command("openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0")
			cmd.Env = environment
			s := run(t, cmd, false)
			s.waitLine("the warning that names the key", func(line map[string]any) bool {
				return line["level"] == "WARN" && strings.Contains(textOf(line), "tools.cache_directory")
			})
			s.eventually("the tool answers", func() bool { return s.post("/shop/echo", `{"item": "tea"}`).status == 200 })
			for _, line := range s.log.all() {
				if strings.Contains(line, "which of two files has a path") {
					t.Errorf("the log mentions paths that could not be stored: %s", line)
				}
			}

			cmd = command("check", filepath.Join(dir, "tools", "shop.wasm"))
			cmd.Env = environment
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "tools.cache_directory") {
				t.Errorf("toolsrv check: %v, %s", err, out)
			}
		})
	}
}

// TestOpenToEverybody checks the warning about a server that lets everybody in.
func TestOpenToEverybody(t *testing.T) {
	t.Parallel()
	s := start(t, site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")}))
	s.waitLine("the warning that everybody is let in", func(line map[string]any) bool {
		return line["level"] == "WARN" && strings.Contains(textOf(line), "anybody")
	})
	if line := s.waitLog("ready"); line["tools"] != 1.0 {
		t.Errorf("the line at the end of the start counts %v tools, want 1: %v", line["tools"], line)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, err := command("version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	wazero, _ := got["wazero"].(string)
	if got["go"] != runtime.Version() || !strings.HasPrefix(wazero, "v1.") || got["os"] != runtime.GOOS || got["arch"] != runtime.GOARCH {
		t.Errorf("got %s", out)
	}
}

// TestExampleConfig reads the configuration that `make run` uses.
func TestExampleConfig(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	text, err := os.ReadFile("../../examples/toolsrv.toml")
	if err != nil {
		t.Fatal(err)
	}
	dir := site(t, "", nil)
	config := filepath.Join(dir, "examples", "toolsrv.toml")
	put(t, config, text)
	if err := os.MkdirAll(filepath.Join(dir, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "build", "tools", "shop.wasm"), guest(t, "shop", "1.0.0", "echo"))
	s := start(t, dir, "--config", config) // the later --config wins
	if got := s.listed(); len(got) != 1 || got[0] != "/shop/echo 1.0.0" {
		t.Errorf("/tools lists %q", got)
	}
}
