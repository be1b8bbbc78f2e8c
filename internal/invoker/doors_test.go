package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// An as is a dependency that gives every caller this principal.
type as struct{ principal *wasmtools.Principal }

func (as) Check(*http.Request) error { return nil }

func (a as) Principal(*http.Request, *wasmtools.Principal) (*wasmtools.Principal, error) {
	return a.principal, nil
}

// tool returns a tool whose argument n is 7 by default.
func tool(path string, f wasmtools.CallerFunc) *wasmtools.Tool {
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", MaxInput: 100, Caller: f,
		Parameters: schema.MustCompile(`{"type":"object","properties":{"n":{"type":"integer","default":7}},"additionalProperties":false}`)}
}

func echo(_ context.Context, call *wasmtools.Call) ([]byte, error) { return call.Arguments, nil }

// ends returns a function that ends each call with the given result and error.
func ends(result string, err error) wasmtools.CallerFunc {
	return func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(result), err }
}

func principal(t *testing.T, scopes ...string) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal("test", "test", scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// issued returns the principal of a token of the state.
func issued(t *testing.T, scopes ...string) *wasmtools.Principal {
	t.Helper()
	store := tokens.Open(memory.New(), tokens.Options{})
	t.Cleanup(func() { _ = store.Close() })
	secret, _, err := store.Add(t.Context(), tokens.Spec{Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	v, err := tokens.NewVerifier(store, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(&http.Request{Header: http.Header{"Authorization": {"Bearer " + secret}}})
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	return p
}

func tableOf(t *testing.T, tools ...*wasmtools.Tool) *wasmtools.RouteTable {
	t.Helper()
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestDoorsAgree calls tools through REST, from memory and over MCP: all give the same answer, however a call ends.
// Proves: A caller reaches its own tools only
func TestDoorsAgree(t *testing.T) {
	t.Parallel()
	secret := errors.New("the password is hunter2")
	lacks, lacksAndOff := tool("lacks", echo), tool("math/lacks", echo)
	lacks.Missing = []wasmtools.Missing{{Capability: "http", Entry: "https://api.example.com"}, {Capability: "kv"}}
	lacksAndOff.Missing = lacks.Missing
	table := tableOf(t, lacks, lacksAndOff, tool("echo", echo), tool("math/add", echo), tool("off", echo), tool("math/off", echo),
		tool("who", func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
			return json.Marshal(call.Principal.String())
		}),
		tool("fail/plain", ends("", errors.New("2 are left"))),
		tool("fail/own", ends("", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "2 are left", Status: 409, ToolCode: "few", Data: json.RawMessage(`{"left":2}`)})),
		tool("fail/trap", ends("", &wasmtools.Error{Code: wasmtools.CodeToolTrapped, Message: "It trapped.", Err: secret})),
		tool("fail/busy", ends("", &wasmtools.Error{Code: wasmtools.CodeOverloaded})),
		tool("fail/missing", ends("", &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "No such row"})),
		tool("fail/internal", ends("", &wasmtools.Error{Code: wasmtools.CodeInternal, Message: "hunter2", Err: secret})),
		tool("fail/odd", ends("", &wasmtools.Error{Code: "odd", Err: secret})),
		tool("fail/nil", ends("", (*wasmtools.Error)(nil))),
		tool("fail/output", ends("hunter2", nil)),
		tool("fail/empty", ends("", nil)),
	)
	if err := errors.Join(table.Disable("/off", "being repaired"), table.Disable("/math/off", ""), table.Disable("/math/lacks", "")); err != nil {
		t.Fatal(err)
	}
	everybody, math, none := wasmtools.Everybody(), principal(t, "math/*"), principal(t)
	scoped, admin, nothing := issued(t, "math/*"), issued(t, "admin"), issued(t)
	for _, test := range []struct {
		name       string
		principal  *wasmtools.Principal
		path, body string
		want       string
	}{
		{"a result", everybody, "/echo", ` {"n": 1} `, ` {"n": 1} `},
		{"a default", everybody, "/echo", `{}`, `{"n":7}`},
		{"nothing", everybody, "/echo", ``, `{"n":7}`},
		{"who calls", everybody, "/who", ``, `"everybody"`},
		{"who calls, for a caller with a name", principal(t, "*"), "/who", ``, `"test"`},
		{"within the scope", math, "/math/add", `{"n":2}`, `{"n":2}`},
		{"not JSON", everybody, "/echo", `{"n":`, `"code":"invalid_arguments"`},
		{"not valid", everybody, "/echo", `{"n":"x"}`, `"loc":["body","n"]`},
		{"arguments of the largest size", everybody, "/echo", `{"n":1` + strings.Repeat(" ", 93) + `}`, `{"n":1` + strings.Repeat(" ", 93) + `}`},
		{"too large", everybody, "/echo", `{"n":1` + strings.Repeat(" ", 94) + `}`, `{"detail":"The body is larger than 100 bytes, the limit of /echo","code":"input_too_large"}`},
		{"disabled", everybody, "/math/off", `{}`, `{"detail":"Tool /math/off is disabled","code":"tool_disabled"}`},
		{"disabled with a reason", everybody, "/off", `{}`, `{"detail":"Tool /off is disabled: being repaired","code":"tool_disabled"}`},
		{"not granted", everybody, "/lacks", `{}`, `{"detail":"Tool /lacks was not granted what it needs: http https://api.example.com, kv","code":"tool_not_granted"}`},
		{"not granted and out of scope", math, "/lacks", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"not granted and disabled", everybody, "/math/lacks", `{}`, `{"detail":"Tool /math/lacks is disabled","code":"tool_disabled"}`},
		{"no such tool", everybody, "/zz", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"out of scope", math, "/echo", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"out of scope and disabled", math, "/off", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"out of scope and not valid", math, "/echo", `{"n":"x"}`, `{"detail":"Not Found","code":"not_found"}`},
		{"no scope", none, "/math/add", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"a token within its scope", scoped, "/math/add", `{"n":2}`, `{"n":2}`},
		{"a token out of its scope", scoped, "/echo", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"a token out of its scope, disabled", scoped, "/off", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"a token within its scope, disabled", scoped, "/math/off", `{}`, `{"detail":"Tool /math/off is disabled","code":"tool_disabled"}`},
		{"a token with a role alone", admin, "/math/add", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"a token without scopes", nothing, "/math/add", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"the zero principal", &wasmtools.Principal{}, "/math/add", `{}`, `{"detail":"Not Found","code":"not_found"}`},
		{"no principal", nil, "/echo", `{}`, `"code":"internal"`},
		{"a plain error", everybody, "/fail/plain", `{}`, `{"detail":"2 are left","code":"tool_error"}`},
		{"an error of its own", everybody, "/fail/own", `{}`, `{"detail":"2 are left","code":"tool_error","error":{"code":"few","data":{"left":2}}}`},
		{"a trap", everybody, "/fail/trap", `{}`, `{"detail":"It trapped.","code":"tool_trapped"}`},
		{"overloaded", everybody, "/fail/busy", `{}`, `"code":"overloaded"`},
		{"a not_found of the tool itself", everybody, "/fail/missing", `{}`, `{"detail":"No such row","code":"not_found"}`},
		{"internal", everybody, "/fail/internal", `{}`, `"code":"internal"`},
		{"a code that is not known", everybody, "/fail/odd", `{}`, `"code":"internal"`},
		{"a nil error", everybody, "/fail/nil", `{}`, `"code":"internal"`},
		{"a result that is not JSON", everybody, "/fail/output", `{}`, `"code":"tool_bad_output"`},
		{"no result", everybody, "/fail/empty", `{}`, `"code":"tool_bad_output"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			status, rest := overREST(t, table, test.principal, test.path, test.body)
			inMemory, memory := fromMemory(t, table, test.principal, test.path, test.body)
			if status != inMemory || rest != memory {
				t.Errorf("REST answers %d %s, a direct call %d %s", status, rest, inMemory, memory)
			}
			if test.body == "" || json.Valid([]byte(test.body)) { // over MCP, a message whose arguments are not JSON is not a valid message
				if got, want := overMCP(t.Context(), t, table, test.principal, test.path, test.body), canonical(t, rest); got != want {
					t.Errorf("REST answers %s, MCP %s", want, got)
				}
			}
			if rest != test.want && !strings.Contains(rest, test.want) || strings.Contains(rest, "hunter2") {
				t.Errorf("got %s, want %s", rest, test.want)
			}
		})
	}
}

// TestDoorsAgreeOnTheEnd ends the context of a call whose function returns the context's error.
func TestDoorsAgreeOnTheEnd(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	table := tableOf(t, tool("wait", func(ctx context.Context, _ *wasmtools.Call) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	for want, ctx := range map[wasmtools.Code]context.Context{wasmtools.CodeCancelled: gone, wasmtools.CodeToolTimeout: late} {
		app := openapi.NewApp(table, openapi.Options{})
		r := httptest.NewRequest(http.MethodPost, "/wait", nil).WithContext(ctx)
		answer := httptest.NewRecorder()
		app.ServeHTTP(answer, r)
		app.Close()
		_, err := callOf(ctx, invoker.New(invoker.Options{}), table, wasmtools.Everybody(), "/wait", "")
		status, body := web.Failure(err)
		if answer.Code != status || answer.Body.String() != string(body) || codeOf(err) != want {
			t.Errorf("%s: REST answers %d %s, a direct call %d %s", want, answer.Code, answer.Body, status, body)
		}
		if got := overMCP(ctx, t, table, wasmtools.Everybody(), "/wait", ""); got != canonical(t, string(body)) {
			t.Errorf("%s: REST answers %s, MCP %s", want, body, got)
		}
	}
}

// overREST returns the answer to a request.
func overREST(t *testing.T, table *wasmtools.RouteTable, p *wasmtools.Principal, path, body string) (int, string) {
	t.Helper()
	app := openapi.NewApp(table, openapi.Options{Dependencies: []openapi.Dependency{as{p}}})
	defer app.Close()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "test")
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, r)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code, strings.Replace(string(text), `,"request_id":"test"`, "", 1)
}

// fromMemory makes a call directly, without a door, and returns what REST would answer for its outcome.
func fromMemory(t *testing.T, table *wasmtools.RouteTable, p *wasmtools.Principal, path, body string) (int, string) {
	t.Helper()
	result, err := callOf(t.Context(), invoker.New(invoker.Options{}), table, p, path, body)
	if err != nil {
		status, answer := web.Failure(err)
		return status, string(answer)
	}
	return http.StatusOK, string(result)
}

func callOf(ctx context.Context, v *invoker.Invoker, table *wasmtools.RouteTable, p *wasmtools.Principal, path, body string) ([]byte, error) {
	route, err := invoke.Find(table.Current(), path, p)
	if p == nil {
		route, err = invoker.RouteTo(tool("echo", echo)), nil // a door that forgot to identify the caller
	}
	if err != nil {
		return nil, err
	}
	return v.Call(ctx, route, &wasmtools.Call{Arguments: []byte(body), Principal: p})
}

// TestHiddenOverREST makes a principal look for a tool that it may not call: the answers are the same as for a missing tool.
// Proves: A caller reaches its own tools only
func TestHiddenOverREST(t *testing.T) {
	t.Parallel()
	p := principal(t, "math")
	with, without := tableOf(t, tool("secret/plan", echo), tool("math/plan", echo)), tableOf(t, tool("math/plan", echo))
	with.SetComing(func(path string) bool { return path == "/secret/plam" })
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		for _, path := range []string{"/secret/plan", "/secret/plam", "/secret/plan/", "/secret", "/secret/plan?x", "/math/plan", "/math/plam", "/tools", "/openapi.json"} {
			answers := [2]string{}
			for i, table := range []*wasmtools.RouteTable{with, without} {
				app := openapi.NewApp(table, openapi.Options{Dependencies: []openapi.Dependency{as{p}}})
				r := httptest.NewRequest(method, path, nil)
				r.Header.Set("X-Request-Id", "test")
				answer := httptest.NewRecorder()
				app.ServeHTTP(answer, r)
				app.Close()
				var text strings.Builder
				_ = answer.Result().Write(&text)
				answers[i] = text.String()
			}
			if answers[0] != answers[1] || strings.Contains(answers[0], "secret") {
				t.Errorf("%s %s: got\n%s\nand without the tool\n%s", method, path, answers[0], answers[1])
			}
		}
	}
}

// TestHiddenTakesAsLong makes a principal look, in turns, for tools that it may not call and for a missing one: the times don't tell them apart.
// Proves: A caller reaches its own tools only
func TestHiddenTakesAsLong(t *testing.T) { // not parallel, because it measures times
	all := []*wasmtools.Tool{tool("secret/plan", echo), tool("secret/off", echo)}
	for i := range 200 {
		all = append(all, tool(fmt.Sprintf("math/t%d", i), echo), tool(fmt.Sprintf("secret/t%d", i), echo))
	}
	table := tableOf(t, all...)
	if err := table.Disable("/secret/off", ""); err != nil {
		t.Fatal(err)
	}
	p := issued(t, "math")
	rest := openapi.NewApp(table, openapi.Options{Dependencies: []openapi.Dependency{as{p}}})
	defer rest.Close()
	overREST := func(path string) {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		answer := httptest.NewRecorder()
		if rest.ServeHTTP(answer, r); answer.Code != http.StatusNotFound {
			t.Fatalf("%s: got %d", path, answer.Code)
		}
	}
	set := toolset.New(table, toolset.Options{})
	defer set.Close()
	overMCP := func(path string) {
		if _, err := set.View("", p).Begin(strings.ReplaceAll(path[1:], "/", "-"), &wasmtools.Call{Principal: p}); err == nil {
			t.Fatalf("%s is found", path)
		}
	}
	for door, ask := range map[string]func(path string){"REST": overREST, "MCP": overMCP} {
		paths := [...]string{"/secret/plum", "/secret/plan", "/secret/off"}
		var took [len(paths)][]time.Duration
		for range 2000 {
			for i, path := range paths {
				begun := time.Now()
				ask(path)
				took[i] = append(took[i], time.Since(begun))
			}
		}
		for i := range paths {
			slices.Sort(took[i])
		}
		for i, path := range paths {
			if a, b := took[i][1000], took[0][1000]; a > b*5/4+time.Microsecond || b > a*5/4+time.Microsecond {
				t.Errorf("%s: %s takes %v, and a tool that does not exist %v", door, path, a, b)
			}
		}
	}
}
