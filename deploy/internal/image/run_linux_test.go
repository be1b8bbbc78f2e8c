package image_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/toolsrv/toolsrv/deploy/internal/image"
)

const token = "a-token-of-the-tests"

// listTools has the messages of an MCP client that lists the tools.
const listTools = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// runs starts containers of the images with runc. It needs root, since only root may give files to the image's user.
func runs(t *testing.T, images map[string]v1.Image) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for the owners of files")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skipf("there is no runc: %v", err)
	}
	img := images["linux/"+runtime.GOARCH]
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root := unpack(t, img)
	tools := toolsFor(t, filepath.Join(root, "toolsrv"))
	secrets := t.TempDir()
	write(t, filepath.Join(secrets, "tokens"), token+"\n")
	// The container shares the machine's network, so that the test reaches the port.
	serve := []string{"openapi", "--address", "127.0.0.1:0", "--auth-tokens-file", "/run/secrets/tokens"}
	usual := setup{args: serve, binds: map[string]string{"/tools": tools, "/run/secrets": secrets}}

	for name, change := range map[string]func(*setup){
		"read-only, with nowhere to write to": func(*setup) {},
		"with a folder for what is temporary": func(s *setup) { s.tmpfs = []string{"/tmp"} },
		"with a cache":                        func(s *setup) { s.writes = map[string]string{"/var/cache/toolsrv": owned(t, image.User, 0o700)} },
		// Here the container lacks the file that shows which pages have changed, and the system call for it.
		"as in gVisor": func(s *setup) {
			s.masked = []string{"/proc/self/pagemap"}
			s.errno = []string{"userfaultfd", "io_uring_setup"}
		},
		"with Kubernetes' volumes": func(s *setup) { s.writes = map[string]string{"/var/cache/toolsrv": emptyDir(t, root, c)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := usual
			change(&s)
			k := start(t, root, c, s)
			k.ready("/math/add", "/hash/digest", "/greet", "/salute")
			for _, path := range s.masked {
				// The server is the container's first process: this is the path as the server sees it.
				seen := fmt.Sprintf("/proc/%d/root%s", k.pid(), strings.Replace(path, "self", "1", 1))
				if info, err := os.Stat(seen); err != nil || info.Mode()&os.ModeCharDevice == 0 {
					t.Errorf("%s is not hidden: %v", path, err)
				}
			}
			for _, other := range []string{"", "wrong"} {
				if status, body, err := k.ask(http.MethodGet, "/tools", other, ""); err != nil || status != http.StatusUnauthorized {
					t.Errorf("with the token %q: %d %s (%v), want 401", other, status, body, err)
				}
			}
			for range 2 { // the second call reuses an instance
				k.call("/math/add", `{"a": 2, "b": 3}`, "5")
				k.call("/hash/digest", `{"data": "abc"}`, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`)
				k.call("/greet", `{"name": "Ada"}`, `"Hello, Ada!"`)
				k.call("/salute", `{"name": "Ada"}`, `"Good day, Ada."`)
			}
			if code := k.stop(); code != 0 {
				t.Errorf("SIGTERM: exit code %d, want 0", code)
			}
		})
	}
	t.Run("as it comes", func(t *testing.T) {
		t.Parallel()
		asItComes(t, root, c)
	})
	t.Run("for an agent on the same machine", func(t *testing.T) {
		t.Parallel()
		s := setup{args: []string{"mcp", "/tools"}, binds: map[string]string{"/tools": tools}, stdin: listTools}
		k := start(t, root, c, s)
		if line := k.waitFor(`"id":2`); !strings.Contains(line, `"math-add"`) || !strings.Contains(line, `"hash-digest"`) {
			t.Errorf("the list is %s", line)
		}
		if code := k.exit(); code != 0 {
			t.Errorf("at the end of its input: exit code %d, want 0", code)
		}
	})
	t.Run("https", func(t *testing.T) {
		t.Parallel()
		https(t, root, c, usual)
	})
	t.Run("drain", func(t *testing.T) {
		t.Parallel()
		drain(t, root, c, usual)
	})
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		starts(t, root, c, usual)
	})
	t.Run("arm64", func(t *testing.T) {
		t.Parallel()
		emulated(t, images["linux/arm64"], tools)
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // the container's user reads it
		t.Fatal(err)
	}
}

// owned returns a folder that belongs to a user.
func owned(t *testing.T, user int, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// emptyDir returns what Kubernetes mounts as the cache of our chart's pod: a folder that the pod's init container has made in an emptyDir, which
// everybody can write to.
func emptyDir(t *testing.T, root string, c *v1.ConfigFile) string {
	t.Helper()
	volume := owned(t, 0, 0o777|os.ModeSetgid)
	k := start(t, root, c, setup{args: []string{"cache", "/mnt/toolsrv"}, writes: map[string]string{"/mnt": volume}})
	if code := k.exit(); code != 0 {
		t.Fatalf("the first container's exit code is %d", code)
	}
	dir := filepath.Join(volume, "toolsrv")
	// A restarted kubelet mounts the volume again, and gives everything in it to the pod's group.
	if err := os.Chmod(dir, 0o770|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// toolsFor returns a folder with tools in four languages, as a user of the image would have. It is made with the image's own program.
func toolsFor(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), program, "build", "math", "-o", filepath.Join(dir, "math.wasm"))
	build.Dir = "../../../examples"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	module, err := os.ReadFile("../../../examples/hash/hash.wasm")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "hash.wasm"), string(module))
	write(t, filepath.Join(dir, "hello.py"), `from toolsrv import tool

@tool
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"
`)
	write(t, filepath.Join(dir, "salute.js"), `import { tool } from "toolsrv";

export default tool({
  name: "salute",
  description: "Salutes somebody.",
  parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  run: ({ name }) => `+"`Good day, ${name}.`"+`,
});
`)
	return dir
}

// asItComes runs the image without any configuration, in its own network: without a token every call is refused, and the compose file's health check
// succeeds.
func asItComes(t *testing.T, root string, c *v1.ConfigFile) {
	t.Helper()
	k := start(t, root, c, setup{own: true})
	k.waitFor("auth.required is set and there is no token")
	k.waitFor(`"msg":"ready"`)
	if line := k.waitFor(`"msg":"listening"`); !strings.Contains(line, `"[::]:8000"`) {
		t.Errorf("it does not listen on every address at port 8000: %s", line)
	}
	out, err := runcIn(k.state, "exec", k.id, "/toolsrv", "ready").CombinedOutput()
	if err != nil || string(out) != "ready\n" {
		t.Errorf("the health check: %v: %s", err, out)
	}
	if code := k.stop(); code != 0 {
		t.Errorf("SIGTERM: exit code %d, want 0", code)
	}
}

// asks is a tool that sends a request to a server.
const asks = `from toolsrv import http, needs, tool

needs(http=["%[1]s"])

@tool
def ask() -> str:
    """Asks the server."""
    return http.get("%[1]s/").text
`

// world starts a server with TLS, whose certificate is from an authority of its own. It returns a setup that lets a tool send requests to it.
func world(t *testing.T, usual setup, handler http.HandlerFunc) (s setup, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	config, tools := t.TempDir(), t.TempDir()
	for _, dir := range []string{config, tools} {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(tools, "ask.py"), fmt.Sprintf(asks, server.URL))
	write(t, filepath.Join(config, "toolsrv.toml"), fmt.Sprintf(`[tools]
directory = "/tools"
scripts = true
[auth]
required = true
[limits]
timeout = "1m"
[[grant]]
match = "ask"
http = ["%s"]
private = ["127.0.0.0/8"]
http_timeout = "1m"
`, server.URL))
	write(t, filepath.Join(config, "authority.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	s = usual
	s.binds = map[string]string{"/tools": tools, "/run/secrets": usual.binds["/run/secrets"], "/etc/toolsrv": config}
	return s, "/etc/toolsrv/authority.pem"
}

// https makes a tool send a request by https. It fails with the image's own authorities, and succeeds with SSL_CERT_FILE.
func https(t *testing.T, root string, c *v1.ConfigFile, usual setup) {
	t.Helper()
	s, authority := world(t, usual, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "asked") })
	k := start(t, root, c, s)
	k.ready("/ask")
	if status, body, err := k.ask(http.MethodPost, "/ask", token, "{}"); err != nil || status == http.StatusOK || !strings.Contains(body, "certificate") {
		t.Errorf("a server that nobody vouches for: %d %s (%v), want an error about its certificate", status, body, err)
	}
	s.env = map[string]string{"SSL_CERT_FILE": authority}
	k = start(t, root, c, s)
	k.ready("/ask")
	k.call("/ask", "{}", `"asked"`)

	text, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("BEGIN CERTIFICATE")); n < 100 || !x509.NewCertPool().AppendCertsFromPEM(text) {
		t.Errorf("the image has %d authorities", n)
	}
}

// drain sends SIGTERM during a call: the call is answered, and then the container ends.
func drain(t *testing.T, root string, c *v1.ConfigFile, usual setup) {
	t.Helper()
	asked, answer := make(chan struct{}), make(chan struct{})
	s, authority := world(t, usual, func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, "late")
	})
	s.env = map[string]string{"SSL_CERT_FILE": authority}
	k := start(t, root, c, s)
	k.ready("/ask")
	type result struct {
		status int
		body   string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		status, body, err := k.ask(http.MethodPost, "/ask", token, "{}")
		done <- result{status, body, err}
	}()
	select {
	case <-asked:
	case r := <-done:
		t.Fatalf("the call ended before its tool sent a request: %+v", r)
	case <-time.After(patience):
		t.Fatal("the tool sends no request")
	}
	k.terminate()
	k.waitFor(`"msg":"stopping"`)
	close(answer)
	if r := <-done; r.err != nil || r.status != http.StatusOK || r.body != `"late"` {
		t.Errorf("the running call: got %+v, want its result", r)
	}
	if code := k.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// starts measures the time from runc's start until /readyz succeeds, with the examples and a filled cache, and from there to the first answers. For a
// meaningful figure, run go test ./internal/image -run TestImage/runs/start -v on an idle machine.
func starts(t *testing.T, root string, c *v1.ConfigFile, usual setup) {
	t.Helper()
	tools := examples(t)
	entries, err := os.ReadDir(usual.binds["/tools"])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(usual.binds["/tools"], e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(tools, "first-"+e.Name()), string(text))
	}
	s := usual
	s.binds = map[string]string{"/tools": tools, "/run/secrets": usual.binds["/run/secrets"]}
	s.writes = map[string]string{"/var/cache/toolsrv": owned(t, image.User, 0o700)}
	var least [4]time.Duration
	for i := range 6 {
		began := time.Now()
		k := start(t, root, c, s)
		if i == 0 {
			k.ready("/math/add", "/salute", "/greet")
			t.Logf("with an empty cache: all compiled after %v", time.Since(began))
		}
		k.ready()
		if status, body, err := k.ask(http.MethodGet, "/readyz", "", ""); err != nil || status != http.StatusOK {
			t.Fatalf("/readyz: %d %s (%v)", status, body, err)
		}
		took := [4]time.Duration{time.Since(began)}
		for j, call := range [][3]string{{"/math/add", `{"a": 2, "b": 3}`, "5"}, {"/salute", `{"name": "Ada"}`, `"Good day, Ada."`}, {"/greet", `{"name": "Ada"}`, `"Hello, Ada!"`}} {
			began := time.Now()
			k.call(call[0], call[1], call[2])
			took[j+1] = time.Since(began)
		}
		for j := range took {
			if i > 0 && (least[j] == 0 || took[j] < least[j]) {
				least[j] = took[j]
			}
		}
		if code := k.stop(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	}
	t.Logf("start_ms: %d, the least of 5; first answer of Go %v, JavaScript %v, Python %v", least[0].Milliseconds(), least[1], least[2], least[3])
	// The limit is 300 ms. A busy machine may take ten times as long.
	if least[0] > 3*time.Second {
		t.Errorf("the image takes %v to be ready", least[0])
	}
}

// examples returns a folder with the repository's examples that need no compiler: modules that are in git, and scripts.
func examples(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	n := 0
	for _, pattern := range []string{"*/*.wasm", "*-python/*_python.py", "code-javascript/*.js", "notes-javascript/*.js", "dates/dates.py", "invoice/invoice.py", "prose/prose.py"} {
		files, err := filepath.Glob("../../../examples/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := filepath.Base(file); strings.HasPrefix(name, "test_") || strings.HasSuffix(name, ".test.js") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, filepath.Base(file)), string(content))
			n++
		}
	}
	if n < 12 {
		t.Fatalf("%d examples; have they moved?", n)
	}
	return dir
}

// emulated runs the program of the arm64 image in an emulator.
func emulated(t *testing.T, img v1.Image, tools string) {
	t.Helper()
	emulator := ""
	for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
		if path, err := exec.LookPath(name); err == nil {
			emulator = path
		}
	}
	if emulator == "" {
		t.Skip("there is no qemu-aarch64")
	}
	root := unpack(t, img)
	run := func(arguments ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, emulator, append([]string{filepath.Join(root, "toolsrv")}, arguments...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CACHE_HOME=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("toolsrv %s: %v: %s", strings.Join(arguments, " "), err, out)
		}
		return string(out)
	}
	if got := run("version"); !strings.Contains(got, "linux/arm64") {
		t.Errorf("version says %s", got)
	}
	if got := run("call", filepath.Join(tools, "hash.wasm"), "digest", `{"data": "abc"}`); !strings.Contains(got, "ba7816bf8f01cfea") {
		t.Errorf("a call answers %s", got)
	}
}
