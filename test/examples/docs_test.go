package examples_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestToolsDoc runs the commands of docs/tools.md as a reader would, and calls the tools that they build.
func TestToolsDoc(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t)
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the page's commands need sh")
	}
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := filepath.Abs("../../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	page = regexp.MustCompile("(?s)## A first tool in Rust\n.*?\n## ").ReplaceAll(page, []byte("## ")) // test/rust runs that
	// The SDK is the one beside the page, not the last one that was released.
	get := "go get github.com/toolsrv/toolsrv/sdk/go\n"
	replace := "go mod edit -require=github.com/toolsrv/toolsrv/sdk/go@v0.1.0 -replace=github.com/toolsrv/toolsrv/sdk/go=" + sdk + "\n"
	if strings.Count(string(page), get) != 1 {
		t.Fatalf("docs/tools.md does not say %q once", get)
	}
	var server string
	script := &strings.Builder{}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(strings.Replace(string(page), get, replace, 1), -1) {
		if strings.Contains(block[1], "toolsrv openapi") {
			server = block[1]
		} else {
			script.WriteString(block[1])
		}
	}
	dir, bin := t.TempDir(), t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "toolsrv"), "../../cmd/toolsrv").CombinedOutput(); err != nil {
		t.Fatalf("build toolsrv: %v\n%s", err, out)
	}
	shell := func(commands string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", commands)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		return cmd
	}
	cmd := shell(script.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the commands of docs/tools.md: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("curl"); err == nil {
		followServer(t, string(page), server, shell)
	}

	table := serve(t, filepath.Join(dir, "tools"), nil, "/greetings/greet", "/texts/shout")
	for _, test := range []struct{ path, arguments, want string }{
		{"/greetings/greet", `{"name": "Ada"}`, `"Hello, Ada!"`},
		{"/greetings/greet", `{"name": "Ada", "language": "fr"}`, `"Bonjour, Ada!"`},
		{"/texts/shout", `{"Text": "hey"}`, "\"HEY!\"\n"},
	} {
		if got, err := call(t, table, test.path, test.arguments); err != nil || got != test.want {
			t.Errorf("%s %s: got %s, %v, want %s", test.path, test.arguments, got, err, test.want)
		}
	}
	if got, err := call(t, table, "/greetings/greet", `{"name": ""}`); err == nil || err.Code != wasmtools.CodeInvalidArguments {
		t.Errorf("no name: got %s, %v, want invalid arguments", got, err)
	}
}

// followServer starts the page's server, on a port of its own, and makes the page's call to it.
func followServer(t *testing.T, page, commands string, shell func(string) *exec.Cmd) {
	t.Helper()
	const start = "toolsrv openapi --config toolsrv.toml\n"
	if !strings.HasSuffix(commands, start) {
		t.Fatalf("docs/tools.md starts the server by %q, want %q at the end", commands, start)
	}
	curl := regexp.MustCompile("```console\n\\$ (curl [^\n]*localhost:8000[^\n]*)\n([^\n]*)\n```").FindStringSubmatch(page)
	if curl == nil {
		t.Fatal("docs/tools.md has no call to the server")
	}
	server := shell(strings.TrimSuffix(commands, start) + "exec " + strings.TrimSuffix(start, "\n") + " --address 127.0.0.1:0")
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	address := regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		m := address.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		go io.Copy(io.Discard, log)
		deadline := time.Now().Add(time.Minute)
		for {
			out, err := shell(strings.ReplaceAll(curl[1], "localhost:8000", m[1])).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err == nil && got == curl[2] {
				return
			} else if time.Now().After(deadline) {
				t.Errorf("docs/tools.md says\n$ %s\n%s\nbut it prints\n%s (%v)", curl[1], curl[2], got, err)
				return
			}
			time.Sleep(50 * time.Millisecond) // the server takes files up within a second
		}
	}
	t.Errorf("the server of docs/tools.md does not say where it listens: %v", lines.Err())
}

// TestManifestsOfDocs parses the manifests of docs/abi.md.
func TestManifestsOfDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		if !json.Valid(block[1]) {
			t.Errorf("docs/abi.md: this is not valid JSON:\n%s", block[1])
		}
		if strings.Contains(string(block[1]), `"tools"`) {
			found++
			if _, err := wasmtools.ParseManifest(block[1]); err != nil {
				t.Errorf("docs/abi.md: %v in the manifest\n%s", err, block[1])
			}
		}
	}
	if found != 2 {
		t.Errorf("docs/abi.md has %d manifests, want 2", found)
	}
}
