//go:build unix

package main_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

const (
	upPython = "from toolsrv import tool\n\n@tool\ndef hello(name: str) -> str:\n    \"Greets.\"\n    return f'Hello, {name}!'\n"
	upBroken = "from toolsrv import tool\n\n@tool\ndef hello(name: str) -> str:\n    \"Greets.\"\n    return = name\n"
)

// startUp runs `toolsrv up` in a folder with its log, which shows when it listens.
func startUp(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	cmd := command(append([]string{"up", "--log-level", "info"}, args...)...)
	cmd.Dir = dir
	return run(t, cmd, true)
}

// waitText waits for a line that is not part of the log.
func (s *service) waitText(want string) string {
	s.t.Helper()
	line := s.waitLine("the words "+want, func(line map[string]any) bool {
		text, _ := line["text"].(string)
		return strings.Contains(text, want)
	})
	return fmt.Sprint(line["text"])
}

// TestUp is an hour with a folder of scripts: each served tool is shown with a command that works as printed, changes are reported, and
// a mistake is reported with its place and does no harm.
func TestUp(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python", "javascript")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hello.py"), []byte(upPython))
	put(t, filepath.Join(dir, "texts", "halve.ts"), []byte(strings.Replace(typescriptTool, `import { half } from "./lib/_half.ts";`, "const half = (n: number) => n / 2;", 1)))
	put(t, filepath.Join(dir, "broken.py"), []byte(upBroken))
	s := startUp(t, dir, "--address", "127.0.0.1:0")
	s.waitText("Serving the folder " + dir + ", without tokens.")
	s.waitText("MCP   http://localhost:")
	s.waitText(", in another terminal:")
	s.waitText("Not served: broken.py")
	s.waitText("broken.py:6:12: ")
	s.waitText("/texts/halve  Halve a number.")
	line := s.waitText("curl -s localhost:" + s.port() + "/hello ")
	if _, err := exec.LookPath("curl"); err == nil {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput(); err != nil || string(out) != `"Hello, text!"` {
			t.Errorf("%s\nprints %s (%v)", line, out, err)
		}
	}

	put(t, filepath.Join(dir, "broken.py"), []byte(strings.ReplaceAll(strings.Replace(upBroken, "= name", "name", 1), "hello", "mended")))
	s.waitText("curl -s localhost:" + s.port() + "/mended ")
	put(t, filepath.Join(dir, "hello.py"), []byte(strings.Replace(upPython, "Hello,", "Hi,", 1)))
	s.waitText("Changed: /hello")
	if got := s.post("/hello", `{"name": "Ada"}`); got.body != `"Hi, Ada!"` {
		t.Errorf("after the change: %d %s", got.status, got.body)
	}
	put(t, filepath.Join(dir, "hello.py"), []byte(upBroken))
	s.waitText("Not loaded, so the previous version stays in service: hello.py")
	if got := s.post("/hello", `{"name": "Ada"}`); got.body != `"Hi, Ada!"` {
		t.Errorf("after a mistake: %d %s", got.status, got.body)
	}
	if err := os.Remove(filepath.Join(dir, "hello.py")); err != nil {
		t.Fatal(err)
	}
	s.waitText("Gone: /hello")
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := s.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// port returns the port that the service listens on.
func (s *service) port() string {
	s.t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	return port
}

// TestUpQuiet sets no log level: only lines for people are printed, without colours, since the output is not a terminal.
func TestUpQuiet(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hello.py"), []byte(upPython))
	put(t, filepath.Join(dir, "broken.py"), []byte(upBroken))
	cmd := command("up", dir, "--address", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := logLines{changed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines.read(stderr)
	}()
	for n := 0; ; {
		seen, changed := lines.from(n)
		n += len(seen)
		if text := strings.Join(lines.all(), "\n"); strings.Contains(text, "return = name") && strings.Contains(text, "/hello ") {
			break
		}
		select {
		case <-changed:
		case <-done:
			t.Fatalf("it ended:\n%s", strings.Join(lines.all(), "\n"))
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	text := strings.Join(lines.all(), "\n")
	if strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, `"level"`) {
		t.Errorf("it prints a log, or colours:\n%s", text)
	}
	if !strings.Contains(text, "\n1 tool. To call it, in another terminal:\n") {
		t.Errorf("it does not say what is served:\n%s", text)
	}
}

// TestUpPlaces serves what a user may mean.
func TestUpPlaces(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python")
	greet := func(name string) []byte { return []byte(strings.ReplaceAll(upPython, "hello", name)) }
	dir := t.TempDir()
	put(t, filepath.Join(dir, "beside.py"), greet("beside"))
	put(t, filepath.Join(dir, "tools", "inside.py"), greet("inside"))
	put(t, filepath.Join(dir, "set", "toolsrv.toml"), []byte("[tools]\ndirectory = \"mine\"\nscripts = true\n[auth]\ntokens = [\""+token+"\"]\n[mcp]\nenabled = false\n"))
	put(t, filepath.Join(dir, "set", "mine", "kept.py"), greet("kept"))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "source", "main.go"), []byte("package main\n\nfunc main() {}\n"))
	for _, c := range []struct {
		name   string
		args   []string
		tools  string   // in the list
		says   []string // lines of the output
		silent string   // text that must not be printed
	}{
		{"the current folder", nil, "/inside", []string{"Serving the folder tools, without tokens.", "Not served, because it is outside that folder: beside.py."}, ""},
		{"a folder", []string{"tools"}, "/inside", []string{"Serving the folder tools, without tokens."}, "outside"},
		{"files", []string{"beside.py", "tools/inside.py"}, "/beside /inside", []string{"Serving beside.py and tools/inside.py, without tokens."}, "outside"},
		{"a configuration", []string{"set"}, "/kept", []string{"Serving set/mine, as set/toolsrv.toml says, to callers with credentials.", `/kept -H "Authorization: Bearer $TOKEN"`}, "/mcp"},
		{"an empty folder", []string{"empty"}, "", []string{"No tool is served yet. Put a script (.py, .js, .ts) or a .wasm file into empty: it is served within a second."}, "curl"},
		{"a source", []string{"source"}, "", []string{"No tool is served yet.", "This is the source of a tool in go: toolsrv dev source builds and serves it."}, "curl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startUp(t, dir, append(c.args, "--address", "127.0.0.1:0")...)
			for _, want := range c.says {
				s.waitText(want)
			}
			var paths []string
			for _, tool := range s.listed() {
				paths = append(paths, strings.Fields(tool)[0])
			}
			if got := strings.Join(paths, " "); got != c.tools {
				t.Errorf("the server serves %q, want %q", got, c.tools)
			}
			if text := strings.Join(s.log.all(), "\n"); c.silent != "" && strings.Contains(text, c.silent) {
				t.Errorf("it says %q:\n%s", c.silent, text)
			}
		})
	}
}

