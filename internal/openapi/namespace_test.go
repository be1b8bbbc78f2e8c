package openapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
)

// pathsOf returns the paths of a document.
func pathsOf(t *testing.T, text string) (paths string) {
	t.Helper()
	var d struct{ Paths map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, path := range []string{"/echo", "/math/add", "/math/matrix/add", "/mathematics/add", "/shop/eu/order", "/text/upper"} {
		if _, ok := d.Paths[path]; ok {
			paths += " " + path
			delete(d.Paths, path)
		}
	}
	for path := range d.Paths {
		paths += " and " + path
	}
	return strings.TrimSpace(paths)
}

// as changes the method of a request, and returns the request.
func as(method string, r *http.Request) *http.Request {
	r.Method = method
	return r
}

// TestNamespaces checks the document of each namespace as each caller sees it.
// Proves: A caller reaches its own tools only
func TestNamespaces(t *testing.T) {
	t.Parallel()
	table := tableOf(t, echo("echo"), add(), echo("math/matrix/add"), echo("mathematics/add"), order(), echo("text/upper"))
	app := appOf(t, table, openapi.Options{Title: "Shop", Dependencies: []openapi.Dependency{scoped{}}})
	for _, test := range []struct{ name, path, scopes, want string }{
		{"one", "/text", "*", "/text/upper"},
		{"with the namespace below it, but not one whose name begins alike", "/math", "*", "/math/add /math/matrix/add"},
		{"below another", "/math/matrix", "*", "/math/matrix/add"},
		{"of two parts", "/shop/eu", "*", "/shop/eu/order"},
		{"only the first of two parts", "/shop", "*", "/shop/eu/order"},
		{"only the tool that may be called", "/math", "math/add", "/math/add"},
		{"by a pattern", "/math", "**/add", "/math/add /math/matrix/add"},
		{"hidden", "/text", "math", ""},
		{"hidden, although its beginning is visible", "/mathematics", "math", ""},
		{"for nobody", "/math", "", ""},
		{"missing", "/nothing", "*", ""},
		{"a part of a name", "/mat", "*", ""},
		{"a tool", "/math/add", "*", ""},
		{"two slashes", "//math", "*", ""},
		{"a slash at the end", "/math/", "*", ""},
		{"the root twice", "/", "*", ""},
		{"markup", "/%3Cb%3E", "*", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := test.path + "/openapi.json"
			r := serve(app, get(path, "X-Scopes", test.scopes))
			text := bodyOf(t, r)
			if test.want == "" {
				missing := serve(app, get("/nothing/openapi.json", "X-Scopes", test.scopes))
				r.Header.Del("X-Request-Id")
				missing.Header.Del("X-Request-Id")
				if r.StatusCode != http.StatusNotFound || fmt.Sprint(r.Header) != fmt.Sprint(missing.Header) || text != bodyOf(t, missing) {
					t.Errorf("got %d %v %s", r.StatusCode, r.Header, text)
				}
				for _, method := range []string{http.MethodPost, http.MethodOptions} {
					if r := serve(app, as(method, get(path, "X-Scopes", test.scopes))); r.StatusCode != http.StatusNotFound || r.Header.Get("Allow") != "" {
						t.Errorf("%s: got %d, Allow %q", method, r.StatusCode, r.Header.Get("Allow"))
					}
				}
				return
			}
			if r.StatusCode != http.StatusOK || pathsOf(t, text) != test.want {
				t.Errorf("got %d with the paths %q, want %q", r.StatusCode, pathsOf(t, text), test.want)
			}
			validate(t, text)
			if want := `"title":"Shop: ` + test.path[1:] + `"`; !strings.Contains(text, want) {
				t.Errorf("it lacks %s: %s", want, text)
			}
			if r := serve(app, post(path, "{}", "X-Scopes", test.scopes)); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("a POST: got %d, Allow %q", r.StatusCode, r.Header.Get("Allow"))
			}
			head := serve(app, as(http.MethodHead, get(path, "X-Scopes", test.scopes)))
			if head.StatusCode != http.StatusOK || head.Header.Get("ETag") != r.Header.Get("ETag") || head.ContentLength > 0 && bodyOf(t, head) != "" {
				t.Errorf("a HEAD: got %d %v", head.StatusCode, head.Header)
			}
		})
	}
}

