package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// tool returns a tool whose argument n is 7 by default.
func tool(path string, f wasmtools.CallerFunc) *wasmtools.Tool {
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", Caller: f,
		Parameters: schema.MustCompile(`{"type":"object","properties":{"n":{"type":"integer","default":7}},"additionalProperties":false}`)}
}

func echo(_ context.Context, call *wasmtools.Call) ([]byte, error) { return call.Arguments, nil }

// ends returns a function that ends each call with the given result and error.
func ends(result string, err error) wasmtools.CallerFunc {
	return func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(result), err }
}

func tableOf(tb testing.TB, tools ...*wasmtools.Tool) *wasmtools.RouteTable {
	tb.Helper()
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

func principal(tb testing.TB, scopes ...string) *wasmtools.Principal {
	tb.Helper()
	p, err := wasmtools.NewPrincipal("test", "test", scopes...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// An as is a dependency that gives every caller this principal.
type as struct{ principal *wasmtools.Principal }

func (as) Check(*http.Request) error { return nil }

func (a as) Principal(*http.Request, *wasmtools.Principal) (*wasmtools.Principal, error) {
	return a.principal, nil
}

// options are the options of an app.
type options struct {
	mcp.Options
	set          toolset.Options
	dependencies []web.Dependency
	log          slog.Handler
}

// An app is a door on its own mux.
type app struct {
	*web.Mux
	door *mcp.Door
	set  *toolset.Set
}

func appOf(tb testing.TB, table *wasmtools.RouteTable, o options) *app {
	tb.Helper()
	set := toolset.New(table, o.set)
	door := mcp.NewDoor(set, o.Options)
	if o.log == nil {
		o.log = slog.DiscardHandler
	}
	mux := web.NewMux(web.Options{Dependencies: o.dependencies, Logger: slog.New(o.log)})
	mux.Mount(mcp.Path, door)
	tb.Cleanup(func() {
		for _, c := range []io.Closer{mux, door, set} {
			if err := c.Close(); err != nil {
				tb.Error(err)
			}
		}
	})
	return &app{mux, door, set}
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// message returns the body of a request with additional params, such as `"name":"add"`.
func message(method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + `}}`
}

func call(name, arguments string) string {
	return message("tools/call", `"name":"`+name+`","arguments":`+arguments)
}

// request returns a request with the headers that match its body. headers are names and values that replace them; an empty value removes a header.
func request(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	var m struct {
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal([]byte(body), &m)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", m.Method)
	r.Header.Set("X-Request-Id", "test")
	if m.Params.Name != "" {
		r.Header.Set("Mcp-Name", m.Params.Name)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// at changes the path of a request.
func at(path string, r *http.Request) *http.Request {
	r.URL.Path = path
	return r
}

// serve returns the status and the body of an answer.
func serve(h http.Handler, r *http.Request) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// answer is what serve returns, as one line.
func answer(h http.Handler, r *http.Request) string {
	status, body := serve(h, r)
	return strings.TrimSpace(fmt.Sprint(status, " ", body))
}

func withStreams(n int) mcp.Options { return mcp.Options{Streams: web.NewPlaces(n)} }
