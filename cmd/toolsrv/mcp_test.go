package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

// An agent is a client that has started toolsrv and speaks MCP with it.
type agent struct {
	*service
	stdin    io.WriteCloser
	stdout   io.Closer
	stderr   io.Closer
	messages chan message
	asked    int
	notes    []string // the methods of notifications that came before an answer
}

// A message is a JSON-RPC message from the server.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *int            `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// startAgent runs `toolsrv mcp` with these arguments until the test ends.
func startAgent(t *testing.T, args ...string) *agent {
	t.Helper()
	return runAgent(t, command(append([]string{"mcp"}, args...)...))
}

func runAgent(t *testing.T, cmd *exec.Cmd) *agent {
	t.Helper()
	s := &service{t: t, cmd: cmd, exited: make(chan struct{})}
	s.log.changed = make(chan struct{})
	a := &agent{service: s, messages: make(chan message, 100)}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.stdout, a.stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(a.messages)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var m message
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
				t.Errorf("standard output has a line that is not a message: %s", lines.Text())
				continue
			}
			a.messages <- m
		}
	}()
	go func() {
		defer close(s.exited)
		s.log.read(stderr)
		<-read
		s.waitErr = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that the process has ended
		stdin.Close()
		go func() {
			for range a.messages { // nobody waits for these messages any more
			}
		}()
		<-s.exited
		text := strings.Join(s.log.all(), "\n")
		if strings.Contains(text, "DATA RACE") {
			t.Error("the server has a data race")
		}
		for _, line := range s.log.all() {
			if !s.mixed && !json.Valid([]byte(line)) {
				t.Errorf("a line of the log is not JSON: %s", line)
			}
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", text)
		}
	})
	return a
}

// send sends a line.
func (a *agent) send(format string, args ...any) {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.stdin, format+"\n", args...); err != nil {
		a.t.Fatal(err)
	}
}

// next returns the next message.
func (a *agent) next() message {
	a.t.Helper()
	select {
	case m, ok := <-a.messages:
		if !ok {
			a.t.Fatal("the server has closed its output")
		}
		return m
	case <-time.After(patience):
		a.t.Fatalf("no message after %s", patience)
	}
	return message{}
}

// ask sends a request and returns its answer.
func (a *agent) ask(method, params string) message {
	a.t.Helper()
	a.asked++
	a.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.asked, method, params)
	return a.answer(a.asked)
}

// answer returns the answer to a request.
func (a *agent) answer(id int) message {
	a.t.Helper()
	for {
		switch m := a.next(); {
		case m.Method != "":
			a.notes = append(a.notes, m.Method)
		case m.ID != nil && *m.ID == id:
			return m
		default:
			a.t.Fatalf("got an answer to %v, want one to %d", m.ID, id)
		}
	}
}

// initialize begins a session like a client of version 2025-11-25.
func (a *agent) initialize() {
	a.t.Helper()
	m := a.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	if m.Error != nil || !strings.Contains(string(m.Result), `"protocolVersion":"2025-11-25"`) || !strings.Contains(string(m.Result), `"listChanged":true`) {
		a.t.Fatalf("initialize: got %s, %+v", m.Result, m.Error)
	}
	a.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// tools returns the names of tools/list.
func (a *agent) tools() []string {
	a.t.Helper()
	m := a.ask("tools/list", "{}")
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(m.Result, &list); err != nil {
		a.t.Fatalf("tools/list: %s, %+v: %v", m.Result, m.Error, err)
	}
	names := []string{}
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names
}

// changed waits until the server has said that the list of tools has changed.
func (a *agent) changed() {
	a.t.Helper()
	const method = "notifications/tools/list_changed"
	if i := slices.Index(a.notes, method); i >= 0 {
		a.notes = slices.Delete(a.notes, i, i+1)
		return
	}
	for {
		if m := a.next(); m.Method == method {
			return
		}
	}
}

// calls calls a tool and returns the text of its result.
func (a *agent) calls(tool, arguments string) string {
	a.t.Helper()
	m := a.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	if m.Error != nil {
		return m.Error.Message
	}
	return string(m.Result)
}

// end closes standard input, and returns the exit code and how long that took.
func (a *agent) end() (code int, took time.Duration) {
	a.t.Helper()
	if err := a.stdin.Close(); err != nil {
		a.t.Fatal(err)
	}
	begun := time.Now()
	code = a.exitCode()
	return code, time.Since(begun)
}

// has fails the test unless the tools are these.
func (a *agent) has(when string, want ...string) {
	a.t.Helper()
	if got := a.tools(); !slices.Equal(got, want) {
		a.t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

// TestMCPDirectory serves a directory: the first list is complete, and added or removed files are noticed.
func TestMCPDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo", "refuse"), "broken.wasm": []byte("no")}), "tools")
	a := startAgent(t, dir)
	a.initialize()
	a.has("at the start", "shop-echo", "shop-refuse")
	if got := a.calls("shop-echo", order); !strings.Contains(got, `"structuredContent":`+order) || strings.Contains(got, `"isError":true`) {
		t.Errorf("a call: got %s", got)
	}
	if got := a.calls("shop-echo", `{"count":0}`); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "invalid_arguments") {
		t.Errorf("wrong arguments: got %s", got)
	}
	if got := a.calls("shop-ecko", `{}`); !strings.Contains(got, "shop-ecko") {
		t.Errorf("an unknown tool: got %s", got)
	}
	put(t, filepath.Join(dir, "mail.wasm"), guest(t, "mail", "1.0.0", "echo"))
	a.changed()
	a.has("after a file was dropped in", "mail-echo", "shop-echo", "shop-refuse")
	if err := os.Remove(filepath.Join(dir, "shop.wasm")); err != nil {
		t.Fatal(err)
	}
	a.changed()
	a.has("after a file was removed", "mail-echo")
	if code, _ := a.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	a.waitLine("the refusal of broken.wasm", refusal("broken.wasm"))
}

// TestMCPSaysTroubleOnly checks what an agent's terminal gets: nothing about calls, whether they succeed or fail, and a warning for each file that
// can't be served. With another level the terminal gets the calls, too.
func TestMCPSaysTroubleOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args        []string
		least, most int // lines
	}{{nil, 1, 1}, {[]string{"--log-level", "info"}, 20, 100}} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo", "refuse")}), "tools")
			a := startAgent(t, append([]string{dir}, c.args...)...)
			a.initialize()
			a.has("at the start", "shop-echo", "shop-refuse")
			for range 10 {
				a.calls("shop-echo", order)
				a.calls("shop-echo", `{"count":0}`)
				a.calls("shop-refuse", order)
				a.calls("shop-ecko", `{}`)
			}
			a.ask("tools/nothing", "{}")
			put(t, filepath.Join(dir, "shop.wasm"), guest(t, "shop", "1.0.1", "echo"))
			a.changed()
			put(t, filepath.Join(dir, "broken.wasm"), []byte("no"))
			a.waitLine("the refusal of broken.wasm", refusal("broken.wasm"))
			if code, _ := a.end(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			lines := a.log.all()
			if len(lines) < c.least || len(lines) > c.most {
				t.Errorf("%d lines, want %d to %d", len(lines), c.least, c.most)
			}
			for _, line := range lines {
				if len(c.args) == 0 && !strings.Contains(line, `"level":"WARN"`) {
					t.Errorf("no warning: %s", line)
				}
			}
		})
	}
}

