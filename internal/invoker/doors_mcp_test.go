package invoker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// overMCP calls a tool over MCP, and returns what REST would answer, in canonical form.
func overMCP(ctx context.Context, t *testing.T, table *wasmtools.RouteTable, p *wasmtools.Principal, path, arguments string) string {
	t.Helper()
	set := toolset.New(table, toolset.Options{})
	defer set.Close()
	door := mcp.NewDoor(set, mcp.Options{})
	defer door.Close()
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{as{p}}})
	defer mux.Close()
	mux.Mount(mcp.Path, door)

	name := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-")
	if arguments != "" {
		arguments = `"arguments":` + arguments + ","
	}
	r := httptest.NewRequest(http.MethodPost, mcp.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`",`+arguments+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {name}}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r.WithContext(ctx))

	var answer struct {
		Result struct {
			StructuredContent json.RawMessage
			IsError           bool
			Meta              map[string]json.RawMessage `json:"_meta"`
		}
		Error struct {
			Code    int
			Message string
			Data    struct{ Code wasmtools.Code }
		}
		Code   wasmtools.Code // code of a request that was refused before the door
		Detail string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	switch e := answer.Error; {
	case answer.Result.IsError:
		return canonical(t, string(answer.Result.Meta["io.github.toolsrv/error"]))
	case answer.Result.StructuredContent != nil:
		return canonical(t, string(answer.Result.StructuredContent))
	case e.Code == -32602 && strings.HasPrefix(e.Message, "Unknown tool"):
		return `{"code":"not_found","detail":"Not Found"}`
	case e.Code == -32603:
		return canonical(t, `{"code":"`+string(e.Data.Code)+`","detail":"`+e.Message+`"}`)
	}
	return canonical(t, `{"code":"`+string(answer.Code)+`","detail":"`+answer.Detail+`"}`)
}

// canonical returns JSON with its members sorted and without white space between values.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, _ := json.Marshal(value)
	return string(out)
}
