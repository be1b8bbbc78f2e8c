package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestManual runs each command of docs/mcp.md and compares what it prints.
func TestManual(t *testing.T) {
	t.Parallel()
	add := tool("math/add", func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
		var in struct{ A, B float64 }
		if err := json.Unmarshal(call.Arguments, &in); err != nil {
			return nil, err
		}
		return json.Marshal(in.A + in.B)
	})
	add.Parameters = schema.MustCompile(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`)
	h := appOf(t, tableOf(t, add), options{set: toolset.Options{Info: toolset.Info{Title: "Tools"}}})
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^\$ curl -s http://127\.0\.0\.1:8000(/\S+) (.*) -d '(.*)'\n(.*)$`).FindAllStringSubmatch(string(page), -1)
	if len(commands) < 1 || len(commands) != strings.Count(string(page), "$ curl") {
		t.Fatalf("found %d commands", len(commands))
	}
	for _, c := range commands {
		r := httptest.NewRequest(http.MethodPost, c[1], strings.NewReader(c[3]))
		for _, header := range regexp.MustCompile(`-H '(\S+): (.*?)'`).FindAllStringSubmatch(c[2], -1) {
			r.Header.Set(header[1], header[2])
		}
		if status, body := serve(h, r); status != http.StatusOK || body != c[4] {
			t.Errorf("got\n%d %s\nthe manual shows\n%s", status, body, c[4])
		}
	}
}
