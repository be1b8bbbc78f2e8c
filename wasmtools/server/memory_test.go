package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestMemoryOfConnections lets many clients wait, each over its own connection, and measures how much memory each takes, which docs/operations.md
// mentions. The clients are in the same process, so each figure is 1 KiB too high. It is not parallel, since it measures the whole heap.
func TestMemoryOfConnections(t *testing.T) {
	testkit.SkipEmulated(t, "it measures")
	if testing.Short() || testkit.Race(t) {
		t.Skip("it measures")
	}
	const clients = 400
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	post := func(body string, headers string) string {
		return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s", headers, len(body), body)
	}
	for _, c := range []struct {
		name string
		most int64 // KiB
		open func(conn net.Conn) error
	}{
		{"an idle connection", 24, func(conn net.Conn) error { _, err := first(conn, probe); return err }},
		{"a stream of 2026-07-28", 36, func(conn net.Conn) error {
			_, err := first(conn, post(listen, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"))
			return err
		}},
		{"a session with its stream", 48, func(conn net.Conn) error {
			a, err := first(conn, post(initialize, ""))
			if err != nil {
				return err
			}
			_, err = first(conn, "GET /mcp HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: "+a.Header.Get("Mcp-Session-Id")+"\r\n\r\n")
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, settings(t))
			each := eachTakes(t, r, clients, c.open)
			for range 2 { // earlier tests may free or take memory meanwhile
				if each > 0 && each <= c.most<<10 {
					break
				}
				each = eachTakes(t, r, clients, c.open)
			}
			t.Logf("%d bytes each", each)
			if each <= 0 || each > c.most<<10 {
				t.Errorf("%s takes %d bytes, want %d KiB at most", c.name, each, c.most)
			}
		})
	}
}

// eachTakes returns how many bytes each of many clients takes.
func eachTakes(t *testing.T, r *running, clients int, open func(conn net.Conn) error) int64 {
	t.Helper()
	conns := make([]net.Conn, clients)
	before := taken()
	for i := range conns {
		conns[i] = r.dial()
		if err := open(conns[i]); err != nil {
			t.Fatal(err)
		}
	}
	each := (taken() - before) / int64(clients)
	runtime.KeepAlive(conns)
	return each
}

// first sends a request, and reads the answer's head, and its body if it ends.
func first(conn net.Conn, text string) (*http.Response, error) {
	if _, err := io.WriteString(conn, text); err != nil {
		return nil, err
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(a.Body)
		return nil, fmt.Errorf("%s: %s", a.Status, body)
	}
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		_, err = io.Copy(io.Discard, a.Body)
	}
	return a, err
}

// taken returns how many bytes the process's heap and stacks take.
func taken() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
