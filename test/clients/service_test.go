// Package clients_test tries the document and the running service with real clients. run.sh runs it, and builds what it needs.
package clients_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

const (
	token      = "a-token-of-the-tests"
	adminToken = "a-token-of-an-administrator"
	startLimit = time.Minute // the longest wait until a service has all its tools
)

// setting returns a value that run.sh passes.
func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run test/clients/run.sh", name)
	}
	return value
}

// A tool is one function of testdata/e2e/guest.wat under a name and a schema of its own.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Result      json.RawMessage `json:"result,omitempty"`
	Examples    json.RawMessage `json:"examples,omitempty"`
}

// echo returns a tool whose result is its arguments, with the defaults filled in; the schema describes both.
func echo(name, schema string) tool {
	return tool{Name: name, Description: "Return the arguments.", Parameters: json.RawMessage(schema), Result: json.RawMessage(schema)}
}

// A service is a running toolsrv.
type service struct {
	url   string
	tools int // the number of tools that it serves
}

// write makes a module from the guest and puts it into a directory. The tools must be in the order of the guest's table.
func write(t *testing.T, directory, namespace string, tools ...tool) {
	t.Helper()
	said, err := json.Marshal(map[string]any{"abi": manifest.ABI, "namespace": namespace, "version": "1.0.0", "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../testdata/e2e/guest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	module, err = wasmbin.SetCustom(module, manifest.Section, said)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(directory, strings.ReplaceAll(namespace, "/", "-")+"-"+tools[0].Name+".wasm")
	if err := os.WriteFile(file, module, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeExamples copies the example tools into a directory, except scripts: the generator of the Go client can't read a schema with two types, such as
// a Decimal's, and a script's errors are logged as errors, which would fail the other tests.
func writeExamples(t *testing.T, directory string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(setting(t, "TOOLS"), "*.wasm"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no example tools: got %q, %v", files, err)
	}
	for _, file := range files {
		folder := filepath.Join("../../examples", strings.TrimSuffix(filepath.Base(file), ".wasm"))
		if scripts, _ := filepath.Glob(folder + "/*.[jpt][sy]"); len(scripts) > 0 {
			continue
		}
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, filepath.Base(file)), module, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// start runs toolsrv on a directory until the test ends, and waits until it serves the tools of every file. It has
// one token; settings are more lines of the configuration.
func start(t *testing.T, directory, settings string) *service {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "toolsrv.toml")
	// The server uses the cache that toolsrv build has filled. Otherwise a Go tool would be compiled at the same time as others, and its first
	// call could exceed its time limit.
	text := fmt.Sprintf("[server]\naddress = '127.0.0.1:0'\n[tools]\ndirectory = '%s'\n[auth]\ntokens = ['%s']\n%s\n", directory, token, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(setting(t, "TOOLSRV"), "openapi", "--config", file)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := follow(stderr)
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop toolsrv: %v", err)
		}
		for line := range log { // Wait must come after the last line
			if line.Level == "ERROR" {
				t.Errorf("toolsrv logged: %s", line.text)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("toolsrv: %v", err)
		}
	})

	s := &service{}
	served := map[string]bool{} // files
	deadline := time.After(startLimit)
	for s.url == "" || len(served) < len(files) {
		select {
		case line, ok := <-log:
			switch {
			case !ok:
				t.Fatal("toolsrv ended before it served")
			case line.Msg == "listening":
				s.url = "http://" + line.Address
			case line.Msg == "tool added":
				served[line.File] = true
			case strings.HasPrefix(line.Msg, "a tool lacks a grant"): // these examples are not shown to clients
			case line.Level != "INFO":
				t.Errorf("toolsrv logged: %s", line.text)
			}
		case <-deadline:
			t.Fatalf("toolsrv at %q serves %d of %d files after %v", s.url, len(served), len(files), startLimit)
		}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(get(t, s.url+"/tools"), &list); err != nil {
		t.Fatal(err)
	}
	s.tools = len(list)
	return s
}

// administered returns settings with which the holder of adminToken administers a service over HTTP.
func administered(t *testing.T) string {
	return fmt.Sprintf("[admin]\nenabled = true\n[state]\ndirectory = '%s'\n[[auth.token]]\nname = 'ann'\nsha256 = '%x'\nscopes = ['admin']\n", t.TempDir(), sha256.Sum256([]byte(adminToken)))
}

// get returns the content of a URL.
func get(t *testing.T, url string) []byte {
	t.Helper()
	return getAs(t, token, url)
}

func getAs(t *testing.T, token, url string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", url, answer.Status, err, body)
	}
	return body
}

// A logLine is a line that toolsrv writes if stderr is not a terminal.
type logLine struct {
	Level, Msg, Address, File string
	text                      string
}

// follow returns the lines of a log. No line is lost, and the writer never waits for long.
func follow(r io.Reader) <-chan logLine {
	lines := make(chan logLine, 1<<16)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			line := logLine{text: s.Text()}
			if json.Unmarshal(s.Bytes(), &line) != nil {
				line.Level = "ERROR" // a panic, or something that is not a log line at all
			}
			if line.Msg == "request" && line.Level != "ERROR" {
				continue
			}
			lines <- line
		}
	}()
	return lines
}

// run runs a command and returns its output.
func run(t *testing.T, limit time.Duration, directory string, environment []string, name string, arguments ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), environment...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}