// TestMCPFiles serves single files without their folder, and follows them.
func TestMCPFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one", "tool.wasm"), filepath.Join(dir, "two", "tool.wasm")
	put(t, one, guest(t, "", "1.0.0", "echo"))
	put(t, two, guest(t, "two", "1.0.0", "echo"))
	put(t, filepath.Join(dir, "two", "other.wasm"), guest(t, "other", "1.0.0", "echo"))
	a := startAgent(t, one, two)
	a.initialize()
	a.has("at the start", "echo", "two-echo")
	put(t, two, guest(t, "two", "2.0.0", "echo", "refuse"))
	a.changed()
	a.has("after a file was replaced", "echo", "two-echo", "two-refuse")
	if code, _ := a.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestMCPConfig serves a configuration with its directory, switches and limits, and without a token.
func TestMCPConfig(t *testing.T) {
	t.Parallel()
	dir := site(t, `[auth]
tokens = ["`+token+`"]
[tools]
disabled = [{ tool = "shop/echo", reason = "it is being mended" }, "shop/nothing"]
[[override]]
match = "shop/spin"
timeout = "50ms"
`, map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	a := startAgent(t, "--config", filepath.Join(dir, "toolsrv.toml"))
	a.initialize()
	if tools := a.tools(); slices.Contains(tools, "shop-echo") || !slices.Contains(tools, "shop-spin") {
		t.Errorf("got %q, want no tool that is disabled", tools)
	}
	if got := a.calls("shop-spin", order); !strings.Contains(got, "tool_timeout") {
		t.Errorf("a tool with a limit: got %s", got)
	}
	if got := a.calls("shop-echo", order); !strings.Contains(got, "tool_disabled") || !strings.Contains(got, "it is being mended") {
		t.Errorf("a disabled tool: got %s", got)
	}
	a.waitLine("an entry that matches no tool", func(line map[string]any) bool { return line["entry"] == "shop/nothing" })
	if code, _ := a.end(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestMCPStateless uses version 2026-07-28, which has no sessions.
func TestMCPStateless(t *testing.T) {
	t.Parallel()
	a := startAgent(t, filepath.Join(site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")}), "tools"))
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if m := a.ask("server/discover", `{`+meta+`}`); m.Error != nil || !strings.Contains(string(m.Result), "2026-07-28") {
		t.Errorf("server/discover: got %s, %+v", m.Result, m.Error)
	}
	if m := a.ask("tools/list", `{`+meta+`}`); !strings.Contains(string(m.Result), `"shop-echo"`) {
		t.Errorf("tools/list: got %s, %+v", m.Result, m.Error)
	}
	if m := a.ask("tools/call", `{`+meta+`,"name":"shop-echo","arguments":`+order+`}`); !strings.Contains(string(m.Result), `"structuredContent":`+order) {
		t.Errorf("tools/call: got %s, %+v", m.Result, m.Error)
	}
}

// TestMCPPipe sends all requests at once and then the end of the input, as a shell pipeline does: each request is answered.
func TestMCPPipe(t *testing.T) {
	t.Parallel()
	a := startAgent(t, filepath.Join(site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")}), "tools"))
	a.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	a.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	a.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	a.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"shop-echo","arguments":%s}}`, order)
	if err := a.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[int]string{}
	for range 3 {
		m := a.next()
		if m.ID == nil || m.Error != nil {
			t.Fatalf("got %+v", m)
		}
		seen[*m.ID] = string(m.Result)
	}
	if !strings.Contains(seen[2], "shop-echo") || !strings.Contains(seen[3], "structuredContent") {
		t.Errorf("got %v", seen)
	}
	if got := a.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}

// TestMCPEndsInCall closes standard input while a long call runs.
// Proves: Answers and logs show what is meant to be seen
func TestMCPEndsInCall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	dir := site(t, "[limits]\ntimeout = \"10m\"\nfuel = 0\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	a := startAgent(t, "--config", filepath.Join(dir, "toolsrv.toml"))
	a.initialize()
	a.has("at the start", "shop-echo", "shop-garble", "shop-grow", "shop-recurse", "shop-refuse", "shop-reject", "shop-silent", "shop-spin", "shop-trap", "shop-wait")
	a.send(`{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":"shop-spin","arguments":%s}}`, order)
	if m := a.ask("ping", "{}"); m.Error != nil { // calls don't hold up other requests
		t.Errorf("ping during a call: got %+v", m.Error)
	}
	if code, took := a.end(); code != 0 || took > time.Minute {
		t.Errorf("exit code %d after %s, want 0 long before the call's end", code, took)
	}
}

// TestMCPStartFails checks that the error is on standard error, nothing is on standard output, and the exit code is 1.
func TestMCPStartFails(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a.wasm")
	put(t, file, guest(t, "", "1.0.0", "echo"))
	put(t, filepath.Join(dir, "wrong.toml"), []byte("[tols]\n"))
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing there", nil, 1, "there is no tools directory " + filepath.Join(dir, "tools")},
		{"no such file", []string{filepath.Join(dir, "b.wasm")}, 1, "there is no file or directory " + filepath.Join(dir, "b.wasm")},
		{"a folder and a file", []string{dir, file}, 2, "name one directory, or files"},
		{"two folders", []string{dir, dir}, 2, "name one directory, or files"},
		{"an empty name", []string{""}, 2, "the name of a file is empty"},
		{"a wrong configuration", []string{"--config", filepath.Join(dir, "wrong.toml")}, 1, `did you mean "tools"?`},
		{"a configuration and a file", []string{"--config", filepath.Join(dir, "wrong.toml"), file}, 2, "leave out --config, or the files"},
		{"--name without --print-config", []string{"--name", "x", dir}, 2, "--name is for --print-config"},
	} {
		cmd := command(append([]string{"mcp"}, c.args...)...)
		cmd.Dir = dir
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // its exit code is checked
		if got := cmd.ProcessState.ExitCode(); got != c.code || stdout.Len() > 0 || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit code %d, %q, %q, want %d and %q", c.name, got, stdout.String(), stderr.String(), c.code, c.says)
		}
	}
}

// TestMCPScripts serves scripts: a named one, whatever its name is, and those in a directory, unless a flag leaves them out.
func TestMCPScripts(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "javascript")
	const text = `import { tool } from "toolsrv"; import { n } from "./_n.ts";
export const answer = tool({ description: "Answer.", parameters: { type: "object" }, run: () => ({ n }) });`
	dir := t.TempDir()
	for name, content := range map[string]string{"one/_answer.ts": text, "one/_n.ts": "export const n = 1;", "two/answer.ts": text, "two/_n.ts": "export const n = 2;"} {
		put(t, filepath.Join(dir, name), []byte(content))
	}
	for _, c := range []struct {
		args   []string
		folder string
		n      int
		tools  []string
	}{
		{[]string{filepath.Join(dir, "one", "_answer.ts")}, "one", 1, []string{"answer"}},
		{[]string{filepath.Join(dir, "two")}, "two", 2, []string{"answer"}},
		{[]string{filepath.Join(dir, "two"), "--scripts=false"}, "two", 0, []string{}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			a := startAgent(t, c.args...)
			a.initialize()
			for len(a.tools()) < len(c.tools) { // compiling an interpreter for the first time takes a while
				a.changed()
			}
			a.has("at the start", c.tools...)
			if c.n == 0 {
				return
			}
			if got := a.calls("answer", "{}"); !strings.Contains(got, fmt.Sprintf(`"structuredContent":{"n":%d}`, c.n)) {
				t.Errorf("got %s, want %d", got, c.n)
			}
			put(t, filepath.Join(dir, c.folder, "_n.ts"), []byte("export const n = 9;"))
			for deadline := time.Now().Add(patience); !strings.Contains(a.calls("answer", "{}"), `{"n":9}`); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("a change to a file that the script imports is not noticed")
				}
			}
		})
	}
}
