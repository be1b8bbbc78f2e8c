package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// FuzzRequest sends random bodies with headers. Whatever they are, the answer is one message with the request's id, and a result comes from the tool
// that the headers name.
// Proves: A caller reaches its own tools only
func FuzzRequest(f *testing.F) {
	for _, body := range []string{message("tools/list", ""), message("tools/list", `"cursor":"made up"`), message("server/discover", ""), message("ping", ""),
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, "[" + message("tools/list", "") + "]", strings.Replace(message("tools/list", ""), `"id":1`, `"id":"\ud800"`, 1),
		`{"id":1,"meth\u006fd":"tools/list","method":"tools/call"}`, message("subscriptions/listen", `"notifications":7`)} {
		f.Add([]byte(body), "2026-07-28", "tools/list", "")
	}
	for _, body := range []string{call("math-add", `{"n":1}`), call("math-add", "null"), call("fails", "{}"), call("off", `[]`), withToken(call("text-upper", "{}"))} {
		f.Add([]byte(body), "2026-07-28", "tools/call", "math-add")
		f.Add([]byte(body), "2026-07-28", "tools/call", "=?base64?bWF0aC1hZGQ=?=")
	}
	f.Add([]byte(message("tools/list", "")), "2025-11-25", "tools/list", "")
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`), "2025-11-25", "", "")
	h := fixture(f)
	f.Fuzz(func(t *testing.T, body []byte, version, method, name string) {
		r := request(string(body))
		r.Header["Mcp-Protocol-Version"], r.Header["Mcp-Method"], r.Header["Mcp-Name"] = []string{version}, []string{method}, []string{name}
		// These are maps, because package json ignores the case of names when it fills a struct.
		var sent, params map[string]json.RawMessage
		isMessage := json.Unmarshal(body, &sent) == nil
		_ = json.Unmarshal(sent["params"], &params)
		word := func(text json.RawMessage) (s string) {
			_ = json.Unmarshal(text, &s)
			return s
		}
		if method == "subscriptions/listen" && params["_meta"] != nil {
			return // a stream, which ends when the client goes away
		}
		status, text := serve(h, r)
		if status == http.StatusAccepted {
			if text != "" || sent["id"] != nil {
				t.Errorf("a notification is answered with %s", text)
			}
			return
		}
		var got struct {
			JSONRPC string
			ID      json.RawMessage
			Result  json.RawMessage
			Error   *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.JSONRPC != "2.0" || (got.Result == nil) == (got.Error == nil) {
			t.Fatalf("got %d %s (%v)", status, text, err)
		}
		switch {
		case got.ID != nil && string(got.ID) != string(sent["id"]) && isMessage:
			t.Errorf("the id %s is answered with %s", sent["id"], got.ID)
		case got.Error != nil && (got.Error.Code >= 0 || got.Error.Message == "" || status == http.StatusOK && got.Error.Code > -32602):
			t.Errorf("got %d %s", status, text)
		case got.Result == nil:
		case version != "2026-07-28" && word(sent["method"]) == "initialize": // begins a session
		case status != http.StatusOK || got.ID == nil || !isMessage || version != "2026-07-28" || method != word(sent["method"]):
			t.Errorf("got %d %s for the method %q", status, text, method)
		case method == "tools/call":
			if inner, ok := strings.CutPrefix(name, "=?base64?"); ok && strings.HasSuffix(inner, "?=") {
				decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
				name = string(decoded)
			}
			if called := word(params["name"]); name != called {
				t.Errorf("called %q, the header says %q", called, name)
			}
		}
	})
}

// FuzzPath sends a request to a path. Either that is the path of a namespace, or the door does not answer.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/mcp", "/mcp/", "/mcp/math", "/mcp/a/b", "/mcp//", "/mcp/../tools", "/mcp/\x00", "/mcp/é"} {
		f.Add(path)
	}
	h := fixture(f)
	f.Fuzz(func(t *testing.T, path string) {
		if path != "/mcp" && !strings.HasPrefix(path, "/mcp/") {
			return
		}
		status, body := serve(h, at(path, request(message("tools/list", ""))))
		if status != http.StatusNotFound && (status != http.StatusOK || !strings.Contains(body, `"tools":[`)) {
			t.Errorf("%q: got %d %s", path, status, body)
		}
	})
}
