package session_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/session"
)

// FuzzStdio makes a client write anything. Stdio must return, each line that it writes must be a message, and the last request must be answered:
// nothing that a client writes ends its session.
func FuzzStdio(f *testing.F) {
	for _, text := range requests {
		f.Add(text)
		f.Add(begin + "\n" + strings.ReplaceAll(text, `"_meta"`, `"_"`) + "\n\x00\xff\r\n[]\n")
	}
	f.Add(begin + "\n" + begin + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	f.Add(request("1", "subscriptions/listen", modern, `"notifications":{"toolsListChanged":true}`) + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + strings.Repeat("é", 100) + `","capabilities":null,"clientInfo":7}}`)
	a := newApp(f)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "wait") { // this tool takes long on purpose
			t.Skip()
		}
		var out bytes.Buffer
		in := text + "\n" + request(`"the last"`, "server/discover", modern)
		if err := session.Stdio(t.Context(), a.set, strings.NewReader(in), &out, session.StdioOptions{}); err != nil {
			t.Fatal(err)
		}
		found := false
		for line := range strings.Lines(out.String()) {
			var m struct {
				Version string `json:"jsonrpc"`
				ID      json.RawMessage
				Result  json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" {
				t.Errorf("%q is not a message: %v", line, err)
			}
			found = found || string(m.ID) == `"the last"` && m.Result != nil
		}
		if !found {
			t.Errorf("the request at the end has no answer:\n%s", out.String())
		}
	})
}
