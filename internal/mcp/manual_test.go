package mcp_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

var update = flag.Bool("update", false, "write docs/generated/mcp-errors.md")

// TestErrorsPage checks the page of JSON-RPC codes against the comments above them in the code.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Errors of MCP\n\nThe codes of [errors over MCP](../mcp.md#results-and-errors) that are not results, made from the code by `go test ./internal/mcp -run TestErrorsPage$ -update`.\n\n| code | status | what happened |\n|---|---|---|\n")
	codes := regexp.MustCompile(`(?m)((?:^\t// .*\n)+)^\t[cC]ode\w+ += (-\d+)`)
	for _, file := range []string{"internal/rpc/answer.go", "session/http.go"} {
		source := string(testkit.Read(t, file))
		for _, m := range codes.FindAllStringSubmatch(source, -1) {
			for row := range strings.Lines(m[1]) {
				fmt.Fprintf(&b, "| %s | %s |\n", m[2], strings.TrimSpace(strings.TrimPrefix(row, "\t// ")))
			}
		}
		if said, all := len(codes.FindAllString(source, -1)), len(regexp.MustCompile(`(?m)^\t*(?:const )?[cC]ode\w+ += -`).FindAllString(source, -1)); said != all || all == 0 {
			t.Errorf("%s: %d of %d codes have lines that say what has happened", file, said, all)
		}
	}
	const page = "../../docs/generated/mcp-errors.md"
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(testkit.Read(t, page)) != b.String() {
		t.Error("docs/generated/mcp-errors.md is not what the code says: go test ./internal/mcp -run TestErrorsPage$ -update writes it")
	}
}

// TestManual runs each command of docs/mcp.md and compares its output.
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
