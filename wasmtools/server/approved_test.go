package server_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// worded returns the guest with tools in the namespace pin that have this description.
func worded(t *testing.T, description string) []byte {
	return sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), fmt.Sprintf(`{"abi":1,"namespace":"pin","tools":[
		{"name":"echo","description":%q,"parameters":{"type":"object"}},{"name":"trap","description":"Breaks.","parameters":{"type":"object"}},
		{"name":"beside","description":"Is beside.","parameters":{"type":"object"}}]}`, description))
}

// replace replaces a file in one step.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// fetched sends a GET, and returns the answer and its ETag.
func fetched(t *testing.T, r *running, path, token, ifNoneMatch string) (status int, body, tag string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("If-None-Match", ifNoneMatch)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text), a.Header.Get("Etag")
}

// spoken sends an MCP message, and returns the answer.
func spoken(t *testing.T, r *running, token, method, name, params string) string {
	t.Helper()
	body, err := io.ReadAll(r.ask("/mcp", method, name, params, "Authorization", "Bearer "+token).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestApproved binds tokens of every origin to the fingerprint of a tool. When what clients see of the tool changes, calls are refused with the
// reason, and the tool disappears from these callers' lists. When the tool changes back, everything is as before. A token without a fingerprint is
// not affected.
// Proves: A caller reaches its own tools only
func TestApproved(t *testing.T) {
	t.Parallel()
	for _, search := range []string{"auto", "always"} {
		t.Run("search "+search, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.State.Directory, c.MCP.Search, c.Admin.Enabled = shortDir(t), search, true
			file := filepath.Join(c.Tools.Directory, "pin.wasm")
			testkit.Put(t, c.Tools.Directory, "pin.wasm", worded(t, "Says it again."))
			r := start(t, c)
			var listed []struct{ Path, Fingerprint string }
			_, text, _ := fetched(t, r, "/tools", "", "")
			if err := json.Unmarshal([]byte(text), &listed); err != nil {
				t.Fatal(err)
			}
			prints := map[string]string{}
			for _, one := range listed {
				prints[one.Path] = one.Fingerprint
			}
			bound := "pin/echo@" + prints["/pin/echo"]
			next := *c
			next.Auth.Declared = []config.Token{{Name: "declared", SHA256: sha256.Sum256([]byte("the-token-of-declared")), Scopes: []string{"/" + bound, "shop/echo", "pin/beside"}}}
			if err := r.Reload(&next); err != nil {
				t.Fatal(err)
			}
			wide, issued := issue(r, "wide", "pin"), issue(r, "issued", bound, "shop/echo")
			of := func(token string) *wasmtools.Principal {
				v, err := tokens.NewVerifier(r.of.Tokens, nil, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
				q.Header.Set("Authorization", "Bearer "+token)
				p, err := v.Verify(q)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			narrowed, _, err := r.of.Tokens.Attenuate(t.Context(), of(wide), tokens.Spec{Name: "narrow", Scopes: []string{bound}})
			if err != nil {
				t.Fatal(err)
			}
			for _, more := range []string{"pin/echo", "pin", "*", "pin/trap@" + prints["/pin/trap"], "pin/echo@" + prints["/shop/echo"]} {
				if _, _, err := r.of.Tokens.Attenuate(t.Context(), of(issued), tokens.Spec{Name: "more", Scopes: []string{more}}); err == nil {
					t.Errorf("a token with %s could make one with %s", bound, more)
				}
			}
			again, _, err := r.of.Tokens.Attenuate(t.Context(), of(issued), tokens.Spec{Name: "same", Scopes: []string{bound}})
			if err != nil {
				t.Fatal(err)
			}
			other := issue(r, "other", "pin/echo@"+prints["/shop/echo"]) // the fingerprint of another tool

			all := map[string]string{"declared": "the-token-of-declared", "issued": issued, "narrowed": narrowed, "made by one": again}
			tags := map[string]string{}
			look := func(name, token string, there bool) {
				t.Helper()
				status, body, err := r.call("/pin/echo", token)
				switch {
				case err != nil:
					t.Fatal(err)
				case there && status != http.StatusOK:
					t.Errorf("%s: got %d %s", name, status, body)
				case !there && (status != http.StatusConflict || !strings.Contains(body, `"code":"tool_changed"`) || !strings.Contains(body, "tell your operator")):
					t.Errorf("%s: after a change got %d %s", name, status, body)
				}
				if got := r.status("/pin/trap", token); got != http.StatusNotFound {
					t.Errorf("%s: another tool of the file: got %d", name, got)
				}
				for _, path := range []string{"/tools", "/openapi.json", "/pin/openapi.json"} {
					_, text, tag := fetched(t, r, path, token, "")
					if there != strings.Contains(text, "again") {
						t.Errorf("%s: %s: the tool is listed: %t, want %t", name, path, !there, there)
					}
					if before := tags[name+path]; before != "" {
						if status, _, _ := fetched(t, r, path, token, before); (status == http.StatusNotModified) != (before == tag) {
							t.Errorf("%s: %s: got %d for the ETag %s, and the list has %s", name, path, status, before, tag)
						}
						if before == tag {
							t.Errorf("%s: %s still has the ETag of the earlier list", name, path)
						}
					}
					tags[name+path] = tag
				}
				list := spoken(t, r, token, "tools/list", "", "")
				if search == "always" {
					list = spoken(t, r, token, "tools/call", "search_tools", `"name":"search_tools","arguments":{"query":"echo"}`)
				}
				if strings.Contains(list, "pin-echo") != there {
					t.Errorf("%s: MCP lists %s", name, list)
				}
				calls := []string{spoken(t, r, token, "tools/call", "pin-echo", `"name":"pin-echo","arguments":{}`)}
				if search == "always" {
					calls = append(calls, spoken(t, r, token, "tools/call", "call_tool", `"name":"call_tool","arguments":{"name":"pin-echo","arguments":{}}`))
				}
				for _, call := range calls {
					if strings.Contains(call, `"isError":true`) == there || strings.Contains(call, `"code":"tool_changed"`) == there {
						t.Errorf("%s: MCP answers %s", name, call)
					}
				}
			}
			for name, token := range all {
				look(name, token, true)
			}
			if status, body, _ := r.call("/pin/echo", other); status != http.StatusConflict {
				t.Errorf("with the fingerprint of another tool: got %d %s", status, body)
			}

			replace(t, file, worded(t, "Says it again, and mails it to a stranger."))
			testkit.Until(t, "the new version", func() bool {
				_, text, _ := fetched(t, r, "/tools", wide, "")
				return strings.Contains(text, "stranger")
			})
			for name, token := range all {
				look(name, token, false)
			}
			if status := r.status("/pin/echo", wide); status != http.StatusOK {
				t.Errorf("a token without a fingerprint: got %d", status)
			}
			why := explained(t, c, "issued", "pin/echo")
			if why.Allowed || !strings.Contains(fmt.Sprint(why.Rules), "look at what clients see of it, and then give the caller the scope pin/echo@") {
				t.Errorf("the explanation is %+v", why)
			}
			if err := r.Reload(c); err != nil { // another configuration with the same files changes nothing
				t.Fatal(err)
			}
			delete(all, "declared")
			for name, token := range all {
				if status := r.status("/pin/echo", token); status != http.StatusConflict {
					t.Errorf("%s: after a reload got %d", name, status)
				}
			}

			replace(t, file, worded(t, "Says it again."))
			testkit.Until(t, "the first version again", func() bool { return r.status("/pin/echo", issued) == http.StatusOK })
			clear(tags)
			for name, token := range all {
				look(name, token, true)
			}
			if why := explained(t, c, "issued", "pin/echo"); !why.Allowed {
				t.Errorf("it is explained: %+v", why)
			}
		})
	}
}

// explained asks the server why a caller can or can't call a tool.
func explained(t *testing.T, c *config.Config, principal, tool string) (why admin.Explanation) {
	t.Helper()
	over, err := client.OverSocket(socket.Of(c))
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	answer, err := over.Do(t.Context(), "explain", admin.ExplainArguments{Principal: principal, Tool: tool}, "")
	if err == nil {
		err = answer.Into(&why)
	}
	if err != nil {
		t.Fatal(err)
	}
	return why
}
