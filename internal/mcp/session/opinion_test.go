package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/internal/mcp/session"
)

// TestSecondOpinion sends requests that don't concern tools to our server and to go-sdk's, over pipes. The results must be the same, and errors must
// have the same code unless a case names ours.
func TestSecondOpinion(t *testing.T) {
	t.Parallel()
	older := func(version string) string { return strings.Replace(begin, legacy, version, 1) }
	for _, test := range []struct {
		name  string
		first bool // send initialize first
		send  string
		ours  int // the code of our error, if go-sdk's differs
	}{
		{name: "initialize", send: begin},
		{name: "initialize of an older version", send: older("2025-06-18")},
		{name: "initialize of a version that is too old", send: older("2020-01-01")},
		{name: "initialize of a future version", send: older("2999-01-01")},
		{name: "initialize of a version without initialize", send: older(modern)},
		{name: "initialize again", first: true, send: begin, ours: -32600}, // go-sdk: 0
		{name: "initialize of the stateless version", send: request("1", "initialize", modern, `"protocolVersion":"2025-11-25"`)},
		{name: "initialize without params", send: `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, ours: -32602}, // go-sdk: -32600
		{name: "ping", first: true, send: request("1", "ping", legacy)},
		{name: "ping without params", first: true, send: `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{name: "ping before the session", send: request("1", "ping", legacy)},
		{name: "ping of the stateless version", send: request("1", "ping", modern)},
		{name: "discover", send: request("1", "server/discover", modern)},
		{name: "discover in a session", first: true, send: request("1", "server/discover", modern)},
		{name: "discover of an older version", first: true, send: request("1", "server/discover", legacy)},
		{name: "no capabilities", send: request("1", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`)},
		{name: "a future version", send: request("1", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}}`)},
		{name: "a list before the session", send: request("1", "tools/list", legacy), ours: -32600}, // go-sdk: 0
		{name: "an unknown method", first: true, send: request("1", "no/such", legacy)},
		{name: "an unknown method, in the stateless version", send: request("1", "no/such", modern)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			server := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{
				Instructions:              "Add.",
				Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
				SupportedProtocolVersions: []string{"2026-07-28", "2025-11-25", "2025-06-18"},
				SetCacheable:              func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.TTLMs, c.CacheScope = 60_000, "private" },
			})
			theirs := ask(t, test.first, test.send, func(in io.ReadCloser, out io.WriteCloser) error {
				return server.Run(t.Context(), &sdk.IOTransport{Reader: in, Writer: out})
			})
			ours := ask(t, test.first, test.send, func(in io.ReadCloser, out io.WriteCloser) error {
				return session.Stdio(t.Context(), a.set, in, out, session.StdioOptions{})
			})
			type message struct {
				ID, Result json.RawMessage
				Error      *struct{ Code int }
			}
			var our, their message
			if err := errors.Join(json.Unmarshal([]byte(ours), &our), json.Unmarshal([]byte(theirs), &their)); err != nil {
				t.Fatalf("%s%s%v", ours, theirs, err)
			}
			same := (our.Error == nil) == (their.Error == nil)
			switch {
			case !same:
			case our.Error == nil:
				same = sameJSON(t, string(our.Result), string(their.Result))
			case test.ours != 0:
				same = our.Error.Code == test.ours && their.Error.Code != test.ours
			default:
				same = our.Error.Code == their.Error.Code
			}
			if !same {
				t.Errorf("we say   %s\nthey say %s", ours, theirs)
			}
		})
	}
}

// ask sends a server a message, after initialize if necessary, and returns its answer.
func ask(t *testing.T, first bool, message string, serve func(io.ReadCloser, io.WriteCloser) error) string {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = serve(in, out) }()
	lines := bufio.NewReader(fromServer)
	say := func(message string) string {
		if _, err := io.WriteString(toServer, message+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		return line
	}
	if first {
		say(begin)
	}
	answer := say(message)
	_ = toServer.Close()
	<-ended
	return answer
}
