package openapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const anyObject = `{"type":"object"}`

const addSchema = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`

// tool returns a tool that is a Go function and accepts any arguments.
func tool(path string, f wasmtools.CallerFunc) *wasmtools.Tool {
	dir, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	return &wasmtools.Tool{
		Namespace: dir, Name: name, Description: "Does " + name + ".",
		Parameters: schema.MustCompile(anyObject), Caller: f,
	}
}

func failing(path string, err error) *wasmtools.Tool {
	return tool(path, func(context.Context, *wasmtools.Call) ([]byte, error) { return nil, err })
}

func echo(path string) *wasmtools.Tool {
	return tool(path, func(_ context.Context, call *wasmtools.Call) ([]byte, error) { return call.Arguments, nil })
}

func add() *wasmtools.Tool {
	t := tool("math/add", func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
		var in struct{ A, B float64 }
		if err := json.Unmarshal(call.Arguments, &in); err != nil {
			return nil, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "a or b is too large", Err: err}
		}
		sum, err := json.Marshal(in.A + in.B)
		if err != nil {
			return nil, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "the sum is too large", Err: err}
		}
		return sum, nil
	})
	t.Description = "Add two numbers."
	t.Parameters = schema.MustCompile(addSchema)
	t.Version = "1.2.0"
	t.Digest = strings.Repeat("ab", 32)
	result, err := schema.Compile(json.RawMessage(`{"type":"number"}`))
	if err != nil {
		panic(err)
	}
	t.Result = result
	t.Examples = []wasmtools.Example{{Arguments: json.RawMessage(`{"a": 1, "b": 2}`), Result: json.RawMessage(`3`)}}
	return t
}

func tableOf(tb testing.TB, tools ...*wasmtools.Tool) *wasmtools.RouteTable {
	tb.Helper()
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

func appOf(tb testing.TB, table *wasmtools.RouteTable, o openapi.Options) *openapi.App {
	tb.Helper()
	app := openapi.NewApp(table, o)
	tb.Cleanup(func() {
		if err := app.Close(); err != nil {
			tb.Error(err)
		}
	})
	return app
}

func bearer(tb testing.TB, tokens ...string) *auth.Authenticator {
	tb.Helper()
	a, err := auth.NewBearerTokenAuth(tokens)
	if err != nil {
		tb.Fatal(err)
	}
	return auth.Dependency(a)
}

// post makes a request with a JSON body.
func post(path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return with(r, headers...)
}

func get(path string, headers ...string) *http.Request {
	return with(httptest.NewRequest(http.MethodGet, path, nil), headers...)
}

func with(r *http.Request, headers ...string) *http.Request {
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(tb testing.TB, r *http.Response) string {
	tb.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test -update to write it", err)
	}
	if got != string(want) {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s\nrun go test -update where the change is wanted", path, got, want)
	}
}

// conversation returns a response in the form of the golden files.
func conversation(t *testing.T, why string, r *http.Response) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n%d\n", why, r.StatusCode)
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&text, "%s: %s\n", name, strings.Join(r.Header[name], " | "))
	}
	fmt.Fprintf(&text, "\n%s\n", bodyOf(t, r))
	return text.String()
}

func TestConversations(t *testing.T) {
	t.Parallel()
	small := echo("small")
	small.MaxInput = 16
	slow := post("/echo", "{")
	slow.Body, slow.ContentLength = io.NopCloser(io.MultiReader(slow.Body, iotest.ErrReader(os.ErrDeadlineExceeded))), -1
	nine := errors.New("the cause is for the log")
	code := func(c wasmtools.Code, message string) error {
		return &wasmtools.Error{Code: c, Message: message, Err: nine}
	}
	table := tableOf(t, add(), small, echo("echo"), echo("off/named"), echo("off/plain"),
		failing("fail/plain", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "No such city"}),
		failing("fail/full", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "Seat <7> & 8 are taken", Status: 409, ToolCode: "taken", Data: json.RawMessage(`{"seats": [7, 8]}`)}),
		failing("fail/status", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "Odd", Status: 200}),
		failing("fail/data", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "Odd", Data: json.RawMessage(`{`)}),
		failing("fail/trapped", code(wasmtools.CodeToolTrapped, "The tool crashed: unreachable")),
		failing("fail/bad-output", code(wasmtools.CodeToolBadOutput, "The tool's result is not JSON")),
		failing("fail/memory", code(wasmtools.CodeToolMemory, "")),
		failing("fail/stack", code(wasmtools.CodeToolStack, "")),
		failing("fail/fuel", code(wasmtools.CodeToolFuel, "")),
		failing("fail/timeout", code(wasmtools.CodeToolTimeout, "The tool did not finish within 5s")),
		failing("fail/overloaded", code(wasmtools.CodeOverloaded, "")),
		failing("fail/cancelled", code(wasmtools.CodeCancelled, "")),
		failing("fail/internal", &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New("the password is hunter2")}),
		failing("fail/coded-internal", code(wasmtools.CodeInternal, "the password is hunter2")),
		failing("fail/unknown-code", code("surprise", "the password is hunter2")),
		failing("fail/nil", (*wasmtools.Error)(nil)),
		failing("fail/bad-violation", &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []misfit.Violation{{Input: json.RawMessage("{")}}}),
		tool("fail/empty", func(context.Context, *wasmtools.Call) ([]byte, error) { return nil, nil }),
		tool("fail/panic", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("the password is hunter2") }),
	)
	for path, reason := range map[string]string{"off/named": "rebuilding the index", "off/plain": ""} {
		if err := table.Disable(path, reason); err != nil {
			t.Fatal(err)
		}
	}
	app := appOf(t, table, openapi.Options{})
	locked := appOf(t, table, openapi.Options{
		Dependencies: []openapi.Dependency{bearer(t, "secret")},
		Ready:        func() error { return errors.New("the password is hunter2") },
	})
	tests := []struct {
		name, why string
		handler   http.Handler
		request   *http.Request
	}{
		{"result", "the tool's bytes, no envelope", app, post("/math/add", `{"a": 1, "b": 2}`)},
		{"result-as-written", "spaces and escapes of a result are kept", app, post("/echo", "{ \"x\" : \"\\u00e9<&>\" }")},
		{"empty-body", "an empty body is {}", app, post("/echo", "", "Content-Type", "")},
		{"health", "", app, get("/healthz")},
		{"ready", "", app, get("/readyz")},
		{"not-ready", "the reason goes to the log", locked, get("/readyz")},
		{"health-without-token", "a probe has no token", locked, get("/healthz")},
		{"unauthorized", "FastAPI's body, with a code", locked, post("/math/add", `{"a": 1, "b": 2}`)},
		{"unauthorized-list", "", locked, get("/tools")},
		{"unauthorized-unknown", "without a token nobody learns which paths exist", locked, get("/nowhere")},
		{"authorized", "", locked, post("/math/add", `{"a": 1, "b": 2}`, "Authorization", "bearer secret")},
		{"not-found", "", app, post("/math/nothing", `{}`)},
		{"not-found-slash", "a path is exact: no redirection", app, post("/math/add/", `{}`)},
		{"not-found-case", "a path is exact: no redirection", app, post("/Math/add", `{}`)},
		{"not-found-root", "", app, get("/")},
		{"method-not-allowed-tool", "", app, get("/math/add")},
		{"method-not-allowed-list", "", app, post("/tools", `{}`)},
		{"options", "the methods of a path", app, httptest.NewRequest(http.MethodOptions, "/math/add", nil)},
		{"options-unknown", "", app, httptest.NewRequest(http.MethodOptions, "/nowhere", nil)},
		{"too-large", "by its Content-Length, before it is read", app, post("/small", `{"text": "0123456789"}`)},
		{"request-timeout", "a read deadline of net/http", app, slow},
		{"not-found-encoded", "a proxy in front may not take an encoded slash for one", app, post("/math%2Fadd", `{"a": 1, "b": 2}`)},
		{"type-missing", "a page of another site can send that", app, post("/echo", `{}`, "Content-Type", "")},
		{"type-text", "a page of another site can send that", app, post("/echo", `{}`, "Content-Type", "text/plain")},
		{"type-charset", "", app, post("/echo", `{}`, "Content-Type", "application/json; charset=latin1")},
		{"type-broken", "", app, post("/echo", `{}`, "Content-Type", "application/json; charset")},
		{"encoding", "", app, post("/echo", `{}`, "Content-Encoding", "gzip")},
		{"invalid-json", "", app, post("/math/add", `{"a": 1,`)},
		{"invalid-missing", "", app, post("/math/add", `{"a": "one"}`)},
		{"invalid-list", "a body is an object", app, post("/math/add", `[1, 2]`)},
		{"tool-error", "", app, post("/fail/plain", `{}`)},
		{"tool-error-full", "the tool's own status, code and data", app, post("/fail/full", `{}`)},
		{"tool-error-bad-status", "400 where the tool's own is none", app, post("/fail/status", `{}`)},
		{"tool-error-bad-data", "data that is not JSON is left out", app, post("/fail/data", `{}`)},
		{"tool-trapped", "", app, post("/fail/trapped", `{}`)},
		{"tool-bad-output", "", app, post("/fail/bad-output", `{}`)},
		{"tool-empty-output", "a Go function that returned nothing", app, post("/fail/empty", `{}`)},
		{"tool-memory", "", app, post("/fail/memory", `{}`)},
		{"tool-stack", "", app, post("/fail/stack", `{}`)},
		{"tool-fuel", "", app, post("/fail/fuel", `{}`)},
		{"tool-timeout", "", app, post("/fail/timeout", `{}`)},
		{"tool-disabled", "", app, post("/off/named", `{}`)},
		{"tool-disabled-plain", "", app, post("/off/plain", `{}`)},
		{"tool-disabled-get", "a disabled tool has still its path", app, get("/off/plain")},
		{"overloaded", "", app, post("/fail/overloaded", `{}`)},
		{"cancelled", "for the log: nobody reads it", app, post("/fail/cancelled", `{}`)},
		{"internal", "the cause is not shown", app, post("/fail/internal", `{}`)},
		{"internal-coded", "the cause is not shown", app, post("/fail/coded-internal", `{}`)},
		{"internal-unknown-code", "a code that the service does not have", app, post("/fail/unknown-code", `{}`)},
		{"internal-nil", "a Go function that returned a nil *Error", app, post("/fail/nil", `{}`)},
		{"internal-violation", "a violation that is not JSON", app, post("/fail/bad-violation", `{}`)},
		{"internal-panic", "a Go function that panicked", app, post("/fail/panic", `{}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.Header.Set("X-Request-Id", "id-of-the-test")
			got := conversation(t, tt.why, serve(tt.handler, tt.request))
			if strings.Contains(got, "hunter2") || strings.Contains(got, nine.Error()) {
				t.Errorf("the answer shows its cause:\n%s", got)
			}
			golden(t, tt.name+".txt", got)
		})
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	var seen string
	app := appOf(t, tableOf(t, tool("who", func(ctx context.Context, _ *wasmtools.Call) ([]byte, error) {
		seen = openapi.RequestID(ctx)
		return []byte("1"), nil
	})), openapi.Options{})
	tests := []struct {
		name, own string
		kept      bool
	}{
		{"none", "", false},
		{"well-formed", "Gateway-7.a_b", true},
		{"longest", strings.Repeat("a", 64), true},
		{"too long", strings.Repeat("a", 65), false},
		{"blank", "a b", false},
		{"line break", "a\nb", false},
		{"not ASCII", "é", false},
	}
	ids := map[string]bool{}
	for _, tt := range tests {
		r := post("/who", `{}`)
		if tt.own != "" {
			r.Header["X-Request-Id"] = []string{tt.own}
		}
		got := serve(app, r).Header.Get("X-Request-Id")
		if (got == tt.own) != tt.kept || got == "" || got != seen || ids[got] {
			t.Errorf("%s: got id %q, the caller saw %q; kept: want %t", tt.name, got, seen, tt.kept)
		}
		ids[got] = true
	}
	r := post("/who", `{}`)
	r.Header["X-Request-Id"] = []string{"one", "two"}
	if got := serve(app, r).Header.Get("X-Request-Id"); got == "one" || got == "two" {
		t.Errorf("two ids: got %q, want a new one", got)
	}
	if got := openapi.RequestID(t.Context()); got != "" {
		t.Errorf("a context without a request has the id %q", got)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	app := appOf(t, tableOf(t, add()), openapi.Options{})
	server := httptest.NewServer(app)
	defer server.Close()
	for _, path := range []string{"/tools", "/openapi.json", "/healthz", "/readyz"} {
		head, err := server.Client().Head(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer head.Body.Close()
		full, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Body.Close()
		whole := bodyOf(t, full)
		if text := bodyOf(t, head); head.StatusCode != 200 || text != "" || head.ContentLength != int64(len(whole)) {
			t.Errorf("HEAD %s: got %d, length %d, body %q; want 200, length %d, no body", path, head.StatusCode, head.ContentLength, text, len(whole))
		}
		if got, want := head.Header.Get("ETag"), full.Header.Get("ETag"); got != want {
			t.Errorf("HEAD %s: got ETag %q, GET has %q", path, got, want)
		}
	}
}

func TestNewAppPanics(t *testing.T) {
	t.Parallel()
	table := tableOf(t)
	tests := []struct {
		name  string
		table *wasmtools.RouteTable
		deps  []openapi.Dependency
		want  string
	}{
		{"no table", nil, nil, "openapi.NewApp: table is nil"},
		{"nil dependency", table, []openapi.Dependency{nil}, "web.NewMux: Dependencies[0] is nil"},
		{"scheme without a name", table, []openapi.Dependency{scheme{"", `{}`}}, "web.NewMux: Dependencies[0]: the security scheme"},
		{"scheme with a slash", table, []openapi.Dependency{scheme{"a/b", `{}`}}, "web.NewMux: Dependencies[0]: the security scheme"},
		{"scheme that is not JSON", table, []openapi.Dependency{scheme{"a", `{`}}, "web.NewMux: Dependencies[0]: the security scheme"},
		{"scheme that is null", table, []openapi.Dependency{scheme{"a", `null`}}, "web.NewMux: Dependencies[0]: the security scheme"},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.HasPrefix(fmt.Sprint(v), tt.want) {
					t.Errorf("%s: got panic %v, want %s", tt.name, v, tt.want)
				}
			}()
			openapi.NewApp(tt.table, openapi.Options{Dependencies: tt.deps})
		}()
	}
}

// scheme is a dependency that admits everybody.
type scheme struct{ name, text string }

func (scheme) Check(*http.Request) error { return nil }
func (s scheme) Schemes() []auth.Scheme {
	return []auth.Scheme{{Name: s.name, Description: json.RawMessage(s.text)}}
}
