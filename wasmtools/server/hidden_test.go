package server_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// inScope are the scopes of the tokens in these tests. For their holders, no other tool exists.
var inScope = []string{"math/add", "math/sub", "math/off", "shop/*"}

// world starts a server with the tools in scope, and optionally with hidden ones before, between and after them.
func world(t *testing.T, search string, hidden bool) *running {
	t.Helper()
	c := settings(t)
	c.Server.Hosts = append(c.Server.Hosts, "tools.example")
	c.State.Directory = shortDir(t)
	c.MCP.Search = search
	c.Admin.Enabled = true
	c.Tools.Disabled = []string{"math/off"}
	c.Auth.Declared = []config.Token{{Name: "declared", SHA256: sha256.Sum256([]byte("the-token-of-declared")), Scopes: inScope}}
	names := []string{"math/add", "math/sub", "math/off"}
	if hidden {
		c.Tools.Disabled = append(c.Tools.Disabled, "secret/off")
		names = append(names, "secret/launch", "secret/off", "secret/deep/launch", "math/plan", "math/sum", "adds", "hidden")
		for i := range 26 { // more than are compared for a suggestion, on both sides of math/add
			names = append(names, fmt.Sprintf("math/ac%c", 'a'+i), fmt.Sprintf("math/adda%c", 'a'+i), fmt.Sprintf("math%c/add", 'a'+i), fmt.Sprintf("a%c/add", 'a'+i))
		}
		testkit.Put(t, c.Tools.Directory, "secret/lacks.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/configured"), strings.ReplaceAll(configured, `"set"`, `"secret"`)))
		testkit.Put(t, c.Tools.Directory, "secret/broken.wasm", "not a module")
	}
	var tools []*wasmtools.Tool
	for _, name := range names {
		tools = append(tools, gotool.New(name, "Adds numbers, or launches.", func(context.Context, struct {
			N int `json:"n"`
		}) (int, error) {
			return 7, nil
		}))
	}
	r := run(t, build(t, c, tools...))
	r.log.Wait(t, `"msg":"ready"`)
	return r
}

// tokensOf makes tokens with the same scopes in each of the possible ways, and returns each token by the way
// in which it was made.
func tokensOf(t *testing.T, r *running) map[string]string {
	t.Helper()
	all := map[string]string{"declared": "the-token-of-declared", "issued": issue(r, "issued", inScope...)}
	wide := issue(r, "wide", "*")
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+wide)
	v, err := tokens.NewVerifier(r.of.Tokens, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	by, err := v.Verify(q)
	if err != nil || by == nil {
		t.Fatal(by, err)
	}
	if all["narrowed"], _, err = r.of.Tokens.Attenuate(t.Context(), by, tokens.Spec{Name: "narrow", Scopes: inScope}); err != nil {
		t.Fatal(err)
	}
	issue(r, "changed", "*")
	if all["rotated"], _, err = r.of.Tokens.Rotate(t.Context(), "changed", 0, state.Any); err != nil {
		t.Fatal(err)
	}
	if _, err = r.of.Tokens.SetScopes(t.Context(), "changed", inScope, state.Any); err != nil {
		t.Fatal(err)
	}
	return all
}

// varying matches the parts that differ between two answers with the same content.
var varying = regexp.MustCompile(`(?m)^(Date|Mcp-Session-Id): .*\r\n|"(id|created|used|version|expires)":"[^"]*"|127\.0\.0\.1:\d+`)

// TestNothingTellsOfHiddenTools sends two servers every request that the holder of a scoped token can make. One server also has tools outside these
// scopes: no answer of any door differs between the two.
// Proves: A caller reaches its own tools only
func TestNothingTellsOfHiddenTools(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("asks one after another, so the race detector would only slow it down")
	}
	for _, search := range []string{"auto", "always"} {
		t.Run("search "+search, func(t *testing.T) {
			t.Parallel()
			with, without := world(t, search, true), world(t, search, false)
			mine, others := tokensOf(t, with), tokensOf(t, without)
			requests := everyRequest()
			for kind := range mine {
				tags := map[string]string{}
				for i, make := range requests {
					if kind != "issued" && i%5 != 0 {
						continue
					}
					want, tag := dump(t, without, make(others[kind]), "")
					got, _ := dump(t, with, make(mine[kind]), "")
					if got != want || strings.Contains(got, "secret/l") && strings.Contains(got, "mean") {
						t.Errorf("%s, request %d: got\n%s\nand without hidden tools\n%s", kind, i, got, want)
					}
					if tag != "" {
						tags[fmt.Sprint(i)] = tag
						got, _ := dump(t, with, make(mine[kind]), tag)
						if !strings.HasPrefix(got, "HTTP/1.1 304 ") {
							t.Errorf("%s, request %d: the other server's list does not have the same ETag:\n%s", kind, i, got)
						}
					}
				}
				if len(tags) < 2 && kind == "issued" {
					t.Errorf("%d lists have tags", len(tags))
				}
			}
		})
	}
}

// asIs returns an answer unchanged.
var asIs = &http.Transport{DisableCompression: true}

// dump returns the answer to a request.
func dump(t *testing.T, r *running, q *http.Request, ifNoneMatch string) (text, tag string) {
	t.Helper()
	q = q.WithContext(t.Context())
	q.URL.Scheme, q.URL.Host, q.Host = "http", r.Addr().String(), "tools.example"
	q.Header.Set("X-Request-Id", "test")
	if ifNoneMatch != "" {
		q.Header.Set("If-None-Match", ifNoneMatch)
	}
	answer, err := asIs.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := httputil.DumpResponse(answer, true)
	if err != nil {
		t.Fatal(err)
	}
	return varying.ReplaceAllString(string(all), "$2"), answer.Header.Get("ETag")
}

