package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/limits"
)

// mcpCall returns the bytes of an MCP call by a client that asks for progress.
func mcpCall(name string) string {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{},"_meta":{"progressToken":1,` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	return "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n" +
		"Mcp-Method: tools/call\r\nMcp-Name: " + name + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// TestProgressOverMCP lets guests report to a client that asks for progress: it gets the reports, no more of them than are allowed, and then the
// result.
func TestProgressOverMCP(t *testing.T) {
	t.Parallel()
	c := fixtures(t, 8, map[string]string{"reports": "wat/hostile/progress"})
	c.Limits = limits.Limits{Timeout: 2 * time.Second}
	r := start(t, c)
	for tool, test := range map[string]struct {
		least, most int
		last        string
	}{
		"reports-t0": {4, 21, `"code":"tool_timeout"`}, // for ever
		"reports-t1": {3, 3, `"structuredContent":0`},  // numbers that make no sense
		"reports-t6": {4, 4, `"code":"tool_trapped"`},
		"reports-t7": {4, 4, `"structuredContent":0`},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			conn := r.dial()
			if _, err := io.WriteString(conn, mcpCall(tool)); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var messages []string
			for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
				if message, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					messages = append(messages, message)
				}
			}
			n := len(messages) - 1
			if n < test.least || n > test.most || !strings.Contains(messages[n], test.last) {
				t.Fatalf("got %q, want %d to %d reports and %s", messages, test.least, test.most, test.last)
			}
			before := -1.0
			for _, message := range messages[:n] {
				var m struct {
					Method string
					Params struct {
						ProgressToken int
						Progress      float64
					}
				}
				if err := json.Unmarshal([]byte(message), &m); err != nil || m.Method != "notifications/progress" || m.Params.ProgressToken != 1 || m.Params.Progress <= before {
					t.Errorf("got %s after %v (%v)", message, before, err)
				}
				before = m.Params.Progress
			}
		})
	}
}
