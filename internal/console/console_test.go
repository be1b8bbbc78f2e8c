package console_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/console"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// serve returns the handler of a server that has pages and the tool /docs/add. The server requires the token "sesame" unless open is true.
func serve(t *testing.T, o console.Options, open bool) http.Handler {
	t.Helper()
	table, err := wasmtools.NewRouteTable(tool("docs/add"))
	if err != nil {
		t.Fatal(err)
	}
	settings := openapi.Options{Doors: console.Doors(o)}
	if !open {
		tokens, err := auth.NewBearerTokenAuth([]string{"sesame"})
		if err != nil {
			t.Fatal(err)
		}
		settings.Dependencies = []openapi.Dependency{auth.Dependency(tokens)}
	}
	app := openapi.NewApp(table, settings)
	t.Cleanup(func() { _ = app.Close() })
	return app
}

// ask makes a request with pairs of header fields.
func ask(h http.Handler, method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

// TestPaths requests pages, and paths that are not pages.
func TestPaths(t *testing.T) {
	t.Parallel()
	h := serve(t, console.Options{Title: "Tools", MCP: true}, false)
	deep := strings.Repeat("/a", 32)
	for _, test := range []struct {
		name, method, target, accept string
		status                       int
		kind                         string
	}{
		{"a browser", "GET", "/", browser, 200, "text/html; charset=utf-8"},
		{"a browser with a query", "GET", "/?next=//elsewhere.example", browser, 200, "text/html; charset=utf-8"},
		{"a program without a token", "GET", "/", "*/*", 401, "application/json"},
		{"a program that says nothing", "GET", "/", "", 401, "application/json"},
		{"a program that likes JSON better", "GET", "/", "text/html;q=0.5, application/json", 401, "application/json"},
		{"a head", "HEAD", "/", browser, 200, "text/html; charset=utf-8"},
		{"a form", "POST", "/", browser, 405, "application/json"},
		{"the API", "GET", "/docs", browser, 200, "text/html; charset=utf-8"},
		{"the API for a program", "GET", "/docs", "*/*", 200, "text/html; charset=utf-8"},
		{"a namespace", "GET", "/docs/math", browser, 200, "text/html; charset=utf-8"},
		{"one below another", "GET", "/docs/math/matrix", browser, 200, "text/html; charset=utf-8"},
		{"as deep as names can be", "GET", "/docs" + deep[:64], browser, 200, "text/html; charset=utf-8"},
		{"deeper", "GET", "/docs" + deep + "/a", browser, 404, "application/json"},
		{"the place of a tool", "GET", "/docs/add", browser, 200, "text/html; charset=utf-8"},
		{"no namespace", "GET", "/docs/", browser, 404, "application/json"},
		{"a path that is not a namespace", "GET", "/docs/a.b", browser, 404, "application/json"},
		{"markup", "GET", "/docs/%3Cscript%3E", browser, 404, "application/json"},
		{"a quotation mark", "GET", "/docs/a%22%20onload=", browser, 404, "application/json"},
		{"two slashes", "GET", "/docs//math", browser, 404, "application/json"},
		{"a hidden slash", "GET", "/docs/math%2Fmatrix", browser, 404, "application/json"},
		{"another method", "POST", "/docs", browser, 405, "application/json"},
		{"a script", "GET", "/console/index.js", "*/*", 200, "text/javascript; charset=utf-8"},
		{"a style", "GET", "/console/style.css", "*/*", 200, "text/css; charset=utf-8"},
		{"a library", "GET", "/console/lib/preact.js", "*/*", 200, "text/javascript; charset=utf-8"},
		{"a library's head", "HEAD", "/console/lib/preact.js", "*/*", 200, "text/javascript; charset=utf-8"},
		{"the list of licences", "GET", "/console/lib/parts.json", "*/*", 404, "application/json"},
		{"a page under its file name", "GET", "/console/index.html", "*/*", 404, "application/json"},
		{"a compressed file", "GET", "/console/lib/preact.js.gz", "*/*", 404, "application/json"},
		{"a folder", "GET", "/console/lib/", "*/*", 404, "application/json"},
		{"up", "GET", "/console/../files.go", "*/*", 404, "application/json"},
		{"up within", "GET", "/console/lib/../../files.go", "*/*", 404, "application/json"},
		{"up in disguise", "GET", "/console/%2e%2e/files.go", "*/*", 404, "application/json"},
		{"the parent folder, with an escaped slash", "GET", "/console/..%2Ffiles.go", "*/*", 404, "application/json"},
		{"up on Windows", "GET", "/console/..%5Cfiles.go", "*/*", 404, "application/json"},
		{"a zero byte", "GET", "/console/index.js%00.css", "*/*", 404, "application/json"},
		{"an absolute path", "GET", "/console//etc/passwd", "*/*", 404, "application/json"},
		{"another script's method", "PUT", "/console/index.js", "*/*", 405, "application/json"},
		{"a list needs a token", "GET", "/tools", "*/*", 401, "application/json"},
		{"a document needs one", "GET", "/docs/openapi.json", browser, 404, "application/json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := ask(h, test.method, test.target, "Accept", test.accept)
			if kind := r.Header.Get("Content-Type"); r.StatusCode != test.status || kind != test.kind {
				t.Errorf("%s %s: got %d %s: %s", test.method, test.target, r.StatusCode, kind, body(t, r))
			}
			if test.method == "HEAD" && body(t, r) != "" {
				t.Error("the answer to HEAD has a body")
			}
			if r.Header.Get("Set-Cookie") != "" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("got the header %v", r.Header)
			}
		})
	}
	// A page does not answer POST, so this request calls the tool that has the same path.
	if r := ask(h, "POST", "/docs/add", "Authorization", "Bearer sesame"); r.StatusCode != 200 {
		t.Errorf("a call of a tool below /docs: got %d %s", r.StatusCode, body(t, r))
	}
}

