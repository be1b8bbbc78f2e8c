package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// A program serves a Go function to agents and over REST, on one listener.
func Example() {
	type sum struct {
		A, B float64
	}
	add := gotool.New("math/add", "Add two numbers.", func(_ context.Context, in sum) (float64, error) { return in.A + in.B, nil })
	table, err := wasmtools.NewRouteTable(add)
	if err != nil {
		fmt.Println(err)
		return
	}
	access, err := web.NewAccess(web.AccessOptions{Loopback: true})
	if err != nil {
		fmt.Println(err)
		return
	}

	mux := web.NewMux(web.Options{Access: access})
	defer mux.Close()
	calls := invoker.New(invoker.Options{}) // both doors use it, so that they share its memory
	rest := openapi.NewDoor(mux, table, openapi.DoorOptions{Invoker: calls})
	defer rest.Close()
	mux.Mount("/", rest)
	set := toolset.New(table, toolset.Options{Invoker: calls, Info: toolset.Info{Title: "Sums"}})
	defer set.Close()
	agents := mcp.NewDoor(set, mcp.Options{})
	defer agents.Close()
	mux.Mount(mcp.Path, agents)

	// A program would call http.ListenAndServe("127.0.0.1:8000", mux). Here is a single request.
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8000/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call",
		"params":{"name":"math-add","arguments":{"A":1,"B":2},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"math-add"}}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Body)

	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"3"}],"structuredContent":3,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"toolsrv","title":"Sums","version":"0.1.0"}}}}
}
