package broker_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestSecretsOfOthers makes a service show one tool what another tool has sent: a key that the host has put into the other tool's requests. The key
// is removed, even if the first tool reaches the service in another way, and even after a reload that takes the key away from its tool.
// Proves: Secrets stay secret
func TestSecretsOfOthers(t *testing.T) {
	t.Parallel()
	const key = "hunter2-hunter2-hunter2"
	var last atomic.Value
	last.Store("")
	show := func(w http.ResponseWriter, r *http.Request) {
		before := last.Swap(r.Header.Get("X-Key")).(string)
		if r.URL.Path == "/ok" {
			return
		}
		last.Store(before)
		w.Header().Set("X-Last", before)
		_, _ = fmt.Fprintf(w, "%s and %s", before, base64.StdEncoding.EncodeToString([]byte(before)))
	}
	one, otherPort := httptest.NewServer(http.HandlerFunc(show)), httptest.NewServer(http.HandlerFunc(show))
	defer one.Close()
	defer otherPort.Close()
	directory := t.TempDir()
	testkit.Put(t, directory, "key", []byte(key))
	parsed := func(headers string) *config.Config {
		c, err := config.Parse(fmt.Appendf(nil, `
[secrets]
files = {key = "key"}
[[grant]]
match = 'a/*'
http = [%[1]q]
private = ['127.0.0.0/8']
%[3]s
[[grant]]
match = 'b/*'
http = [%[1]q, %[2]q]
private = ['127.0.0.0/8']
`, one.URL, otherPort.URL, headers), directory)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	with := parsed(fmt.Sprintf("headers = {%q = {X-Key = '${secret:key}'}}", one.URL))
	b := broker.New(with, broker.Options{})
	grants, err := b.Make(with, nil)
	if err != nil {
		t.Fatal(err)
	}
	granted := func(g *broker.Grants, tool string) any {
		granted := g.For(tool, wasmtools.Needs{"http": {Words: []string{one.URL, otherPort.URL}}})
		if len(granted.Values) != 1 {
			t.Fatalf("%s: got %v, missing %v", tool, granted.Values, granted.Missing)
		}
		return granted.Values[0].Value
	}
	ask := func(grant any, url string, headers ...[2]string) string {
		head, _ := json.Marshal(map[string]any{"method": "GET", "url": url, "headers": headers})
		g := hosttest.Begin(t, head, 1, hostcall.Run{Serving: true, Grants: []any{grant}})
		defer g.ABI.End()
		n := int32(uint32(g.Do(&httpcap.Set().Functions[0], 0, 0, uint64(len(head)), 0, 0)))
		g.Memory = make([]byte, max(n, -n))
		g.Do(&httpcap.Set().Functions[1], 0, 0)
		return string(g.Memory)
	}
	before := granted(grants, "/b/b")
	ask(granted(grants, "/a/a"), one.URL+"/ok")
	if got := last.Load(); got != key {
		t.Fatalf("the service got the key %q", got)
	}
	check := func(when string, grant any) {
		t.Helper()
		for _, url := range []string{one.URL, otherPort.URL} {
			got := ask(grant, url+"/last")
			if strings.Contains(got, key) || strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(key))) || !strings.Contains(got, "[secret] and [secret]") {
				t.Errorf("%s: another tool got %q", when, got)
			}
		}
		if got := ask(grant, one.URL+"/last", [2]string{"Range", "bytes=0-9"}); !strings.Contains(got, `"code":"invalid"`) {
			t.Errorf("%s: a part of it: got %q", when, got)
		}
	}
	check("at once", before)
	for range 2 {
		if grants, err = b.Make(parsed(""), nil); err != nil {
			t.Fatal(err)
		}
		check("a call from before a reload", before)
		check("after a reload", granted(grants, "/b/b"))
	}
}

// TestSecretsThatComeMeanwhile makes a tool wait for an answer while a secret in another tool's requests gets a new value, or its first grant. The
// service shows the secret to the waiting tool.
func TestSecretsThatComeMeanwhile(t *testing.T) {
	t.Parallel()
	var last, encoding atomic.Value
	waits, goOn := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoding.Store(r.Header.Get("Accept-Encoding"))
		switch r.URL.Path {
		case "/ok":
			last.Store(r.Header.Get("X-Key"))
			return
		case "/head":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		waits <- struct{}{}
		<-goOn
		if r.URL.Path != "/head" {
			w.Header().Set("X-Last", last.Load().(string))
		}
		_, _ = w.Write([]byte(last.Load().(string)))
	}))
	defer service.Close()
	directory := t.TempDir()
	text := "[[grant]]\nmatch = 'b/*'\nhttp = [%[1]q]\nprivate = ['127.0.0.0/8']\n"
	with := "[secrets]\nfiles = {key = 'key'}\n[[grant]]\nmatch = 'a/*'\nhttp = [%[1]q]\nprivate = ['127.0.0.0/8']\nheaders = {%[1]q = {X-Key = '${secret:key}'}}\n" + text
	var b *broker.Broker
	configured := func(text string) *broker.Grants {
		t.Helper()
		c, err := config.Parse(fmt.Appendf(nil, text, service.URL), directory)
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			b = broker.New(c, broker.Options{})
		}
		grants, err := b.Make(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return grants
	}
	granted := func(g *broker.Grants, tool string) any {
		granted := g.For(tool, wasmtools.Needs{"http": {Words: []string{service.URL}}})
		return granted.Values[0].Value
	}
	ask := func(grant any, path string, headers ...[2]string) string {
		head, _ := json.Marshal(map[string]any{"method": "GET", "url": service.URL + path, "headers": headers})
		g := hosttest.Begin(t, head, 1, hostcall.Run{Serving: true, Grants: []any{grant}})
		defer g.ABI.End()
		n := int32(uint32(g.Do(&httpcap.Set().Functions[0], 0, 0, uint64(len(head)), 0, 0)))
		g.Memory = make([]byte, max(n, -n))
		g.Do(&httpcap.Set().Functions[1], 0, 0)
		return string(g.Memory)
	}
	grants := configured(text)
	for n, c := range []struct {
		path    string
		headers [][2]string
		want    string
	}{{"/wait", nil, "[secret]"}, {"/head", nil, "[secret]"}, {"/wait", [][2]string{{"Range", "bytes=0-9"}}, `"code":"invalid"`}, {"/wait", nil, "[secret]"}} {
		if n == 2 {
			b = nil // no tool has been granted anything yet
			grants = configured(text)
		}
		key := fmt.Sprintf("key-number-%d-for-the-service", n)
		testkit.Put(t, directory, "key", []byte(key))
		got := make(chan string, 1)
		go func() { got <- ask(granted(grants, "/b/b"), c.path, c.headers...) }()
		<-waits
		next := configured(with)
		ask(granted(next, "/a/a"), "/ok")
		if last.Load() != key {
			t.Fatalf("the service got the key %q, want %q", last.Load(), key)
		}
		if encoding.Load() != "identity" {
			t.Errorf("a request with a secret asks for %q", encoding.Load())
		}
		goOn <- struct{}{}
		if text := <-got; strings.Contains(text, key) || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: got %q, want %s in it", c.path, c.headers, text, c.want)
		}
		grants = next
	}
}
