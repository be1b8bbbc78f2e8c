package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// token is accepted by the services that need a token. It must never show in a log.
	token = "e2e-secret-token"
	// patience is the longest wait for an event. It does not slow tests down: they continue as soon as the event has come.
	patience = 60 * time.Second
)

// A service is a running toolsrv.
type service struct {
	t       *testing.T
	cmd     *exec.Cmd
	log     logLines
	url     string // such as http://127.0.0.1:12345
	exited  chan struct{}
	waitErr error // valid once exited is closed
	mixed   bool  // the log also has lines from other programs, which are not JSON
}

// site writes a configuration and tool files ("shop.wasm", "sub/x.wasm") into a new directory and returns it.
// The tools directory is "tools" in it.
func site(t *testing.T, config string, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte(config))
	for name, content := range files {
		put(t, filepath.Join(dir, "tools", name), content)
	}
	return dir
}

// put writes a file and renames it into place, as a careful deployment does.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
}

// command returns toolsrv with arguments, in an environment of its own.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "LocalAppData="+home)
	return cmd
}

// start runs `toolsrv openapi` on a site until the test ends, and waits until it listens. The service listens on a
// free port whatever the configuration says.
func start(t *testing.T, dir string, flags ...string) *service {
	t.Helper()
	args := append([]string{"openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0"}, flags...)
	return run(t, command(args...), false)
}

// run runs a command that serves until the test ends, and waits until it listens.
func run(t *testing.T, cmd *exec.Cmd, mixed bool) *service {
	t.Helper()
	s := &service{t: t, cmd: cmd, exited: make(chan struct{}), mixed: mixed}
	s.log.changed = make(chan struct{})
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	s.cmd.Stdout = &stdout
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		s.log.read(stderr)
		s.waitErr = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // an error means that the process has ended
		<-s.exited
		text := strings.Join(s.log.all(), "\n")
		if strings.Contains(text, token) {
			t.Error("the log shows a token")
		}
		if strings.Contains(text, "DATA RACE") {
			t.Error("the service has a data race")
		}
		if stdout.Len() > 0 {
			t.Errorf("standard output has %q, want nothing", stdout.String())
		}
		if t.Failed() {
			t.Logf("log of the service:\n%s", text)
		}
	})
	line := s.waitLog("listening")
	address, _ := line["address"].(string)
	s.url = "http://" + address
	s.waitLog("ready")
	return s
}

// waitLog waits for a log line whose message is msg, and returns its attributes.
func (s *service) waitLog(msg string) map[string]any {
	s.t.Helper()
	return s.waitLine("message "+msg, func(line map[string]any) bool { return line["msg"] == msg })
}

// waitLine waits for a log line that match accepts.
func (s *service) waitLine(what string, match func(line map[string]any) bool) map[string]any {
	s.t.Helper()
	deadline := time.After(patience)
	for next := 0; ; {
		lines, changed := s.log.from(next)
		next += len(lines)
		for _, text := range lines {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				if !s.mixed {
					s.t.Fatalf("log line is not JSON: %s", text)
				}
				line = map[string]any{"text": text}
			}
			if match(line) {
				return line
			}
		}
		select {
		case <-changed:
		case <-s.exited:
			if more, _ := s.log.from(next); len(more) == 0 {
				s.t.Fatalf("the service ended (%v) before its log had a line with %s", s.waitErr, what)
			}
		case <-deadline:
			s.t.Fatalf("the log has no line with %s after %s", what, patience)
		}
	}
}

// exitCode waits until the service has ended.
func (s *service) exitCode() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatalf("the service still runs after %s", patience)
	}
	var exit *exec.ExitError
	if s.waitErr != nil && !errors.As(s.waitErr, &exit) {
		s.t.Fatal(s.waitErr)
	}
	return s.cmd.ProcessState.ExitCode()
}

// eventually waits until condition is true.
func (s *service) eventually(what string, condition func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for !condition() {
		select {
		case <-pace.C:
		case <-s.exited:
			s.t.Fatalf("the service ended (%v) before this was true: %s", s.waitErr, what)
		case <-deadline:
			s.t.Fatalf("still not true after %s: %s", patience, what)
		}
	}
}

// A reply is an answer with its whole body.
type reply struct {
	status int
	header http.Header
	body   string
}

// A request is a request of a client; a field with its zero value is left out.
type request struct {
	method, path, body string
	token              string
	contentType        string
	ifNoneMatch        string
}

// client keeps no connections, so that a draining service does not wait for an idle one. It does not ask for compression, so that a GET and a HEAD
// get the same headers: Go's client asks for gzip by itself, but not in a HEAD.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: patience}
}

// try sends a request and returns the answer, or the network's error.
func (s *service) try(q request) (reply, error) {
	r, err := http.NewRequest(q.method, s.url+q.path, strings.NewReader(q.body))
	if err != nil {
		return reply{}, err
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.contentType == "" && q.method == http.MethodPost {
		q.contentType = "application/json"
	}
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	if q.ifNoneMatch != "" {
		r.Header.Set("If-None-Match", q.ifNoneMatch)
	}
	answer, err := client().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(body)}, err
}

// do is try for requests that must be answered.
func (s *service) do(q request) reply {
	s.t.Helper()
	a, err := s.try(q)
	if err != nil {
		s.t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return a
}

func (s *service) get(path string) reply {
	s.t.Helper()
	return s.do(request{method: http.MethodGet, path: path, token: token})
}

func (s *service) post(path, body string) reply {
	s.t.Helper()
	return s.do(request{method: http.MethodPost, path: path, body: body, token: token})
}

// listed returns the paths of /tools, each with its version: "/shop/echo 1.0.0".
func (s *service) listed() []string {
	s.t.Helper()
	a := s.get("/tools")
	var tools []struct{ Path, Version string }
	if err := json.Unmarshal([]byte(a.body), &tools); a.status != http.StatusOK || err != nil {
		s.t.Fatalf("GET /tools: %d %s (%v)", a.status, a.body, err)
	}
	paths := make([]string, len(tools))
	for i, tool := range tools {
		paths[i] = strings.TrimSpace(tool.Path + " " + tool.Version)
	}
	return paths
}

// logLines collects the lines of a log.
type logLines struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed when the next line comes
}

func (l *logLines) read(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines, scanner.Text())
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

// from returns the lines from number n on, and a channel that is closed when there is another.
func (l *logLines) from(n int) (lines []string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[n:len(l.lines):len(l.lines)], l.changed
}

func (l *logLines) all() []string {
	lines, _ := l.from(0)
	return lines
}

// waitCount waits until the log has n lines whose message is msg.
func (s *service) waitCount(msg string, n int) {
	s.t.Helper()
	s.waitLine(msg, func(line map[string]any) bool {
		if line["msg"] == msg {
			n--
		}
		return n == 0
	})
}

// overMCP posts a call of a tool over MCP, and returns the whole answer.
func (s *service) overMCP(tool, message string) string {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+"/mcp", strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "tools/call")
	r.Header.Set("Mcp-Name", tool)
	answer, err := client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	dump, err := httputil.DumpResponse(answer, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(dump)
}
