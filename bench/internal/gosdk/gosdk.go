// Package gosdk serves a tool that adds over MCP with the protocol's Go SDK, like a Go program that serves its own functions.
package gosdk

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
)

// Tool is the name of the tool.
const Tool = "bench-add"

// Serve serves the tool at /mcp, without sessions and with answers in JSON, which is the fastest mode of the SDK. Arguments and
// result are as in the guest that it is compared with.
func Serve(l net.Listener) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	type sum struct {
		A int64 `json:"a"`
		B int64 `json:"b"`
	}
	tool := &mcp.Tool{Name: Tool, Description: "A tool of the benchmarks.", InputSchema: json.RawMessage(guest.Parameters)}
	mcp.AddTool(server, tool, func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strconv.FormatInt(in.A+in.B, 10)}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	return http.Serve(l, mux)
}
