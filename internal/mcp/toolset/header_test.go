package toolset_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// many returns n properties with marks.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"P%[1]d"}`, i))
	}
	return strings.Join(all, ",")
}

// TestHeaders checks that marks for headers are shown if all follow the rules, and none if one breaks them, since clients would drop the tool.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ properties, want, problem string }{
		{`"a":{"type":"string","x-mcp-header":"Region"}`, "[{Region [a] string}]", ""},
		{`"a":{"type":"integer","x-mcp-header":"A-1"},"b":{"properties":{"c":{"x-mcp-header":"C","type":"boolean"}}}`, "[{A-1 [a] integer} {C [b c] boolean}]", ""},
		{`"x-mcp-header":{"type":"string"}`, "[]", ""},
		{`"a":{"type":"string","x-mcp-header":""}`, "[]", "is not a name"},
		{`"a":{"x-mcp-header":"a b","type":"string"}`, "[]", "is not a name"},
		{`"a":{"type":"string","x-mcp-header":"ä"}`, "[]", "is not a name"},
		{`"a":{"type":"number","x-mcp-header":"A"}`, "[]", "is for properties"},
		{`"a":{"x-mcp-header":"A"}`, "[]", "is for properties"},
		{`"a":{"type":["string"],"x-mcp-header":"A"}`, "[]", "is for properties"},
		{`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`, "[]", "is taken"},
		{`"a":{"type":"string","x-mcp-header":"A"},"b":{"items":{"type":"string","x-mcp-header":"B","title":"b"}}`, "[]", "reached through properties"},
		{`"a":{"x-mcp-header":"A","anyOf":[{"x-mcp-header":"B"},{"title":"x","x-mcp-header":"C"},{"title":"x","x-mcp-header":"D","deprecated":false}]}`, "[]", "is for properties"},
		{many(33), "[]", "more than 32 properties"},
	} {
		one := tool("one", echo)
		one.Parameters = schema.MustCompile(`{"type":"object","properties":{` + test.properties + `}}`)
		var log strings.Builder
		view := setOf(t, tableOf(t, one), toolset.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).View("", wasmtools.Everybody())
		i, err := view.Begin("one", &wasmtools.Call{Principal: wasmtools.Everybody()})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(i.Headers()); got != test.want {
			t.Errorf("%s: got %s, want %s", test.properties, got, test.want)
		}
		i.End()
		element := elements(t, view, toolset.Modern)["one"]
		if !json.Valid([]byte(element)) || strings.Contains(element, `"x-mcp-header":"`) != (test.problem == "" && test.want != "[]") {
			t.Errorf("%s: shown as %s", test.properties, element)
		}
		if got := log.String(); !strings.Contains(got, test.problem) || (got == "") != (test.problem == "") || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: the log has %q, want %q", test.properties, got, test.problem)
		}
	}
}
