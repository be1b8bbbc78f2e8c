//go:build unix

package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// spyTools are the functions of testdata/e2e/spy.wat in the order of its table.
var spyTools = []string{
	"tell", "show", "refuse", "log", "print", "report", "trap", "exit", "measure", "see", "see_shown", "see_refused", "see_logged", "see_reported",
}

// spy returns the module of testdata/e2e/spy.wat, whose tools need these origins and secrets.
func spy(t *testing.T, origins, secrets []string) []byte {
	t.Helper()
	return needing(t, "spy", map[string]any{"http": origins, "secrets": secrets}, spyTools...)
}

// needing returns a module of testdata/e2e with a manifest of tools with these names and needs.
func needing(t *testing.T, name string, needs map[string]any, names ...string) []byte {
	t.Helper()
	type tool struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	}
	var tools []tool
	for _, one := range names {
		tools = append(tools, tool{one, "Sends a request.", map[string]any{"type": "object"}})
	}
	text, err := json.Marshal(map[string]any{"abi": manifest.ABI, "namespace": name, "tools": tools, "needs": needs})
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../testdata/e2e/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	module, err = wasmbin.SetCustom(module, manifest.Section, text)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// traces returns texts that would give a secret away: its encodings, and each piece of 24 bytes of the secret as it is, since the encodings need not
// contain one. The list does not depend on how the server looks for secrets.
func traces(secret string) []string {
	list := []string{hex.EncodeToString([]byte(secret)), url.QueryEscape(secret), url.PathEscape(secret)}
	for i := 0; i+24 <= len(secret); i++ {
		list = append(list, secret[i:i+24])
	}
	for offset := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			code := e.EncodeToString([]byte("\x00\x00"[:offset] + secret))
			list = append(list, code[4:len(code)-4])
		}
	}
	quoted, _ := json.Marshal(secret)
	list = append(list, strings.Trim(string(quoted), `"`))
	for i, s := range list {
		list[i] = strings.ToLower(s)
	}
	return list
}

// A hunt looks for secrets in everything that leaves a process.
type hunt struct {
	t       *testing.T
	secrets []string
	seen    int // bytes
}

// in looks for secrets in one text.
func (h *hunt) in(where, text string) {
	h.t.Helper()
	h.seen += len(text)
	for _, form := range []string{strings.ToLower(text), strings.NewReplacer("\x00", "", "\r", "", "\n", "", `\r`, "", `\n`, "").Replace(strings.ToLower(text))} {
		for _, secret := range h.secrets {
			for _, trace := range traces(secret) {
				if strings.Contains(form, trace) {
					h.t.Errorf("%s shows a secret, as %q, in\n%.3000s", where, trace, text)
					return
				}
			}
		}
	}
}

// undisguised returns the text that the spy's tool tell has disguised.
func undisguised(t *testing.T, result string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.Trim(strings.TrimSpace(result), `"`))
	if err != nil {
		return result // an error
	}
	for i, c := range b {
		b[i] = (c>>4-1)<<4 | (c-1)&15
	}
	return string(b)
}

