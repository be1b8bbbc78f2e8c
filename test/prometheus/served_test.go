package prometheus_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// The token of Prometheus, and one for everything else.
const (
	secret = "the-secret-of-prometheus-0123456789"
	master = "the-secret-of-the-master-0123456789"
)

// programs is the folder with the server's program.
var programs string

// built builds that program when it is first needed.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "toolsrv")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/toolsrv").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "toolsrv-prometheus-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// A site has the files and settings that a server is started with.
type site struct {
	server string            // keys of [server]
	tools  string            // and of [tools]
	tables string            // further ones
	files  map[string][]byte // in the tools directory
	under  string            // a shell command to run before the server, such as ulimit
	unread bool              // start does not wait until all files are read
	away   func()            // removes its state
}

// A served is a running server. Its address stays the same when it is started again.
type served struct {
	t       *testing.T
	folder  string
	address string
	under   string
	away    func()
	log     testkit.Log
	process *exec.Cmd
}

// serve starts a server until the test ends, and waits until it is ready.
func serve(t *testing.T, s site) *served {
	t.Helper()
	r := &served{t: t, folder: t.TempDir(), address: free(t), under: s.under, away: s.away}
	if err := os.Mkdir(filepath.Join(r.folder, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range s.files {
		testkit.Put(t, filepath.Join(r.folder, "tools"), name, content)
	}
	r.configure(s)
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("the server says:\n%s", r.log.String())
		}
	})
	r.start()
	if !s.unread {
		until(t, "the server is ready", func() bool { return status(r.url()+"/readyz") == http.StatusOK })
	}
	return r
}

// configure writes the server's configuration.
func (r *served) configure(s site) {
	testkit.Put(r.t, r.folder, "toolsrv.toml", fmt.Sprintf(`
[server]
address = %q
%s
[tools]
directory = "tools"
cache_directory = "cache"
%s
[metrics]
enabled = true
principals = true
[[auth.token]]
name = "prometheus"
sha256 = "%x"
scopes = ["metrics"]
[[auth.token]]
name = "master"
sha256 = "%x"
scopes = ["*", "admin"]
%s`, r.address, s.server, s.tools, sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(master)), s.tables))
}

func (r *served) url() string { return "http://" + r.address }

func (r *served) start() {
	r.t.Helper()
	program, err := built()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", r.under+` exec "$0" "$@"`, program, "openapi", "--config", "toolsrv.toml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.folder, &r.log, &r.log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.process = cmd
}

func (r *served) kill() {
	if r.process != nil {
		_ = r.process.Process.Kill()
		_ = r.process.Wait()
		r.process = nil
	}
}

func (r *served) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.process.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// post posts a body with the master's token, and returns the status and the answer, or 0 if there is none.
func (r *served) post(path, body string, fields ...string) (int, string) {
	q, err := http.NewRequest(http.MethodPost, r.url()+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return 0, ""
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+master)
	for i := 0; i < len(fields); i += 2 {
		q.Header.Set(fields[i], fields[i+1])
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// call calls a tool, which must answer with a status.
func (r *served) call(path, body string, want int) {
	r.t.Helper()
	if got, text := r.post(path, body); got != want {
		r.t.Fatalf("%s: got %d %s, want %d", path, got, text, want)
	}
}

// guest returns a module with tools in a namespace, in the order of its functions.
func guest(t *testing.T, namespace string) []byte {
	t.Helper()
	var tools []map[string]any
	for _, name := range []string{"echo", "refuse", "reject", "trap", "spin", "recurse", "grow", "garble", "silent", "wait"} {
		tools = append(tools, map[string]any{"name": name, "description": "Does " + name + ".", "parameters": map[string]any{"type": "object"}})
	}
	return sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifest(t, namespace, tools))
}

func manifest(t *testing.T, namespace string, tools []map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"abi": 1, "namespace": namespace, "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// caller returns a module with the tool a/once, which calls the tool that its arguments name.
func caller(t *testing.T) []byte {
	t.Helper()
	return sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/caller"), manifest(t, "a", []map[string]any{{
		"name": "once", "description": "Calls.", "parameters": map[string]any{"type": "object"}, "needs": map[string]any{"tools": []string{"shop/echo"}},
	}}))
}

// large returns a guest whose memory has 6.25 MiB from the start.
func large(t *testing.T) []byte {
	t.Helper()
	module := guest(t, "shop")
	declared := []byte{5, 3, 1, 0, 2} // the memory section: one memory of two pages, without a maximum
	if bytes.Count(module, declared) != 1 {
		t.Fatal("the guest's memory section is not the expected one")
	}
	return bytes.Replace(module, declared, []byte{5, 3, 1, 0, 100}, 1)
}
