package session_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// requests are messages of the stateless version that both transports can carry.
var requests = []string{
	request("1", "server/discover", modern),
	request("1", "tools/list", modern),
	request("1", "tools/list", modern, `"cursor":null`),
	request("1", "tools/list", modern, `"cursor":""`),
	request("1", "tools/list", modern, `"cursor":"bm90aGluZw"`),
	request("1", "tools/list", modern, `"cursor":["x"]`),
	request(`"é\n"`, "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":1,"b":2}`),
	request("9007199254740993", "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":1}`),
	request("1", "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":"x","c":1}`),
	request("1", "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":1,"a":2}`),
	request("1", "tools/call", modern, `"name":"math-add"`, `"arguments":[]`),
	request("1", "tools/call", modern, `"name":"math-add"`, `"arguments":null`),
	request("1", "tools/call", modern, `"name":"echo"`, `"arguments":{"a":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+`}`),
	request("1", "tools/call", modern, `"name":"echo"`, `"arguments":{"a":"\ud800"}`),
	request("1", "tools/call", modern, `"name":"echo"`, `"arguments":{"a":1e999}`),
	request("1", "tools/call", modern, `"name":"echo"`, `"arguments":{"a":"`+strings.Repeat("x", 1<<20)+`"}`),
	request("1", "tools/call", modern, `"name":"fail"`),
	request("1", "tools/call", modern, `"name":"math-deep-off"`),
	request("1", "tools/call", modern, `"name":"none"`),
	request("1", "tools/call", modern, `"name":""`),
	request("1", "tools/call", modern, `"name":7`),
	request("1", "tools/call", modern),
	request("1", "tools/call", modern, `"name":"steps"`),
	request("1", "ping", modern),
	request("1", "initialize", modern, `"protocolVersion":"2025-11-25"`),
	request("1", "prompts/list", modern),
	request("1", "resources/read", modern, `"uri":"a"`),
	request("1", "logging/setLevel", modern, `"level":"debug"`),
	request("1", "completion/complete", modern, `"ref":{}`),
	request("1", "no/such", modern),
	request("1", "subscriptions/listen", modern),
	request("1", "subscriptions/listen", modern, `"notifications":[]`),
	request("1", "subscriptions/listen", modern, `"notifications":{"toolsListChanged":"yes"}`),
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`,
	`{"jsonrpc":"2.0","id":true,"method":"tools/list"}`,
	`{"jsonrpc":"1.0","id":1,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}`,
	`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`,
	`"tools/list"`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"`,
}

// TestSameAnswers compares the transports, request by request: the stateless version over HTTP and over pipes, and the same requests of
// an older version in a session over HTTP and over pipes.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	h := a.http(t, mcp.Options{})
	id := h.begin()
	stateless, session := a.stdio(t, session.StdioOptions{Principal: wasmtools.Everybody()}), a.stdio(t, session.StdioOptions{Principal: wasmtools.Everybody()})
	session.send(begin)
	session.next()
	for _, text := range requests {
		var m struct {
			Method string
			Params struct {
				Name string
				Meta struct {
					Version string `json:"io.modelcontextprotocol/protocolVersion"`
				} `json:"_meta"`
			}
		}
		_ = json.Unmarshal([]byte(text), &m) // an error is ignored: the fields before it are set
		version := m.Params.Meta.Version
		if version == "" {
			version = modern
		}
		compare(t, text, h.do(t.Context(), http.MethodPost, "", text, "Mcp-Protocol-Version", version, "Mcp-Method", m.Method, "Mcp-Name", m.Params.Name), stateless)
		older := strings.ReplaceAll(text, "io.modelcontextprotocol/", "io.example/")
		compare(t, older, h.do(t.Context(), http.MethodPost, "", older, "Mcp-Session-Id", id), session)
	}
}

// compare sends a request over pipes, and compares the answer with the one over HTTP.
func compare(t *testing.T, text string, r *http.Response, p *pipe) {
	t.Helper()
	_, body := read(t, r)
	p.send(text)
	// Progress comes before the answer.
	var lines []string
	for {
		line := p.next()
		if lines = append(lines, line); !strings.Contains(line, "notifications/progress") {
			break
		}
	}
	if strings.HasPrefix(body, "event:") {
		body = strings.TrimSpace(strings.ReplaceAll(body, "event: message\ndata: ", ""))
		body = strings.ReplaceAll(body, "\n\n", "\n")
	}
	got := strings.Split(body, "\n")
	if len(got) != len(lines) {
		t.Errorf("%.200s\nover HTTP: %.500s\nover pipes: %.500s", text, body, lines)
		return
	}
	for i := range got {
		if !sameJSON(t, got[i], lines[i]) {
			t.Errorf("%.200s\nover HTTP:  %.800s\nover pipes: %.800s", text, got[i], lines[i])
		}
	}
}
