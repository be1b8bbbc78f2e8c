package session_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/mcp"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/session"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// BenchmarkCall is a call of a Go function that adds: in a session over HTTP, without one, and over two pipes.
func BenchmarkCall(b *testing.B) {
	a := newApp(b)
	door := mcp.NewDoor(a.set, mcp.Options{})
	defer func() { _ = door.Close() }()
	mux := web.NewMux(web.Options{})
	mux.Mount(mcp.Path, door)
	do := func(body string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, mcp.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	id := do(begin).Header().Get("Mcp-Session-Id")
	for name, headers := range map[string][]string{
		legacy: {"Mcp-Session-Id", id},
		modern: {"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "math-add"},
	} {
		body := request("1", "tools/call", name, `"name":"math-add"`, `"arguments":{"a":1}`)
		b.Run("HTTP "+name, func(b *testing.B) {
			for b.Loop() {
				if w := do(body, headers...); w.Code != http.StatusOK {
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
