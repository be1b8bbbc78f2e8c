package server_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask sends an MCP message with more headers, given as names and values, and returns the answer.
func (r *running) ask(path, method, name, params string, headers ...string) *http.Response {
	r.tb.Helper()
	if params != "" {
		params += ","
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	q, err := http.NewRequestWithContext(r.tb.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.tb.Fatal(err)
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		if value != "" {
			q.Header.Set(key, value)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			q.Host = headers[i+1]
		} else if headers[i+1] != "" {
			q.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { answer.Body.Close() })
	return answer
}

// TestMCP lists and calls a module's tools, and listens until the server drains.
func TestMCP(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	for _, test := range []struct{ path, method, name, params, want string }{
		{"/mcp", "server/discover", "", "", `"io.modelcontextprotocol/serverInfo":{"name":"toolsrv","title":"Tools","version":"0.1.0"}`},
		{"/mcp", "tools/list", "", "", `"name":"shop-echo"`},
		{"/mcp/shop", "tools/list", "", "", `"name":"shop-echo"`},
		{"/mcp/other", "tools/list", "", "", `"tools":[]`},
		{"/mcp/shop", "tools/call", "shop-echo", `"name":"shop-echo","arguments":{"a":1}`, `"structuredContent":{"a":1}`},
		{"/mcp", "tools/call", "shop-trap", `"name":"shop-trap"`, `"code":"tool_trapped"`},
	} {
		answer := r.ask(test.path, test.method, test.name, test.params)
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(body), test.want) || err != nil {
			t.Errorf("%s %s: got %d %s (%v), want %s", test.path, test.method, answer.StatusCode, body, err, test.want)
		}
	}
	stream := bufio.NewReader(r.ask("/mcp", "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`).Body)
	if line, err := stream.ReadString('\n'); line != "event: message\n" {
		t.Fatalf("got %q (%v)", line, err)
	}
	r.stop()
	if rest, err := io.ReadAll(stream); !strings.Contains(string(rest), `"id":1,"result":{`) || err != nil {
		t.Errorf("at the drain: got %q (%v)", rest, err)
	}
	if err := r.result(); err != nil {
		t.Error(err)
	}
}

// TestMCPSearch has a configuration with which only two tools are listed. Clients use these to find and call the
// others.
func TestMCPSearch(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.MCP.Search = "always"
	r := start(t, c)
	for _, test := range []struct{ method, name, params, want string }{
		{"tools/list", "", "", `"tools":[{"name":"call_tool",`},
		{"tools/call", "search_tools", `"name":"search_tools","arguments":{"query":"echo"}`, `"structuredContent":{"tools":[{"name":"shop-echo",`},
		{"tools/call", "call_tool", `"name":"call_tool","arguments":{"name":"shop-echo","arguments":{"a":1}}`, `"structuredContent":{"a":1}`},
	} {
		answer := r.ask("/mcp", test.method, test.name, test.params)
		if body, err := io.ReadAll(answer.Body); !strings.Contains(string(body), test.want) || err != nil {
			t.Errorf("%s %s: got %d %s (%v), want %s", test.method, test.name, answer.StatusCode, body, err, test.want)
		}
	}
}

// TestMCPOff switches the door off in the configuration.
func TestMCPOff(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.MCP.Enabled = false
	r := start(t, c)
	if answer := r.ask("/mcp", "tools/list", "", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("got %d", answer.StatusCode)
	}
}

// TestMCPAccess checks that the door has the checks of every door: host, origin and token.
func TestMCPAccess(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Auth.Tokens = []string{"0123456789abcdef"}
	r := start(t, c)
	own := "http://" + r.Addr().String()
	for _, test := range []struct {
		host, origin, token string
		status              int
	}{
		{"", "", "0123456789abcdef", 200},
		{"", own, "0123456789abcdef", 200},
		{"localhost:1", "http://localhost:1", "0123456789abcdef", 200},
		{"", "", "", 401},
		{"", "", "0123456789abcdeg", 401},
		{"evil.example.com", "", "0123456789abcdef", 421},
		{"", "http://evil.example.com", "0123456789abcdef", 403},
		{"evil.example.com", "http://evil.example.com", "0123456789abcdef", 421},
	} {
		answer := r.ask("/mcp", "tools/list", "", "", "Host", test.host, "Origin", test.origin, "Authorization", "Bearer "+test.token)
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != test.status || err != nil || test.status == 200 != strings.Contains(string(body), `"cacheScope":"private"`) ||
			test.status == 401 != (answer.Header.Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%+v: got %d %s (%v)", test, answer.StatusCode, body, err)
		}
	}
}
