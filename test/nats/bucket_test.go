package nats_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// tool returns a module of about the given size, whose tools have these names and answer with a text of five characters.
func tool(t testing.TB, text, namespace string, size int, names ...string) []byte {
	t.Helper()
	m := manifest.Manifest{ABI: manifest.ABI, Namespace: namespace}
	for _, name := range names {
		m.Tools = append(m.Tools, manifest.Tool{Name: name, Description: "Does " + name + ".", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	module := sandboxtest.WithManifest(t, bytes.Replace(testkit.Fixture(t, "catalog/answer"), []byte("v0000"), []byte(text), 1), encoded)
	noise := make([]byte, max(0, size-len(module)))
	random := rand.NewChaCha8(sha256.Sum256([]byte(text)))
	_, _ = random.Read(noise)
	return append(module, wasmtest.Custom("noise", string(noise))...)
}

// A replica is a server with the bucket "tools".
type replica struct {
	t     testing.TB
	of    *service.Service
	url   string
	cache string // its folder
	stop  func()
}

const adminToken = "a-token-of-an-administrator"

// startReplica starts a server. change may change its configuration.
func startReplica(t testing.TB, natsURL string, change func(c *config.Config)) *replica {
	t.Helper()
	c := config.Default()
	c.Server.Addresses = []string{"127.0.0.1:0"}
	c.Tools.Directory, c.Tools.CacheDir, c.State.URL = "", t.TempDir(), natsURL
	c.Sources = []config.Source{{Name: "shared", Bucket: "tools"}}
	c.Auth.Declared = []config.Token{{Name: "root", SHA256: sha256.Sum256([]byte(adminToken)), Scopes: []string{"*", "admin"}}}
	c.Admin.Enabled, c.Admin.Upload = true, true
	if change != nil {
		change(c)
	}
	of, err := service.Open(t.Context(), (*public.Config)(c.Handle()), service.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	r := &replica{t: t, of: of, url: "http://" + s.Addr().String(), cache: c.Tools.CacheDir}
	r.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := of.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// An answer is what a server answers to a request.
type answer struct {
	code int
	etag string
	body string
}

func (a answer) String() string { return fmt.Sprintf("%d %s %s", a.code, a.etag, a.body) }

func (r *replica) ask(method, path string, body []byte, headers ...string) answer {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+adminToken)
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{a.StatusCode, a.Header.Get("ETag"), strings.TrimSpace(string(text))}
}

func (r *replica) put(name string, content []byte, headers ...string) answer {
	r.t.Helper()
	return r.ask(http.MethodPost, "/admin/v1/put?name="+url.QueryEscape(name), content, append([]string{"Content-Type", "application/octet-stream"}, headers...)...)
}

func (r *replica) do(operation, arguments string, headers ...string) answer {
	r.t.Helper()
	return r.ask(http.MethodPost, "/admin/v1/"+operation, []byte(arguments), headers...)
}

func (r *replica) call(path string) string {
	r.t.Helper()
	a := r.ask(http.MethodPost, path, []byte("{}"))
	if a.code != 200 {
		return fmt.Sprint(a.code)
	}
	return strings.Trim(a.body, `"`)
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// serve waits until all replicas answer a call.
func served(t testing.TB, all []*replica, path, want string) {
	t.Helper()
	for i, r := range all {
		eventually(t, fmt.Sprintf("replica %d answers %s with %s", i, path, want), func() bool { return r.call(path) == want })
	}
}

// TestBucket puts, rolls back and removes files on one of three servers: soon all serve the same, with the same ETags.
func TestBucket(t *testing.T) {
	c := start(t, 3, nil)
	var all []*replica
	for range 3 {
		all = append(all, startReplica(t, c.url(), nil))
	}
	var took []time.Duration
	const puts = 40
	for i := range puts {
		text := fmt.Sprintf("v%04d", i+1)
		module := tool(t, text, "math", 100<<10, "add")
		began := time.Now()
		if a := all[i%3].put("math/add.wasm", module); a.code != 200 || a.etag != `"`+digestOf(module)+`"` {
			t.Fatalf("put: %v", a)
		}
		for n := range all {
			for all[n].call("/math/add") != text {
				if time.Since(began) > 30*time.Second {
					t.Fatalf("replica %d does not serve %s", n, text)
				}
				time.Sleep(time.Millisecond)
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("a put of 100 KB is served by all three after p50 %v, p99 %v", took[puts/2], took[puts*99/100])
	if p99 := took[puts*99/100]; p99 > 5*time.Second { // the limit is 1 s on a quiet machine
		t.Errorf("p99 is %v", p99)
	}
	last := fmt.Sprintf("v%04d", puts)
	same := func() {
		t.Helper()
		for _, path := range []string{"/tools", "/openapi.json", "/math/openapi.json"} {
			first := all[0].ask(http.MethodGet, path, nil)
			for i, r := range all[1:] {
				if a := r.ask(http.MethodGet, path, nil); a != first || a.code != 200 || a.etag == "" {
					t.Errorf("%s on replica %d: %.300v\nwant %.300v", path, i+1, a, first)
				}
			}
		}
	}
	same()
	if a := all[1].do("rollback", `{"path":"math/add","reason":"wrong"}`); a.code != 200 {
		t.Fatalf("rollback: %v", a)
	}
	before := fmt.Sprintf("v%04d", puts-1)
	served(t, all, "/math/add", before)
	same()
	for i, r := range all {
		a := r.ask(http.MethodGet, "/admin/v1/history?path=math/add", nil)
		if a.code != 200 || strings.Count(a.body, `"since"`) != 5+1 || !strings.Contains(a.body, `"reason":"wrong"`) || !strings.Contains(a.body, `"over":"`+digestOf(tool(t, last, "math", 100<<10, "add"))) {
			t.Errorf("the history on replica %d: %v", i, a)
		}
	}
	if a := all[2].do("rollback", `{"path":"math/add","version":"`+digestOf(tool(t, last, "math", 100<<10, "add"))[:12]+`"}`); a.code != 200 {
		t.Fatalf("rollback to the file's own version: %v", a)
	}
	served(t, all, "/math/add", last)
	if a := all[0].do("rollback", `{"path":"math/add"}`); a.code != 200 {
		t.Fatalf("rollback: %v", a)
	}
	served(t, all, "/math/add", before)
	if a := all[2].do("remove", `{"name":"math/add.wasm"}`); a.code != 200 {
		t.Fatalf("remove: %v", a)
	}
	served(t, all, "/math/add", "404")
	if a := all[1].do("rollback", `{"path":"math/add.wasm"}`); a.code != 200 {
		t.Fatalf("put back: %v", a)
	}
	served(t, all, "/math/add", before)
	same()
}