// everyRequest returns makers of requests for a token.
func everyRequest() (all []func(token string) *http.Request) {
	add := func(method, path, body string, headers ...string) {
		all = append(all, func(token string) *http.Request {
			q, err := http.NewRequest(method, path, strings.NewReader(body))
			if err != nil {
				panic(err)
			}
			q.Header.Set("Authorization", "Bearer "+token)
			if body != "" {
				q.Header.Set("Content-Type", "application/json")
			}
			for i := 0; i < len(headers); i += 2 {
				q.Header.Set(headers[i], headers[i+1])
			}
			return q
		})
	}
	named := []string{"math/add", "math/off", "math/plan", "math/sum", "math/sums", "math/adc", "math/acz", "math/adda", "math/addab", "mathb/add", "nn/add", "add", "adds", "hidden", "hiden",
		"secret", "secret/launch", "secret/lounch", "secret/off", "secret/deep/launch", "secret/start", "secret/call", "shop/echo", "shop/eco", "launch", "plan"}
	for _, name := range named {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			add(method, "/"+name, "")
		}
		for _, body := range []string{`{"n":1}`, `{"n":"x"}`, `{"`, strings.Repeat("x", 1000)} {
			add(http.MethodPost, "/"+name, body)
		}
		add(http.MethodPost, "/"+name+"/", `{}`)
		add(http.MethodPost, "/"+name, `{}`, "Content-Type", "text/plain")
		add(http.MethodPost, "/"+name, `{}`, "Accept", "image/png")
		add(http.MethodOptions, "/"+name, "", "Origin", "https://a.example", "Access-Control-Request-Method", "POST")
	}
	for _, path := range []string{"/tools", "/openapi.json", "/docs", "/redoc", "/healthz", "/readyz", "/", "/metrics", "/console", "/admin/v1/self", "/admin/v1/tools",
		"/admin/v1/reach", "/admin/v1/explain?principal=issued&tool=secret/launch", "/admin/v1/openapi.json", "/.well-known/oauth-protected-resource"} {
		add(http.MethodGet, path, "")
		add(http.MethodHead, path, "")
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	message := func(at, method, name, params string) {
		headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Accept", "application/json, text/event-stream"}
		if name != "" {
			headers = append(headers, "Mcp-Name", name)
		}
		if params != "" {
			params += ","
		}
		add(http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`, headers...)
	}
	for _, at := range []string{"/mcp", "/mcp/math", "/mcp/secret", "/mcp/secret/deep", "/mcp/nothing", "/mcp/mathb"} {
		for _, method := range []string{"tools/list", "server/discover", "resources/list", "prompts/list", "ping"} {
			message(at, method, "", "")
		}
		message(at, "tools/list", "", `"cursor":"secret-launch"`)
		for _, name := range named {
			name = strings.ReplaceAll(name, "/", "-")
			for _, arguments := range []string{`{"n":1}`, `{"n":"x"}`, `{}`} {
				message(at, "tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s`, name, arguments))
			}
			message(at, "tools/call", "call_tool", fmt.Sprintf(`"name":"call_tool","arguments":{"name":%q,"arguments":{"n":1}}`, name))
		}
		for _, query := range []string{"", "launch", "adds numbers", "secret", "plan", "math-plan", "metric"} {
			message(at, "tools/call", "search_tools", fmt.Sprintf(`"name":"search_tools","arguments":{"query":%q}`, query))
		}
		add(http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			"Accept", "application/json, text/event-stream")
	}
	return all
}

// TestNoNewsOfHiddenTools changes tools that the holder of a token may not call, while the holder listens: it only gets events of its own tools.
// Proves: A caller reaches its own tools only
func TestNoNewsOfHiddenTools(t *testing.T) {
	t.Parallel()
	r := world(t, "auto", true)
	secret := issue(r, "listener", inScope...)
	stream := r.ask("/mcp", "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`, "Authorization", "Bearer "+secret).Body
	defer stream.Close()
	session, _ := beginSession(r, secret, "")
	_, events := beginSession(r, secret, session)
	news := listen(r, secret)
	table := r.Table()
	for _, hidden := range []string{"/secret/launch", "/secret", "/math/plan", "/hidden"} {
		if err := table.Disable(hidden, "it is hidden"); err != nil {
			t.Fatal(err)
		}
		if err := table.Enable(hidden); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Disable("/math/sub", "his own"); err != nil {
		t.Fatal(err)
	}
	if got := nextEvent(t, news); !strings.Contains(got, `"tool":"/math/sub","state":"disabled"`) || strings.Contains(got, "hidden") {
		t.Errorf("the first event is %s", got)
	}
	for name, from := range map[string]io.Reader{"a subscription": stream, "a session": events} {
		text, part := "", make([]byte, 4096)
		for !strings.Contains(text, "list_changed") {
			n, err := from.Read(part)
			if text += string(part[:n]); err != nil {
				t.Fatalf("%s: %v after %s", name, err, text)
			}
		}
	}
	if _, err := r.of.Tokens.Revoke(t.Context(), "listener", state.Any); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]io.Reader{"a subscription": stream, "a session": events} {
		rest, err := io.ReadAll(from)
		if err != nil || strings.Contains(string(rest), "list_changed") {
			t.Errorf("%s reports more than one change: %s (%v)", name, rest, err)
		}
	}
}
