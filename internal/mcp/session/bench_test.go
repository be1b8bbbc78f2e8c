package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/web"
)

// BenchmarkCall calls a Go function that adds: in a session over HTTP, without one, and over two pipes. For comparison, it calls a function that does
// nothing in a session of go-sdk's server.
func BenchmarkCall(b *testing.B) {
	a := newApp(b)
	door := mcp.NewDoor(a.set, mcp.Options{})
	defer func() { _ = door.Close() }()
	mux := web.NewMux(web.Options{})
	mux.Mount(mcp.Path, door)
	theirs := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	theirs.AddTool(&sdk.Tool{Name: "math-add", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"sum":2}`}}, StructuredContent: json.RawMessage(`{"sum":2}`)}, nil
	})
	handlers := map[string]http.Handler{"": mux, "go-sdk ": sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return theirs },
		&sdk.StreamableHTTPOptions{JSONResponse: true})}
	defer func() {
		for s := range theirs.Sessions() {
			_ = s.Close()
		}
	}()
	do := func(whose, body string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, mcp.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		handlers[whose].ServeHTTP(w, r)
		return w
	}
	begun := func(whose string) []string {
		return []string{"Mcp-Session-Id", do(whose, begin).Header().Get("Mcp-Session-Id")}
	}
	for _, test := range []struct {
		whose, version string
		headers        []string
	}{
		{"", legacy, begun("")},
		{"", modern, []string{"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "math-add"}},
		{"go-sdk ", legacy, begun("go-sdk ")},
	} {
		body := request("1", "tools/call", test.version, `"name":"math-add"`, `"arguments":{"a":1}`)
		b.Run("HTTP "+test.whose+test.version, func(b *testing.B) {
			for b.Loop() {
				if w := do(test.whose, body, test.headers...); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
	b.Run("stdio", func(b *testing.B) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		ended := make(chan error)
		go func() { ended <- session.Stdio(b.Context(), a.set, in, out, session.StdioOptions{}) }()
		lines := bufio.NewReader(fromServer)
		body := []byte(request("1", "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":1}`) + "\n")
		for b.Loop() {
			_, _ = toServer.Write(body)
			if _, err := lines.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		_ = toServer.Close()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}