// TestNamespaceTags checks that the tag of a document changes only with its own tools.
func TestNamespaceTags(t *testing.T) {
	t.Parallel()
	table := tableOf(t, add(), echo("math/sub"), echo("text/upper"))
	app := appOf(t, table, openapi.Options{})
	tag := func(path string) string { return serve(app, get(path)).Header.Get("ETag") }
	mathTag, textTag := tag("/math/openapi.json"), tag("/text/openapi.json")
	if mathTag == textTag || mathTag == tag("/openapi.json") || !strongTag.MatchString(mathTag) {
		t.Errorf("the tags are %s and %s", mathTag, textTag)
	}
	if err := table.Disable("/math/sub", "for a test"); err != nil {
		t.Fatal(err)
	}
	changed := serve(app, get("/math/openapi.json", "If-None-Match", mathTag))
	if text := bodyOf(t, changed); changed.StatusCode != http.StatusOK || strings.Contains(text, "/math/sub") {
		t.Errorf("after a change: got %d %s", changed.StatusCode, text)
	}
	if r := serve(app, get("/text/openapi.json", "If-None-Match", textTag)); r.StatusCode != http.StatusNotModified {
		t.Errorf("after a change elsewhere: got %d", r.StatusCode)
	}
	// A client that uses a namespace must not be told that it is gone while its tools are switched off.
	if err := table.Disable("/math", "for a test"); err != nil {
		t.Fatal(err)
	}
	if r := serve(app, get("/math/openapi.json")); r.StatusCode != http.StatusOK || pathsOf(t, bodyOf(t, r)) != "" {
		t.Errorf("with all tools off: got %d", r.StatusCode)
	}
	if err := table.Enable("/math"); err != nil {
		t.Fatal(err)
	}
	if err := table.Enable("/math/sub"); err != nil {
		t.Fatal(err)
	}
	if r := serve(app, get("/math/openapi.json", "If-None-Match", mathTag)); r.StatusCode != http.StatusNotModified {
		t.Errorf("switched back: got %d, want 304", r.StatusCode)
	}
}

// TestNamespaceOfWhole checks that both documents have the same content, so that a client may use either.
func TestNamespaceOfWhole(t *testing.T) {
	t.Parallel()
	app := appOf(t, tableOf(t, order(), add()), options(t))
	type document struct {
		Paths      map[string]any
		Security   any
		Components struct{ Schemas, Responses, SecuritySchemes map[string]any }
	}
	read := func(path string) (d document) {
		t.Helper()
		if err := json.Unmarshal([]byte(bodyOf(t, serve(app, get(path, "Authorization", "Bearer sesame")))), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	whole, part := read("/openapi.json"), read("/shop/openapi.json")
	if fmt.Sprint(part.Paths["/shop/eu/order"]) != fmt.Sprint(whole.Paths["/shop/eu/order"]) {
		t.Error("the tool differs")
	}
	if fmt.Sprint(part.Security, part.Components.SecuritySchemes, part.Components.Responses) != fmt.Sprint(whole.Security, whole.Components.SecuritySchemes, whole.Components.Responses) {
		t.Error("the security or the responses differ")
	}
	for name, s := range whole.Components.Schemas {
		if got := part.Components.Schemas[name]; !strings.HasPrefix(name, "math-") && fmt.Sprint(got) != fmt.Sprint(s) {
			t.Errorf("the schema %s is %v", name, got)
		}
	}
	if r := serve(app, get("/shop/openapi.json")); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: got %d", r.StatusCode)
	}
}
