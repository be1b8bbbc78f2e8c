package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// patience is the longest wait: long enough to compile CPython.
const patience = 5 * time.Minute

// A machine runs the program as windows/amd64, in a folder with tools.
type machine struct {
	t               *testing.T
	program, folder string
}

// TestProgram runs the program in wine as a user of Windows does: make test-windows builds it and passes its path.
func TestProgram(t *testing.T) {
	program := os.Getenv("TOOLSRV_WINDOWS")
	if program == "" {
		t.Skip("make test-windows names the program in TOOLSRV_WINDOWS")
	}
	m := machine{t, program, t.TempDir()}
	t.Cleanup(func() { _ = exec.Command("wineserver", "--kill").Run() }) // a prefix of its own, with no program other than ours
	testkit.Put(t, m.folder, "hash.wasm", testkit.Read(t, "../../examples/hash/hash.wasm"))
	testkit.Put(t, m.folder, "hello.py", "from toolsrv import tool\n\n@tool\ndef hello(name: str) -> str:\n    \"Greets.\"\n    return f'Hello, {name}!'\n")
	m.says("version", `windows/amd64`, "version")
	m.says("a module", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "call", "hash.wasm", "digest", `{"data": "abc"}`)
	m.says("a script", `"Hello, Ada!"`, "call", "--timeout=5m", "hello.py", `{"name": "Ada"}`)
	m.says("a folder to begin with", "toolsrv.toml", "init", "my")
	m.agent()
	m.serve()
}

func (m machine) command(arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "wine", append([]string{m.program}, arguments...)...)
	cmd.Dir = m.folder
	return cmd
}

// says runs the program to its end and returns its output.
func (m machine) says(what, want string, arguments ...string) {
	m.t.Helper()
	// The output goes to a file, since wine's own processes would keep a pipe open.
	file, err := os.Create(filepath.Join(m.t.TempDir(), "out"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer file.Close()
	cmd := m.command(arguments...)
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Run()
	out := testkit.Read(m.t, file.Name())
	if err != nil || !bytes.Contains(out, []byte(want)) {
		m.t.Errorf("%s: %v: %s; want %q in it", what, err, out, want)
	}
}

// agent makes requests over standard input, as Claude Desktop does on Windows.
func (m machine) agent() {
	m.t.Helper()
	cmd := m.command("mcp", "hash.wasm", "hello.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	ask := func(message string, answered bool) (answer string) {
		m.t.Helper()
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			m.t.Fatal(err)
		}
		for answered && !strings.Contains(answer, `"id":`) { // this is an answer, not a notification
			if !lines.Scan() {
				m.t.Fatalf("no answer to %s (%v)", message, lines.Err())
			}
			answer = lines.Text()
		}
		return answer
	}
	for _, q := range []struct{ say, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, `"toolsrv"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"hash-digest"`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hello","arguments":{"name":"Ada"}}}`, `Hello, Ada!`},
	} {
		answer := ask(q.say, q.want != "")
		for deadline := time.Now().Add(patience); strings.Contains(answer, `"not_ready"`) && time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
			answer = ask(q.say, true)
		}
		if !strings.Contains(answer, q.want) {
			m.t.Errorf("%s to %s, want %q in it", answer, q.say, q.want)
		}
	}
	if err := in.Close(); err != nil {
		m.t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		m.t.Errorf("at the end of the input: %v", err)
	}
}

// serve calls a tool over HTTP, changes its file, and waits until the change is served.
func (m machine) serve() {
	m.t.Helper()
	cmd := m.command("up", ".", "--address", "127.0.0.1:0", "--log-level", "info")
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	listening := regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)
	var log strings.Builder
	var address string
	for lines := bufio.NewScanner(said); address == "" && lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	if address == "" {
		m.t.Fatalf("the server does not listen:\n%s", &log)
	}
	go io.Copy(io.Discard, said)
	m.eventually(address, "/hash/digest", `{"data": "abc"}`, "ba7816bf8f01cfea")
	m.eventually(address, "/hello", `{"name": "Ada"}`, `"Hello, Ada!"`)
	testkit.Put(m.t, m.folder, "hello.py", "from toolsrv import tool\n\n@tool\ndef hello(name: str) -> str:\n    \"Greets.\"\n    return f'Hi, {name}!'\n")
	m.eventually(address, "/hello", `{"name": "Ada"}`, `"Hi, Ada!"`)
	if status, body := m.post(address, "/hello", `{"name": 7}`); status != http.StatusUnprocessableEntity || !strings.Contains(body, "invalid_arguments") {
		m.t.Errorf("wrong arguments: %d %s", status, body)
	}
}

// eventually calls a tool until its answer has a text.
func (m machine) eventually(address, path, arguments, want string) {
	m.t.Helper()
	var status int
	var body string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if status, body = m.post(address, path, arguments); status == http.StatusOK && strings.Contains(body, want) {
			return
		}
	}
	m.t.Errorf("%s answers %d %s, want %q in it", path, status, body, want)
}

func (m machine) post(address, path, arguments string) (status int, body string) {
	m.t.Helper()
	a, err := (&http.Client{Timeout: patience}).Post("http://"+address+path, "application/json", strings.NewReader(arguments))
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text)
}