// TestHeaders checks the header fields that keep pages apart from all others, also in errors.
// Proves: Web pages are kept out
func TestHeaders(t *testing.T) {
	t.Parallel()
	h := serve(t, console.Options{}, false)
	for _, target := range []string{"/", "/docs", "/docs/math", "/console/index.js", "/console/lib/swagger-ui.js", "/console/missing", "/docs/a.b"} {
		got := ask(h, "GET", target, "Accept", browser).Header
		for name, want := range map[string]string{
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", target, name, got.Get(name), want)
			}
		}
		policy := map[string]string{}
		for directive := range strings.SplitSeq(got.Get("Content-Security-Policy"), ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), " ")
			policy[name] = value
		}
		for name, want := range map[string]string{"default-src": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'", "form-action": "'none'", "object-src": "'none'"} {
			if policy[name] != want {
				t.Errorf("%s: %s is %q, want %q", target, name, policy[name], want)
			}
		}
		for _, name := range []string{"script-src", "style-src", "connect-src"} {
			if value, ok := policy[name]; ok {
				t.Errorf("%s: %s is %q: default-src is enough", target, name, value)
			}
		}
		if strings.Contains(got.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: the policy is %s", target, got.Get("Content-Security-Policy"))
		}
	}
}

// TestOtherSites checks that pages of other sites can link to our pages, but nothing else.
// Proves: Web pages are kept out
func TestOtherSites(t *testing.T) {
	t.Parallel()
	h := serve(t, console.Options{}, true)
	link := []string{"Accept", browser, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}
	for _, target := range []string{"/", "/docs", "/docs/math"} {
		if r := ask(h, "GET", target, link...); r.StatusCode != 200 {
			t.Errorf("a link to %s: got %d", target, r.StatusCode)
		}
		if r := ask(h, "POST", target, append(link, "Origin", "https://elsewhere.example")...); r.StatusCode != 403 {
			t.Errorf("a form to %s: got %d", target, r.StatusCode)
		}
	}
	if r := ask(h, "GET", "/", append(link, "Origin", "https://elsewhere.example")...); r.StatusCode != 403 || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another page reads /: got %d %v", r.StatusCode, r.Header)
	}
}

// TestIndex checks that programs are told where everything is.
func TestIndex(t *testing.T) {
	t.Parallel()
	type answer struct {
		Title, Version, Description string
		Links                       map[string]struct{ Href string }
	}
	for _, test := range []struct {
		name    string
		options console.Options
		links   string
	}{
		{"all", console.Options{Title: "<b>", Version: "2", MCP: true}, "docs:/docs mcp:/mcp openapi:/openapi.json tools:/tools"},
		{"elsewhere", console.Options{Address: "https://a.example/tools", MCP: true}, "docs:https://a.example/tools/docs mcp:https://a.example/tools/mcp openapi:https://a.example/tools/openapi.json tools:https://a.example/tools/tools"},
		{"no pages", console.Options{Hidden: true}, "openapi:/openapi.json tools:/tools"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := ask(serve(t, test.options, true), "GET", "/", "Accept", "application/json")
			var got answer
			if err := json.Unmarshal([]byte(body(t, r)), &got); err != nil {
				t.Fatal(err)
			}
			for link := range strings.FieldsSeq(test.links) {
				name, href, _ := strings.Cut(link, ":")
				if got.Links[name].Href != href {
					t.Errorf("%s is at %q, want %q", name, got.Links[name].Href, href)
				}
				delete(got.Links, name)
			}
			delete(got.Links, "console")
			if len(got.Links) > 0 || got.Title != test.options.Title || got.Version != test.options.Version {
				t.Errorf("got %+v", got)
			}
			if r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("got the header %v", r.Header)
			}
		})
	}
	closed := serve(t, console.Options{Title: "Secret tools"}, false)
	for _, credentials := range []string{"", "Bearer wrong", "Basic c2VzYW1l"} {
		if r := ask(closed, "GET", "/", "Authorization", credentials); r.StatusCode != 401 || strings.Contains(body(t, r), "Secret") {
			t.Errorf("with %q: got %d", credentials, r.StatusCode)
		}
	}
	if r := ask(closed, "GET", "/", "Authorization", "Bearer sesame"); r.StatusCode != 200 {
		t.Errorf("with the token: got %d", r.StatusCode)
	}
	if r := ask(closed, "GET", "/", "Accept", browser); strings.Contains(body(t, r), "Secret") {
		t.Error("the page shows the title to anybody")
	}
}

