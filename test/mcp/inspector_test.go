package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An inspector is the Inspector's command line with a server to talk to, as its users configure it. Each run does one
// thing, and ends.
type inspector struct {
	config  string // its file
	home    string
	options []string
}

func newInspector(t *testing.T, era string, server map[string]any) *inspector {
	t.Helper()
	directory := t.TempDir()
	i := &inspector{config: filepath.Join(directory, "mcp.json"), home: directory}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"toolsrv": server}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	i.options = []string{"--cli", "--config", i.config, "--server", "toolsrv", "--protocol-era", era, "--format", "json"}
	return i
}

// environment puts the Inspector's files into folders that are removed with the test.
func (i *inspector) environment() []string {
	return []string{"HOME=" + i.home, "MCP_INSPECTOR_SECRET_STORE=memory"}
}

func (i *inspector) command(t *testing.T, arguments ...string) []string {
	launcher := "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	return append(append([]string{node(t), launcher}, i.options...), arguments...)
}

// do runs the Inspector, which must end with this exit code, and returns its output: a result to stdout, an error to stderr.
func (i *inspector) do(t *testing.T, wantCode int, arguments ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := run(t, clientLimit, i.environment(), i.command(t, arguments...)...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != wantCode {
		t.Fatalf("%q ended with %d, want %d\n%s%s", arguments, code, wantCode, clip(stdout), clip(stderr))
	}
	return stdout, stderr
}

// toolFailed is the code with which the Inspector ends when a tool fails or does not exist.
const toolFailed = 5

// TestInspector lets the Inspector's command line list and call tools, pass wrong arguments, call a disabled tool, save an image and notice a new
// tool, in both versions of the protocol, over HTTP and stdio. The Inspector shows no progress.
func TestInspector(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		for _, transport := range []string{"HTTP", "stdio"} {
			t.Run(era+" over "+transport, func(t *testing.T) {
				s := prepare(t, disabled)
				server := map[string]any{}
				if transport == "HTTP" {
					server["type"], server["url"] = "streamable-http", s.start(t, nil)+"/mcp"
				} else {
					command := s.stdio(t)
					server["type"], server["command"], server["args"] = "stdio", command[0], command[1:]
				}
				i := newInspector(t, era, server)

				list, _ := i.do(t, 0, "--method", "tools/list")
				if !strings.Contains(list, `"test_simple_text"`) || strings.Contains(list, `"test_logging_tool"`) {
					t.Errorf("the list is %s, want test_simple_text, and not test_logging_tool, which is disabled", list)
				}
				text, _ := i.do(t, 0, "--method", "tools/call", "--tool-name", "test_simple_text")
				if !strings.Contains(text, "This is a simple text response for testing.") {
					t.Errorf("got %s", text)
				}
				text, _ = i.do(t, toolFailed, "--method", "tools/call", "--tool-name", "test_custom_header", "--tool-args-json", `{"region": 5}`)
				if !strings.Contains(text, "region") || !strings.Contains(text, "invalid_arguments") {
					t.Errorf("wrong arguments: got %s", text)
				}
				for _, name := range []string{"test_logging_tool", "no_such_tool"} {
					if _, said := i.do(t, toolFailed, "--method", "tools/call", "--tool-name", name); !strings.Contains(said, "tool_not_found") {
						t.Errorf("%s: got %s", name, said)
					}
				}
				image := filepath.Join(t.TempDir(), "image.png")
				i.do(t, 0, "--method", "tools/call", "--tool-name", "test_image_content", "--output", image, "--output-format", "raw")
				if png, err := os.ReadFile(image); err != nil || !bytes.HasPrefix(png, []byte("\x89PNG\r\n")) {
					t.Errorf("the image is %.20q, %v", png, err)
				}
				if err := s.put(filepath.Join(setting(t, "TOOLS"), "math.wasm"), "math.wasm"); err != nil {
					t.Fatal(err)
				}
				sum := ""
				for deadline := time.Now().Add(time.Minute); !strings.Contains(sum, `"5"`) && time.Now().Before(deadline); {
					sum, _, _ = run(t, clientLimit, i.environment(), i.command(t, "--method", "tools/call", "--tool-name", "math-add", "--tool-arg", "a=2", "b=3")...)
				}
				if !strings.Contains(sum, `"text":"5"`) {
					t.Errorf("a tool that has appeared: got %s", sum)
				}
			})
		}
	}
}

// TestInspectorStrict lets the Inspector check how portable the schemas of all example tools are: it must find nothing that clients would refuse.
func TestInspectorStrict(t *testing.T) {
	t.Parallel()
	s := prepare(t, "")
	examples, err := filepath.Glob(filepath.Join(setting(t, "TOOLS"), "*.wasm"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no example tools: got %q, %v", examples, err)
	}
	for _, file := range examples {
		if err := s.put(file, filepath.Base(file)); err != nil {
			t.Fatal(err)
		}
	}
	url := s.start(t, nil) + "/mcp"
	for _, era := range []string{"legacy", "modern"} {
		i := newInspector(t, era, map[string]any{"type": "streamable-http", "url": url})
		if _, said := i.do(t, 0, "--method", "tools/list", "--strict"); strings.Contains(said, "Error: tool") {
			t.Errorf("%s: %s", era, said)
		}
	}
}

// TestInspectorGoesAway interrupts the Inspector while its call runs: the call is cancelled long before its time limit.
func TestInspectorGoesAway(t *testing.T) {
	t.Parallel()
	s := prepare(t, "")
	said := make(chan string, 100)
	url := s.start(t, func(line logLine) {
		if line.Msg == "Waiting" || line.Msg == "request" && line.Code == "cancelled" {
			said <- line.Msg
		}
	})
	await := func(want string) {
		t.Helper()
		select {
		case got := <-said:
			if got != want {
				t.Fatalf("the server logged %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the server has not logged %q", want)
		}
	}
	for _, era := range []string{"legacy", "modern"} {
		i := newInspector(t, era, map[string]any{"type": "streamable-http", "url": url + "/mcp"})
		arguments := i.command(t, "--method", "tools/call", "--tool-name", "test_spin")
		client := exec.Command(arguments[0], arguments[1:]...)
		client.Dir, client.Env = setting(t, "NODE_PACKAGES"), append(os.Environ(), i.environment()...)
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		await("Waiting")
		if err := client.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = client.Wait() // the exit code says that it was interrupted
		await("request")
	}
}
