package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// TestUnreadByOne lets one caller call a tool with large results, and read none of the results: with one token, with narrower tokens that it has
// made, from many addresses of one network, and through each door. Another caller still gets the same results. It is not parallel, since the results
// take 192 MiB.
// Proves: Clients keep nobody out
func TestUnreadByOne(t *testing.T) {
	if testing.Short() || testkit.Race(t) {
		t.Skip("it takes much memory")
	}
	const size, calls = 16 << 20, 20
	large := strings.Repeat("x", size)
	report := gotool.New("a/report", "Returns much.", func(context.Context, struct{}) (string, error) { return large, nil })
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a-report","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, test := range []struct {
		name  string
		mcp   bool
		open  bool // callers are identified by their addresses
		many  bool // the caller has a different token or address for each call
		least int  // the number of results that the caller can hold
	}{
		{"a token", false, false, false, 11},
		{"tokens made from one", false, false, true, 11},
		{"addresses of one network", false, true, true, 11},
		{"over MCP", true, false, false, 3}, // over MCP, a result is both text and structured content
	} {
		t.Run(test.name, func(t *testing.T) {
			c := settings(t)
			c.State.Directory = t.TempDir()
			c.Server.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			r := run(t, build(t, c, report))
			r.log.Wait(t, `"msg":"ready"`)
			hoards := func(n int) string { return fmt.Sprintf("X-Forwarded-For: 2001:db8::%x\r\n", n+1) }
			other := "X-Forwarded-For: 2001:db8:0:1::1\r\n"
			if !test.open {
				secret := issue(r, "hoard", "*")
				hoards = func(n int) string { return "Authorization: Bearer " + secret + "\r\n" }
				other = "Authorization: Bearer " + issue(r, "other", "*") + "\r\n"
				if by := principalOf(r, "hoard"); test.many {
					hoards = func(n int) string {
						made, _, err := r.of.Tokens.Attenuate(t.Context(), by, tokens.Spec{Name: fmt.Sprint("n", n), Scopes: []string{"a/*"}})
						if err != nil {
							t.Fatal(err)
						}
						return "Authorization: Bearer " + made + "\r\n"
					}
				}
			}
			head, body := "POST /a/report HTTP/1.1\r\n", "{}"
			if test.mcp {
				head, body = "POST /mcp HTTP/1.1\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a-report\r\n", call
			}
			request := func(who string) string {
				return fmt.Sprintf("%sHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", head, who, len(body), body)
			}
			held := 0
			for n := range calls {
				conn := r.dial()
				_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
				if _, err := io.WriteString(conn, request(hoards(n))); err != nil {
					t.Fatal(err)
				}
				head, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil)
				if err != nil {
					t.Fatal(err)
				}
				if head.ContentLength >= size {
					held++
				}
			}
			if held < test.least || held == calls {
				t.Errorf("the caller holds %d results, want %d at least, and fewer than %d", held, test.least, calls)
			}
			for range 3 {
				conn := r.dial()
				if _, err := io.WriteString(conn, request(other)); err != nil {
					t.Fatal(err)
				}
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, answer.Body); err != nil || n < size {
					t.Errorf("another caller got %s, %d bytes, %v", answer.Status, n, err)
				}
			}
			if got := r.log.Count("large calls of "); got == 0 {
				t.Error("the log does not say who holds the memory")
			}
		})
	}
}
