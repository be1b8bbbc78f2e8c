package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

const errorsConfig = `
[tools]
disabled = ["spare"]
[auth]
tokens = ["` + token + `"]
[limits]
input = "1KiB"
memory = "4MiB"
[[override]]
match = "shop/spin"
timeout = "200ms"
[[override]]
match = "shop/wait"
concurrency = 1
queue = 0
[[override]]
match = "frugal/*"
fuel = 100000
stack = "16KiB"
`

// TestErrors tries each row of the table of errors.
// Proves: Answers and logs show what is meant to be seen
func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, site(t, errorsConfig, map[string][]byte{
		"shop.wasm":  guest(t, "shop", "1.0.0", guestTools...),
		"spare.wasm": guest(t, "spare", "1.0.0", "echo"),
		// Tools have fixed numbers in the module, so spin and recurse must have the same positions as in shop.
		"frugal.wasm": guest(t, "frugal", "1.0.0", guestTools...),
	}))
	const post = http.MethodPost
	for _, c := range []struct {
		name string
		request
		status int
		code   string
		detail string            // the whole detail, if it is always the same
		body   string            // the whole body, if it is always the same
		header map[string]string // headers that the answer must have
	}{
		{name: "no token", request: request{method: post, path: "/shop/echo", body: order}, status: 401,
			body: `{"detail":"Invalid or missing bearer token","code":"unauthorized"}`, header: map[string]string{"WWW-Authenticate": "Bearer"}},
		{name: "wrong token", request: request{method: http.MethodGet, path: "/tools", token: "wrong"}, status: 401,
			body: `{"detail":"Invalid or missing bearer token","code":"unauthorized"}`, header: map[string]string{"WWW-Authenticate": "Bearer"}},
		{name: "no token, and a path that does not exist", request: request{method: http.MethodGet, path: "/nowhere"}, status: 401},
		{name: "no such tool", request: request{method: post, path: "/shop/nothing", body: order, token: token}, status: 404,
			code: "not_found", detail: "Not Found"},
		{name: "a tool's path is exact", request: request{method: post, path: "/shop/echo/", body: order, token: token}, status: 404,
			code: "not_found", detail: "Not Found: did you mean /shop/echo?"},
		{name: "GET of a tool", request: request{method: http.MethodGet, path: "/shop/echo", token: token}, status: 405,
			code: "method_not_allowed", detail: "Method Not Allowed", header: map[string]string{"Allow": "OPTIONS, POST"}},
		{name: "POST to a list", request: request{method: post, path: "/tools", token: token}, status: 405,
			code: "method_not_allowed", detail: "Method Not Allowed", header: map[string]string{"Allow": "GET, HEAD, OPTIONS"}},
		{name: "body too large", request: request{method: post, path: "/shop/echo", body: `{"item":"` + strings.Repeat("x", 1<<10) + `"}`, token: token},
			status: 413, code: "input_too_large"},
		{name: "a type other than JSON", request: request{method: post, path: "/shop/echo", body: order, contentType: "text/plain", token: token},
			status: 415, code: "unsupported_media_type"},
		{name: "a member is missing", request: request{method: post, path: "/shop/echo", body: `{}`, token: token},
			status: 422, code: "invalid_arguments"},
		{name: "not JSON", request: request{method: post, path: "/shop/echo", body: `{"item":`, token: token},
			status: 422, code: "invalid_arguments"},
		{name: "the tool refuses", request: request{method: post, path: "/shop/reject", body: order, token: token},
			status: 400, code: "tool_error", detail: "No such city."},
		{name: "the tool refuses with its own status", request: request{method: post, path: "/shop/refuse", body: order, token: token},
			status: 409, code: "tool_error", detail: "Only 2 are left."},
		{name: "trap", request: request{method: post, path: "/shop/trap", body: order, token: token}, status: 500, code: "tool_trapped"},
		{name: "endless recursion", request: request{method: post, path: "/shop/recurse", body: order, token: token}, status: 500, code: "tool_stack"},
		{name: "endless recursion with a small stack", request: request{method: post, path: "/frugal/recurse", body: order, token: token},
			status: 500, code: "tool_stack", detail: "The tool used up its call stack of 16 KiB: it calls itself too deeply."},
		{name: "too many instructions", request: request{method: post, path: "/frugal/spin", body: order, token: token},
			status: 500, code: "tool_fuel", detail: "The tool ran for more than its limit of 100000 instructions."},
		{name: "too much memory", request: request{method: post, path: "/shop/grow", body: order, token: token}, status: 500, code: "tool_memory"},
		{name: "output that is not JSON", request: request{method: post, path: "/shop/garble", body: order, token: token}, status: 500, code: "tool_bad_output"},
		{name: "no output", request: request{method: post, path: "/shop/silent", body: order, token: token}, status: 500, code: "tool_bad_output"},
		{name: "disabled", request: request{method: post, path: "/spare/echo", body: order, token: token}, status: 503, code: "tool_disabled"},
		{name: "too slow", request: request{method: post, path: "/shop/spin", body: order, token: token}, status: 504, code: "tool_timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := s.do(c.request)
			if a.status != c.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, c.status)
			}
			if got := a.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type is %q, want application/json", got)
			}
			for name, want := range c.header {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if c.body != "" && strings.TrimSpace(a.body) != c.body {
				t.Errorf("body is %s, want %s", a.body, c.body)
			}
			if c.code == "" {
				return
			}
			got := failure(t, a)
			if got.Code != c.code {
				t.Errorf("code is %q, want %q (%s)", got.Code, c.code, a.body)
			}
			if detail, _ := got.Detail.(string); c.detail != "" && detail != c.detail {
				t.Errorf("detail is %q, want %q", detail, c.detail)
			}
		})
	}

	t.Run("violations are in FastAPI's words", func(t *testing.T) {
		t.Parallel()
		a := s.post("/shop/echo", `{"count":0}`)
		var got struct{ Detail []map[string]any }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Detail) != 2 {
			t.Fatalf("got %s, want two violations (%v)", a.body, err)
		}
		found := map[string]string{}
		for _, v := range got.Detail {
			loc, _ := json.Marshal(v["loc"])
			found[string(loc)], _ = v["type"].(string)
			if v["msg"] == "" || v["input"] == nil {
				t.Errorf("violation without msg or input: %v", v)
			}
		}
		if found[`["body","item"]`] != "missing" || found[`["body","count"]`] != "greater_than_equal" {
			t.Errorf("got %v", found)
		}
	})

	t.Run("a tool's own error keeps its code and data", func(t *testing.T) {
		t.Parallel()
		got := failure(t, s.post("/shop/refuse", order))
		if got.Error.Code != "out_of_stock" || string(got.Error.Data) != `{"left":2}` {
			t.Errorf("error is %+v", got.Error)
		}
	})

	t.Run("a disabled tool is named", func(t *testing.T) {
		t.Parallel()
		if a := s.post("/spare/echo", order); !strings.Contains(a.body, "spare/echo") {
			t.Errorf("got %s", a.body)
		}
	})

	t.Run("overloaded", func(t *testing.T) {
		t.Parallel()
		first := make(chan reply, 1)
		go func() {
			a, _ := s.try(request{method: post, path: "/shop/wait", body: order, token: token})
			first <- a
		}()
		said := s.waitLine("the guest's word", guestWaits)
		a := s.post("/shop/wait", order)
		if a.status != http.StatusServiceUnavailable || failure(t, a).Code != "overloaded" || a.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s with Retry-After %q, want 503 overloaded", a.status, a.body, a.header.Get("Retry-After"))
		}
		answer := <-first
		if answer.status != http.StatusOK || answer.body != `"waited"` {
			t.Errorf("the running call got %d %s, want 200", answer.status, answer.body)
		}
		if id := answer.header.Get("X-Request-Id"); id == "" || said["request_id"] != id {
			t.Errorf("the guest's log line has the request id %v, and the answer has %q", said["request_id"], id)
		}
	})
}

// guestWaits accepts the log line that the tool "wait" writes while it runs.
func guestWaits(line map[string]any) bool {
	for _, value := range line {
		if value == "waiting" {
			return true
		}
	}
	return false
}

// failed returns the body of an error.
type failed struct {
	Detail any
	Code   string
	Error  struct {
		Code string
		Data json.RawMessage
	}
}

func failure(t *testing.T, a reply) failed {
	t.Helper()
	var f failed
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	return f
}