// TestSecretsStay has a hostile tool, which may use two secrets of the host. The host puts one of them into the tool's requests to a server that
// echoes them, and the tool may see the other. No trace of the secrets is in anything that leaves the process, and no trace of the first is in what
// the tool was given.
// Proves: Secrets stay secret
func TestSecretsStay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	const (
		injected = "sk_live_51H8mN2eZvKYlo2C0-qT/x+7=aB&c%20d"
		visible  = "whsec_\"7d8Jq\\2mXw</b>0a9Lk3\"PzR5tVb"
		rotated  = "sk_live_99ZZtop-Rj4/w+2=pQ&e%2Ff-a-longer-one-than-before"
	)
	server := newReflector(t)
	bare := echo(t)
	dir := site(t, "", map[string][]byte{"spy.wasm": spy(t, []string{server.URL, server.elsewhere.URL, bare}, []string{"signing"})})
	secretsDir := filepath.Join(dir, "secrets")
	put(t, filepath.Join(secretsDir, "token"), []byte(injected+"\n"))
	put(t, filepath.Join(dir, "signing.key"), []byte(visible))
	configuration := fmt.Sprintf(`
[limits]
log_lines = 10000
[[grant]]
match = "spy/*"
http = [%[1]q, %[2]q, %[3]q]
private = ["127.0.0.0/8"]
redirects = 3
headers = {%[1]q = {X-Api-Key = "${secret:token}"}, %[3]q = {X-Api-Key = "${secret:token}"}}
secrets = ["signing"]
[secrets]
directory = %[4]q
files = {signing = %[5]q}
`, server.URL, server.elsewhere.URL, bare, secretsDir, filepath.Join(dir, "signing.key"))
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte(configuration))
	h := &hunt{t: t, secrets: []string{injected, visible, rotated}}
	cmd := command("openapi", "--config", filepath.Join(dir, "toolsrv.toml"), "--address", "127.0.0.1:0", "--log-level", "debug")
	cmd.Env = append(cmd.Env, "GOTRACEBACK=all")
	s := run(t, cmd, true)
	ask := func(q request) reply {
		t.Helper()
		a := s.do(q)
		var header bytes.Buffer
		_ = a.header.Write(&header)
		h.in(q.method+" "+q.path+" "+q.body, header.String()+a.body)
		return a
	}
	call := func(tool string, head any) reply {
		t.Helper()
		text, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		a := ask(request{method: http.MethodPost, path: "/spy/" + tool, body: `{"head":` + string(text) + `}`})
		if tool == "tell" {
			h.in(fmt.Sprintf("what the tool got for %s", text), undisguised(t, a.body))
		}
		return a
	}
	type head struct {
		Method  string      `json:"method"`
		URL     string      `json:"url"`
		Headers [][2]string `json:"headers,omitempty"`
		Manual  string      `json:"redirect,omitempty"`
	}

	// Each way of reflecting the key, and what the tool returns.
	ways := slices.Sorted(maps.Keys(server.ways()))
	for _, way := range ways {
		for _, tool := range spyTools[:9] {
			call(tool, head{Method: "GET", URL: server.URL + "/" + url.PathEscape(way)})
		}
		call("tell", head{Method: "GET", URL: server.URL + "/" + url.PathEscape(way), Manual: "manual"})
		call("tell", head{Method: "POST", URL: server.URL + "/" + url.PathEscape(way)})
		call("tell", head{Method: "HEAD", URL: server.URL + "/" + url.PathEscape(way)})
	}
	call("tell", head{Method: "GET", URL: bare + "/"})
	call("log", head{Method: "GET", URL: bare + "/"})

	// Requests with which a tool might make the host send the secret elsewhere, or show it.
	before := len(server.sent())
	for _, headers := range [][][2]string{
		{{"X-Api-Key", "mine"}}, {{"x-api-key", "mine"}, {"X-API-KEY", "mine"}}, {{"X_Api_Key", "mine"}}, {{"X-Api-Key ", "mine"}}, {{" X-Api-Key", "mine"}},
		{{"X-A", "b\r\nX-Api-Key: mine"}}, {{"X-A\r\nX-Api-Key", "mine"}}, {{"X-A", "b\nX-B: c"}}, {{"X-A", "\x00"}}, {{"X-A", "${secret:token}"}},
		{{"Range", "bytes=0-9"}}, {{"If-Range", "x"}}, {{"Connection", "X-Api-Key"}}, {{"Accept-Encoding", "zstd"}}, {{"TE", "trailers"}}, {{"Trailer", "X-Api-Key"}},
		{{"Host", "elsewhere.example"}}, {{"Expect", "100-continue"}}, {{"Transfer-Encoding", "chunked"}}, {{"Content-Length", "5"}}, {{"Upgrade", "h2c"}},
		{{"Proxy-Authorization", "x"}}, {{"X-Forwarded-Host", server.elsewhere.URL}}, {{"Accept-Charset", "utf-16"}},
	} {
		call("tell", head{Method: "GET", URL: server.URL + "/dump", Headers: headers})
		call("log", head{Method: "GET", URL: server.URL + "/dump", Headers: headers})
	}
	for _, key := range server.sent()[before:] {
		if key != injected {
			t.Errorf("the server got the key %q", key)
		}
	}
	for _, method := range []string{"TRACE", "TRACK", "CONNECT", "get", "GET /${secret:token}", "GET\r\nX: y", ""} {
		call("tell", head{Method: method, URL: server.URL + "/dump"})
	}
	for _, at := range []string{
		server.URL + "/${secret:token}", server.URL + "/?q=${secret:token}", "http://${secret:token}@" + strings.TrimPrefix(server.URL, "http://") + "/",
		strings.Replace(server.URL, "127.0.0.1", "127.1", 1) + "/dump", server.URL + "@" + strings.TrimPrefix(server.elsewhere.URL, "http://") + "/",
		server.URL + "\\@" + strings.TrimPrefix(server.elsewhere.URL, "http://") + "/", server.elsewhere.URL + "/x", server.elsewhere.URL + "/?${secret:token}",
		strings.Replace(server.URL, "http:", "https:", 1) + "/", "file:///" + secretsDir + "/token",
	} {
		call("tell", head{Method: "GET", URL: at})
		call("log", head{Method: "GET", URL: at})
	}
	for _, name := range []string{"token", "signing", "../token", "TOKEN", ""} {
		for _, tool := range spyTools[10:] {
			call(tool, name)
		}
		if name != "signing" {
			if a := ask(request{method: http.MethodPost, path: "/spy/see", body: fmt.Sprintf(`{"head":%q}`, name)}); !strings.Contains(undisguised(t, a.body), "not_granted") {
				t.Errorf("the secret %q: got %d %s", name, a.status, undisguised(t, a.body))
			}
		}
	}
	if a := s.post("/spy/see", `{"head":"signing"}`); undisguised(t, a.body) != visible {
		t.Errorf("the tool does not see the secret that it was granted, but %q", undisguised(t, a.body))
	}

	// Somebody who knows a part of a secret can't guess what comes next: a guess, right or wrong, comes back unchanged in the URL of an answer and in
	// a tool's log lines about its arguments.
	for known := 8; known < 20; known++ {
		for _, next := range []string{injected[known : known+1], "0", "a", "Z"} {
			guess := injected[:known] + next
			text, _ := json.Marshal(map[string]any{"head": head{Method: "GET", URL: server.URL + "/clean?q=" + guess + "&r"}})
			if answer := undisguised(t, s.post("/spy/tell", string(text)).body); !strings.Contains(answer, "?q="+guess+"&r") {
				t.Fatalf("the guess %q in a URL comes back as %s", guess, answer)
			}
			s.post("/spy/see_logged", fmt.Sprintf(`{"head":%q}`, guess))
			s.waitLine("the guess as it is", func(line map[string]any) bool {
				return strings.Contains(fmt.Sprint(line["msg"]), `the secret \"`+guess+`\"`)
			})
		}
	}

	// Progress and errors over MCP.
	for _, tool := range spyTools {
		if tool == "see" {
			continue // the tool may return this secret, in a disguise
		}
		argument := any(head{Method: "GET", URL: server.URL + "/json"})
		if strings.HasPrefix(tool, "see") {
			argument = "signing"
		}
		for _, way := range []string{"json", "error"} {
			if h, ok := argument.(head); ok {
				h.URL = server.URL + "/" + way
				argument = h
			}
			text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
				"name": "spy-" + tool, "arguments": map[string]any{"head": argument}, "_meta": map[string]any{
					"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28",
					"io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			answer := s.overMCP("spy-"+tool, string(text))
			if !strings.Contains(answer, "200 OK") {
				t.Errorf("%s over MCP: got %s", tool, answer)
			}
			h.in("MCP", answer)
		}
	}

	// The tool tries to measure the secret's length by the size of what is sent.
	sizes := map[string]string{}
	for _, way := range ways {
		sizes[way] = call("measure", head{Method: "GET", URL: server.URL + "/" + url.PathEscape(way)}).body
	}

	// Requests go to the service itself, while it reads its secrets again, and when they can't be read.
	pages := func() {
		for _, path := range []string{"/tools", "/openapi.json", "/docs", "/healthz", "/readyz", "/metrics", "/mcp", "/spy", "/spy/tell", "/nowhere", "/debug/pprof/", "/debug/vars"} {
			ask(request{method: http.MethodGet, path: path})
			ask(request{method: http.MethodOptions, path: path})
		}
	}
	pages()
	put(t, filepath.Join(secretsDir, "token"), []byte(rotated+"\n"))
	put(t, filepath.Join(secretsDir, "short"), []byte("hunter2\n"))
	s.signal(syscall.SIGHUP)
	s.eventually("the next call has the new secret", func() bool {
		call("tell", head{Method: "GET", URL: server.URL + "/json"})
		sent := server.sent()
		return sent[len(sent)-1] == rotated
	})
	for _, way := range ways {
		a := call("measure", head{Method: "GET", URL: server.URL + "/" + url.PathEscape(way)}).body
		// The last digits of base64, two at most, contain some bits of the neighbouring text.
		if !strings.Contains(way, "base64") && way != "lines" && a != sizes[way] {
			t.Errorf("%s: the tool can measure the secret: %s, and %s with a longer secret", way, sizes[way], a)
		}
		call("log", head{Method: "GET", URL: server.URL + "/" + url.PathEscape(way)})
	}
	pages()
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte(strings.Replace(configuration, "signing.key", "no.key", 1)))
	s.signal(syscall.SIGHUP)
	s.waitLine("the reason", func(line map[string]any) bool { return strings.Contains(fmt.Sprint(line), "read the secret of line ") })
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte(configuration))
	for _, args := range [][]string{
		{"check", "--config", filepath.Join(dir, "toolsrv.toml")}, {"inspect", filepath.Join(dir, "tools", "spy.wasm")}, {"check", filepath.Join(dir, "tools", "spy.wasm")},
	} {
		out, _ := command(args...).CombinedOutput() // this may fail
		h.in(strings.Join(args, " "), string(out))
	}

	// No part of the secret was sent to another origin, and each request to the right one had the secret once.
	server.mu.Lock()
	h.in("a request to another origin", strings.Join(server.noted, "\n"))
	server.mu.Unlock()
	sent := slices.Compact(slices.Sorted(slices.Values(server.sent())))
	if want := []string{injected, rotated}; !slices.Equal(sent, want) {
		t.Errorf("the server got the keys %q, want %q", sent, want)
	}

	// The stacks of all goroutines, and with them everything that was logged.
	s.signal(syscall.SIGQUIT)
	<-s.exited
	lines := strings.Join(s.log.all(), "\n")
	if !strings.Contains(lines, "goroutine 1 ") || !strings.Contains(lines, `"level":"DEBUG"`) || !strings.Contains(lines, "[secret]") {
		t.Errorf("the log lacks a dump, a debug line or a redacted line")
	}
	for _, where := range []string{"answer", "result", "error", "log line", "progress"} {
		if !strings.Contains(lines, `"msg":"a secret was removed"`) || !strings.Contains(lines, `"where":"`+where+`"`) {
			t.Errorf("the log does not say that a secret was removed: %s", where)
		}
	}
	for _, line := range s.log.all() {
		h.in("the log", line)
	}
	if h.seen < 1<<20 {
		t.Errorf("searched only %d bytes", h.seen)
	}
}
