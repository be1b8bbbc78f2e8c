// Package mcp_test tries the running server with other projects' clients. run.sh runs these tests, and builds what
// they need.
package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit  = time.Minute     // the longest wait until a service is ready
	clientLimit = 2 * time.Minute // the longest time for all checks of a client
)

// setting returns a value that run.sh passes.
func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run test/mcp/run.sh", name)
	}
	return value
}

// settings are the settings of every service: a disabled tool, and a tool that runs one call at a time.
const settings = `
[[override]]
match = "test_spin"
timeout = "1m"
concurrency = 1
queue = 0

[[override]]
match = "test_wait"
timeout = "1m"
`

// withToken is the configuration if clients need the token.
const (
	token     = "a-token-of-the-tests"
	withToken = "[auth]\nrequired = true\ntokens = ['" + token + "']\n"
)

const disabled = `disabled = [{tool = "test_logging_tool", reason = "being repaired"}]`

// A setup is a directory of tools and a configuration for them.
type setup struct {
	tools  string // the directory
	config string // the file
}

// prepare makes a directory with the guest of these tests; inTools has further lines for the table [tools], and tables has
// further tables.
func prepare(t *testing.T, inTools string, tables ...string) setup {
	t.Helper()
	directory := t.TempDir()
	s := setup{tools: filepath.Join(directory, "tools"), config: filepath.Join(directory, "toolsrv.toml")}
	if err := os.Mkdir(s.tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.put(setting(t, "GUEST"), "guest.wasm"); err != nil {
		t.Fatal(err)
	}
	// The server uses the cache that toolsrv build has filled, even if a client gives it another home directory.
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[server]\naddress = '127.0.0.1:0'\n[tools]\ndirectory = '%s'\ncache_directory = '%s'\n%s\n%s\n%s",
		s.tools, filepath.Join(cache, "toolsrv"), inTools, strings.Join(tables, "\n"), settings)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// put copies a file into the directory in one step.
func (s setup) put(file, name string) error {
	module, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	path := filepath.Join(s.tools, name)
	if err := os.WriteFile(path+".tmp", module, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// stdio returns the command with which a client starts the server.
func (s setup) stdio(t *testing.T) []string {
	return []string{setting(t, "TOOLSRV"), "mcp", "--config", s.config}
}

// start runs the server over HTTP until the test ends, waits until it is ready, and returns its address. It passes each
// line that the server prints to the function each.
func (s setup) start(t *testing.T, each func(line logLine)) (url string) {
	t.Helper()
	cmd := exec.Command(setting(t, "TOOLSRV"), "openapi", "--config", s.config)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for line := range lines(stderr) {
			switch line.Msg {
			case "listening":
				url = "http://" + line.Address
			case "ready":
				ready <- url
			}
			if line.Level == "ERROR" {
				t.Errorf("toolsrv logged: %s", line.text)
			}
			if each != nil {
				each(line)
			}
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop toolsrv: %v", err)
		}
		<-ended // Wait must come after the last line
		if err := cmd.Wait(); err != nil {
			t.Errorf("toolsrv: %v", err)
		}
	})
	select {
	case url := <-ready:
		return url
	case <-ended:
		t.Fatal("toolsrv ended before it was ready")
	case <-time.After(startLimit):
		t.Fatalf("toolsrv is not ready after %v", startLimit)
	}
	return ""
}

// A logLine is a line that toolsrv writes if stderr is not a terminal.
type logLine struct {
	Level, Msg, Address, Code string
	text                      string
}

// lines returns the lines of a log, one after another.
func lines(r io.Reader) func(yield func(logLine) bool) {
	return func(yield func(logLine) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			line := logLine{text: s.Text()}
			if json.Unmarshal(s.Bytes(), &line) != nil {
				line.Level = "ERROR" // a panic, or something that is not a log line at all
			}
			if !yield(line) {
				return
			}
		}
	}
}

// run runs a command in the directory of the npm packages, with more environment variables, and returns what it
// wrote to each stream.
func run(t *testing.T, limit time.Duration, environment []string, command ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = setting(t, "NODE_PACKAGES")
	cmd.Env = append(os.Environ(), environment...)
	var out, said buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v: %w", limit, err)
	}
	return out.String(), said.String(), err
}

// A buffer can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// node returns the program that runs scripts: the one that the lock file pins, or the system's.
func node(t *testing.T) string {
	pinned := filepath.Join(setting(t, "NODE_PACKAGES"), "node_modules", ".bin", "node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned
	}
	return "node"
}

// clip returns the end of a long output, which is the useful part after a failure.
func clip(text string) string {
	const most = 8 << 10
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}
