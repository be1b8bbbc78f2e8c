package mcp_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestParams calls a tool that wants arguments repeated in headers.
// Proves: A caller reaches its own tools only
func TestParams(t *testing.T) {
	t.Parallel()
	one := tool("one", echo)
	one.Parameters = schema.MustCompile(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
		"at":{"type":"object","properties":{"row":{"type":"integer","x-mcp-header":"Row"}}},"dry":{"type":"boolean","x-mcp-header":"Dry"}}}`)
	h := appOf(t, tableOf(t, one), options{})
	for _, test := range []struct {
		arguments string
		headers   string // names and values
		want      string // what is wrong, or empty
	}{
		{`{}`, "", ""},
		{`{"region":"eu"}`, "Region eu", ""},
		{`{"region":"eu","at":{"row":42},"dry":true}`, "Region eu Row 42 Dry true", ""},
		{`{"at":{"row":42}}`, "Row 42.0", ""},
		{`{"at":{"row":42},"at":{}}`, "", "isError"},
		{`{"at":7}`, "", "isError"},
		{`{"at":{"row":4.2e1}}`, "Row 42", ""},
		{`{"region":"Hello"}`, "Region =?base64?SGVsbG8=?=", ""},
		{`{"region":"é"}`, "Region =?base64?w6k=?=", ""},
		{`{"region":"=?base64?SGVsbG8="}`, "Region =?base64?SGVsbG8=", ""},
		{`{"region":"SGVsbG8="}`, "Region SGVsbG8=", ""},
		{`{"region":null}`, "", "isError"}, // the schema refuses it
		{`{"region":7}`, "Region 7", "isError"},
		{`{"region":"eu"}`, "", "Mcp-Param-Region is missing"},
		{`{"region":"eu"}`, "Region us", "Mcp-Param-Region differs from the value"},
		{`{"region":"eu"}`, "Region EU", "Mcp-Param-Region differs from the value"},
		{`{"region":"eu","region":"us"}`, "Region eu", "Mcp-Param-Region differs from the value"},
		{`{"r\u0065gion":"eu"}`, "Region us", "Mcp-Param-Region differs from the value"},
		{`{}`, "Region eu", "Mcp-Param-Region has a value"},
		{`{"region":null}`, "Region eu", "Mcp-Param-Region has a value"},
		{`{"region":"Hello"}`, "Region =?base64?SGVsbG8?=", "Mcp-Param-Region is missing or not well-formed"},
		{`{"region":"Hello"}`, "Region =?base64?SGVs!!!bG8=?=", "Mcp-Param-Region is missing or not well-formed"},
		{`{"region":"é"}`, "Region é", "Mcp-Param-Region is missing or not well-formed"},
		{`{"at":{"row":42}}`, "Row 43", "Mcp-Param-Row differs from the value"},
		{`{"at":{"row":42}}`, "Row 0x2a", "Mcp-Param-Row differs from the value"},
		{`{"at":{"row":42}}`, "", "Mcp-Param-Row is missing"},
		{`{"at":{"row":9007199254740993}}`, "Row 9007199254740992", "Mcp-Param-Row differs from the value"},
		{`{"at":{"row":1e99999999}}`, "Row 1e99999998", "Mcp-Param-Row differs from the value"},
		{`{"dry":true}`, "Dry True", "Mcp-Param-Dry differs from the value"},
	} {
		r := request(call("one", test.arguments))
		for fields := strings.Fields(test.headers); len(fields) > 0; fields = fields[2:] {
			r.Header.Set("Mcp-Param-"+fields[0], fields[1])
		}
		got := answer(h, r)
		ok := strings.HasPrefix(got, `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,`) && strings.Contains(got, test.want)
		switch test.want {
		case "":
			ok = strings.HasPrefix(got, "200 ") && !strings.Contains(got, "isError")
		case "isError":
			ok = strings.HasPrefix(got, "200 ") && strings.Contains(got, "isError")
		}
		if !ok {
			t.Errorf("%s with %q: got %s, want %s", test.arguments, test.headers, got, test.want)
		}
	}
}