// TestUpPort starts while another program has the default port.
func TestUpPort(t *testing.T) {
	t.Parallel()
	const usual = "127.0.0.1:8000"
	if other, err := net.Listen("tcp", usual); err == nil {
		t.Cleanup(func() { other.Close() })
	} // if this fails, another program has the port, which is just as good
	s := startUp(t, t.TempDir())
	if s.port() == "8000" {
		t.Error("it listens on a port that is in use")
	}
	s.waitText("Another program is listening on " + usual + ", so toolsrv uses another port.")
	s.waitText("http://localhost:" + s.port() + "/openapi.json")
}

// TestUpConfiguration changes a configuration while it is served: a valid one is put in force, and a wrong one is reported and changes nothing.
func TestUpConfiguration(t *testing.T) {
	t.Parallel()
	dir := site(t, "[mcp]\nenabled = false\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	s := startUp(t, dir, "--address", "127.0.0.1:0")
	s.waitText("curl -s localhost:" + s.port() + "/shop/echo ")
	file := filepath.Join(dir, "toolsrv.toml")
	if out, err := command("reload", "--config", file).CombinedOutput(); err != nil {
		t.Errorf("an operator's reload: %v: %s", err, out)
	}
	put(t, file, []byte("[mcp]\nenabled = false\n[tools]\ndisabled = [\"shop\"]\n"))
	s.waitText("Reloaded ")
	s.waitText("Gone: /shop/echo")
	put(t, file, []byte("[mcp]\nenabled = maybe\n"))
	s.waitText("toolsrv.toml:2:")
	s.waitText("The configuration stays as it was.")
	if got := s.post("/shop/echo", order); got.status != http.StatusServiceUnavailable {
		t.Errorf("after a wrong configuration: %d %s", got.status, got.body)
	}
	for _, line := range s.log.all() {
		if strings.Contains(line, "needs a restart") {
			t.Errorf("there should be no line about a restart: %s", line)
		}
	}
}

// TestUpGrants lets a tool reach what it declares.
func TestUpGrants(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "ask.py"), []byte("from toolsrv import needs, tool\n\nneeds(http=['https://api.example.com'])\n\n@tool\ndef ask() -> str:\n    'Asks.'\n    return ''\n"))
	s := startUp(t, dir, "--address", "127.0.0.1:0")
	s.waitText("/ask is not served, because it needs http https://api.example.com")
	s.waitText("grant it here: --allow-http ")
	s = startUp(t, dir, "--address", "127.0.0.1:0", "--allow-http", "https://api.example.com")
	s.waitText("curl -s localhost:" + s.port() + "/ask ")
}

// TestInitUp runs what a new user types: two commands, and the one that is printed.
func TestInitUp(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	for language, engine := range map[string]string{"python": "python", "javascript": "javascript", "typescript": "javascript"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			enginetest.Need(t, engine)
			dir := t.TempDir()
			cmd := command("init", "--lang", language)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			m := regexp.MustCompile(`curl -s localhost:8000(/\S+) .* -d '(.*)'`).FindStringSubmatch(string(out))
			if m == nil {
				t.Fatalf("no call in\n%s", out)
			}
			s := startUp(t, dir, "--address", "127.0.0.1:0")
			s.waitText("Serving tools, as toolsrv.toml says, without tokens.")
			if got := s.post(m[1], m[2]); got.status != http.StatusOK || got.body != `"Hello, Ada!"` {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}
