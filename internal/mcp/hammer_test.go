package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestHammer makes clients call and list while tools come, go, and are enabled and disabled: each client gets the answer to its own request, never to
// another one's.
func TestHammer(t *testing.T) {
	t.Parallel()
	sets := [][]*wasmtools.Tool{{tool("add", echo), tool("math/add", echo)}, {tool("add", echo)}, {tool("add", echo), tool("later", progressing(`{"n":0}`, nil))}}
	table := tableOf(t, sets[0]...)
	h := appOf(t, table, options{})
	var clients, changes sync.WaitGroup
	done := make(chan struct{})
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := table.Replace(sets[i%3], nil); err != nil {
				t.Error(err)
				return
			}
			_ = table.Disable("/math/add", "")
			_ = table.Enable("/math/add")
		}
	})
	for c := range 4 {
		clients.Go(func() {
			for i := range 100 {
				n := c*1000 + i
				id := fmt.Sprintf(`"id":%d`, n)
				for body, want := range map[string]string{
					call("add", fmt.Sprintf(`{"n":%d}`, n)):           fmt.Sprintf(`"structuredContent":{"n":%d}`, n),
					call("math-add", fmt.Sprintf(`{"n":%d}`, n)):      "", // served, missing, or disabled
					withToken(call("later", `{}`)):                    "",
					message("tools/list", ""):                         `"name":"add"`,
					call("add", fmt.Sprintf(`{"n":"%d"}`, n)):         fmt.Sprintf(`(got \"%d\")`, n),
					message("tools/list", fmt.Sprintf(`"x":%d`, n)):   `"tools":[`,
					strings.Repeat(" ", n) + message("no/method", ""): "Method not found",
				} {
					status, text := serve(h, request(strings.Replace(body, `"id":1`, id, 1)))
					last := text
					if i := strings.LastIndex(text, "data: "); i >= 0 { // the last event of a stream
						last = text[i+len("data: "):]
					}
					if status != http.StatusOK && status != http.StatusNotFound || !json.Valid([]byte(last)) || !strings.Contains(last, id+",") || !strings.Contains(last, want) {
						t.Errorf("%s: got %d %s", body, status, text)
					}
				}
			}
		})
	}
	clients.Wait()
	close(done)
	changes.Wait()
}
