package main_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const endpointsConfig = `
title = "Shop tools"
[tools]
disabled = ["shop/trap"]
[auth]
tokens = ["` + token + `"]
`

// TestEndpoints tries each row of the table of endpoints.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := start(t, site(t, endpointsConfig, map[string][]byte{
		"shop.wasm":     guest(t, "shop", "1.2.0", guestTools[:4]...),
		"top.wasm":      guest(t, "", "", "echo"),
		"a/b/deep.wasm": guest(t, "", "", "echo"),
	}))

	t.Run("POST calls a tool", func(t *testing.T) {
		for _, c := range []struct{ name, path, body, want string }{
			{"the result is as the tool wrote it", "/shop/echo", `{ "item":"tea",  "count":2 }`, `{ "item":"tea",  "count":2 }`},
			{"at the top level", "/echo", order, order},
			{"a folder is a namespace", "/a/b/echo", order, order},
		} {
			a := s.post(c.path, c.body)
			if a.status != http.StatusOK || a.body != c.want {
				t.Errorf("%s: got %d %s, want 200 %s", c.name, a.status, a.body, c.want)
			}
			if got := a.header.Get("Content-Type"); got != "application/json" {
				t.Errorf("%s: Content-Type %q", c.name, got)
			}
		}
	})

	t.Run("defaults are filled in", func(t *testing.T) {
		a := s.post("/shop/echo", `{"item":"tea"}`)
		var got struct {
			Item  string
			Count int
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || got.Item != "tea" || got.Count != 1 {
			t.Errorf("got %d %s, want item tea and count 1", a.status, a.body)
		}
	})

	t.Run("tools", func(t *testing.T) {
		want := []string{"/a/b/echo", "/echo", "/shop/echo 1.2.0", "/shop/refuse 1.2.0", "/shop/reject 1.2.0"}
		if got := s.listed(); !slices.Equal(got, want) {
			t.Errorf("GET /tools lists %q, want %q", got, want)
		}
		var tools []map[string]any
		if err := json.Unmarshal([]byte(s.get("/tools").body), &tools); err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"name", "namespace", "path", "method", "operation_id", "description", "parameters", "version", "digest"} {
			if _, ok := tools[2][member]; !ok {
				t.Errorf("a tool of /tools has no %q: %v", member, tools[2])
			}
		}
		if got := tools[2]["operation_id"]; got != "shop-echo" {
			t.Errorf("operation_id is %v, want shop-echo", got)
		}
	})

	t.Run("openapi.json", func(t *testing.T) {
		var doc struct {
			OpenAPI string
			Info    struct{ Title string }
			Paths   map[string]map[string]struct{ OperationID string }
		}
		if err := json.Unmarshal([]byte(s.get("/openapi.json").body), &doc); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Title != "Shop tools" {
			t.Errorf("openapi %q, title %q", doc.OpenAPI, doc.Info.Title)
		}
		if got := doc.Paths["/shop/echo"]["post"].OperationID; got != "shop-echo" {
			t.Errorf("operationId of /shop/echo is %q", got)
		}
		if _, ok := doc.Paths["/shop/trap"]; ok {
			t.Error("a disabled tool is in the document")
		}
	})

	t.Run("lists have ETags", func(t *testing.T) {
		for _, path := range []string{"/tools", "/openapi.json"} {
			full := s.get(path)
			tag := full.header.Get("ETag")
			if !strings.HasPrefix(tag, `"`) {
				t.Fatalf("GET %s: ETag %q is not a strong one", path, tag)
			}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				head := s.do(request{method: method, path: path, token: token})
				if head.status != http.StatusOK || head.header.Get("ETag") != tag || (method == http.MethodHead && head.body != "") {
					t.Errorf("%s %s: %d, ETag %q, %d bytes", method, path, head.status, head.header.Get("ETag"), len(head.body))
				}
				for _, match := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
					a := s.do(request{method: method, path: path, token: token, ifNoneMatch: match})
					if a.status != http.StatusNotModified || a.body != "" || a.header.Get("ETag") != tag {
						t.Errorf("%s %s with If-None-Match %s: %d, ETag %q, body %q; want 304", method, path, match, a.status, a.header.Get("ETag"), a.body)
					}
				}
				a := s.do(request{method: method, path: path, token: token, ifNoneMatch: `"other"`})
				if a.status != http.StatusOK {
					t.Errorf("%s %s with another tag: %d, want 200", method, path, a.status)
				}
			}
		}
	})

	t.Run("health and readiness need no token", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				if a := s.do(request{method: method, path: path}); a.status != http.StatusOK {
					t.Errorf("%s %s: %d %s, want 200", method, path, a.status, a.body)
				}
			}
		}
	})
}

// TestSameTagsOnEveryReplica starts two services on equal directories.
func TestSameTagsOnEveryReplica(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...), "top.wasm": guest(t, "", "", "echo")}
	one := start(t, site(t, endpointsConfig, files))
	two := start(t, site(t, endpointsConfig, files))
	for _, path := range []string{"/tools", "/openapi.json"} {
		a, b := one.get(path), two.get(path)
		if a.header.Get("ETag") != b.header.Get("ETag") || a.body != b.body {
			t.Errorf("%s differs between replicas:\n%s\n%s", path, a.body, b.body)
		}
	}
}
