package capability_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/egress"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// TestSecretsOfOthers has a service show one tool what another has sent it: a key that the host has put into that one's requests. The
// other way into the same service is searched for it, too, and after a reload that takes the key away from its tool.
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
	b, err := capability.Open(with, capability.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	grants, err := b.Grants(with)
	if err != nil {
		t.Fatal(err)
	}
	granted := func(g *capability.Grants, tool string) any {
		values, _, missing := g.For(tool, wasmtools.Needs{HTTP: []string{one.URL, otherPort.URL}})
		if len(values) != 1 {
			t.Fatalf("%s: got %v, missing %v", tool, values, missing)
		}
		return values[0].Value
	}
	ask := func(grant any, url string, headers ...[2]string) string {
		head, _ := json.Marshal(map[string]any{"method": "GET", "url": url, "headers": headers})
		g := hosttest.Begin(t, head, 1, hostabi.Run{Serving: true, Grants: []any{grant}})
		defer g.ABI.End()
		n := int32(uint32(g.Invoke(&egress.Set().Functions[0], 0, 0, uint64(len(head)), 0, 0)))
		g.Memory = make([]byte, max(n, -n))
		g.Invoke(&egress.Set().Functions[1], 0, 0)
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
		if grants, err = b.Grants(parsed("")); err != nil {
			t.Fatal(err)
		}
		check("a call from before a reload", before)
		check("after a reload", granted(grants, "/b/b"))
	}
}