// TestHidden checks that there are no pages if they are switched off.
func TestHidden(t *testing.T) {
	t.Parallel()
	h := serve(t, console.Options{Hidden: true}, true)
	if r := ask(h, "GET", "/", "Accept", browser); r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("/ is %s", r.Header.Get("Content-Type"))
	}
	for _, target := range []string{"/docs", "/docs/math", "/console", "/console/index.js"} {
		if r := ask(h, "GET", target, "Accept", browser); r.StatusCode != 404 {
			t.Errorf("%s: got %d", target, r.StatusCode)
		}
	}
}

// TestForms requests each file in both forms, plain and compressed. The two forms have different entity tags.
func TestForms(t *testing.T) {
	t.Parallel()
	h := serve(t, console.Options{}, false)
	targets := []string{"/docs"}
	for _, file := range append(filesOf(t, "pages"), filesOf(t, "lib")...) {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "pages/"), ".gz")
		if extension := path.Ext(name); extension != ".html" && extension != ".json" {
			targets = append(targets, "/console/"+name)
		}
	}
	for _, target := range targets {
		plain, packed := ask(h, "GET", target), ask(h, "GET", target, "Accept-Encoding", "gzip, br")
		want, got := body(t, plain), body(t, packed)
		if packed.Header.Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		} else if len(want) > 4096 {
			t.Errorf("%s has %d bytes and is not compressed", target, len(want))
		}
		if got != want || want == "" {
			t.Errorf("%s: one form has %d bytes, the other %d", target, len(want), len(got))
		}
		for _, r := range []*http.Response{plain, packed} {
			if r.StatusCode != 200 || r.Header.Get("Cache-Control") != "no-cache" || r.Header.Get("Content-Type") == "" {
				t.Errorf("%s: got %d %v", target, r.StatusCode, r.Header)
			}
			again := ask(h, "GET", target, "If-None-Match", r.Header.Get("Etag"), "Accept-Encoding", "gzip")
			if again.StatusCode != 304 || body(t, again) != "" {
				t.Errorf("%s again: got %d", target, again.StatusCode)
			}
		}
	}
}

// filesOf returns the paths of all files below a folder, with slashes.
func filesOf(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, filepath.ToSlash(at))
		}
		return err
	})
	if err != nil || len(files) < 5 {
		t.Fatalf("%s has the files %v: %v", folder, files, err)
	}
	return files
}

// TestAddresses follows the addresses that pages load, as a browser does, also below a path prefix.
func TestAddresses(t *testing.T) {
	t.Parallel()
	h := serve(t, console.Options{}, false)
	reference := regexp.MustCompile(`(?:src|href)="([^"]+)"`)
	imported := regexp.MustCompile(`(?m)(?:from|import) ?\(?"(\.[^"]+)"`)
	for _, page := range []string{"/", "/docs", "/docs/math", "/docs/math/matrix"} {
		text := body(t, ask(h, "GET", page, "Accept", browser))
		found := reference.FindAllStringSubmatch(text, -1)
		if len(found) < 3 {
			t.Errorf("%s loads %v", page, found)
		}
		for _, m := range found {
			target, err := httptest.NewRequest("GET", page, nil).URL.Parse(m[1])
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(m[1], "/") {
				t.Errorf("%s loads %s, which a proxy with a prefix does not have", page, m[1])
			}
			if target.Path == "/tools" || target.Path == "/openapi.json" {
				continue
			}
			if r := ask(h, "GET", target.Path); r.StatusCode != 200 {
				t.Errorf("%s loads %s: got %d", page, target, r.StatusCode)
			}
		}
		if strings.Contains(text, "<script>") || strings.Contains(text, "style=") || regexp.MustCompile(`\son[a-z]+=`).MatchString(text) {
			t.Errorf("%s has scripts or styles inside", page)
		}
	}
	for _, script := range filesOf(t, "pages") {
		if path.Ext(script) != ".js" {
			continue
		}
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range imported.FindAllSubmatch(text, -1) {
			if r := ask(h, "GET", path.Join("/console", path.Dir(strings.TrimPrefix(script, "pages/")), string(m[1]))); r.StatusCode != 200 {
				t.Errorf("%s loads %s: got %d", script, m[1], r.StatusCode)
			}
		}
		if bytes.Contains(text, []byte("innerHTML")) || bytes.Contains(text, []byte("insertAdjacentHTML")) || bytes.Contains(text, []byte("document.write")) {
			t.Errorf("%s makes elements from text", script)
		}
	}
}

// tool returns a tool that answers with the number 1.
func tool(path string) *wasmtools.Tool {
	namespace, name, _ := strings.Cut(path, "/")
	return &wasmtools.Tool{
		Namespace: namespace, Name: name, Description: "Return 1.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil }),
	}
}
