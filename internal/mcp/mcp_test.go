package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const server = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"toolsrv","title":"Tools","version":"1.2.3"}}`

// fixture is the app that most tests call.
func fixture(tb testing.TB) *app {
	tb.Helper()
	table := tableOf(tb, tool("math/add", echo), tool("off", echo), tool("text/upper", ends(`"A\nB"`, nil)),
		tool("fails", ends("", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "2 are left"})))
	if err := table.Disable("/off", "being repaired"); err != nil {
		tb.Fatal(err)
	}
	return appOf(tb, table, options{set: toolset.Options{Info: toolset.Info{Title: "Tools", Version: "1.2.3", Instructions: `Say "please".`}}})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	h := fixture(t)
	for name, test := range map[string]struct {
		r    *http.Request
		want string
	}{
		"discover": {request(message("server/discover", "")), `200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18"],` +
			`"capabilities":{"tools":{"listChanged":true}},"instructions":"Say \"please\".","ttlMs":60000,"cacheScope":"public",` + server + `}}`},
		"list": {at("/mcp/math", request(message("tools/list", ""))), `200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[` +
			`{"name":"math-add","description":"A tool.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","default":7}},"additionalProperties":false},` +
			`"_meta":{"io.github.toolsrv/digest":"796124ce77cbb31c6b6e654ce1f9a4353936a970b05de59822891047cee16239"}}` +
			`],"ttlMs":5000,"cacheScope":"public",` + server + `}}`},
		"list of a namespace without tools": {at("/mcp/nothing", request(message("tools/list", `"cursor":null`))), `200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":5000,"cacheScope":"public",` + server + `}}`},
		"call": {request(call("math-add", `{"n": 1}`)), `200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"n\": 1}"}],` +
			`"structuredContent":{"n": 1},` + server + `}}`},
		"call without arguments": {request(message("tools/call", `"name":"math-add"`)), `200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"n\":7}"}],` +
			`"structuredContent":{"n":7},` + server + `}}`},
		"call with null":            {request(call("math-add", `null`)), `"structuredContent":{"n":7}`},
		"call in a namespace":       {at("/mcp/math", request(call("math-add", `{}`))), `"structuredContent":{"n":7}`},
		"call with a slash":         {at("/mcp/", request(call("math-add", `{}`))), `"structuredContent":{"n":7}`},
		"call in another namespace": {at("/mcp/text", request(call("math-add", `{}`))), `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: \"math-add\""}}`},
		"text":                      {request(call("text-upper", `{}`)), `"content":[{"type":"text","text":"A\nB"}],"structuredContent":"A\nB"`},
		"wrong arguments":           {request(call("math-add", `{"n":"x"}`)), `"text":"The arguments do not fit the tool's schema:\n- n: `},
		"wrong arguments, error":    {request(call("math-add", `{"n":"x"}`)), `"isError":true`},
		"tool error":                {request(call("fails", `{}`)), `"content":[{"type":"text","text":"2 are left"}]`},
		"disabled":                  {request(call("off", `{}`)), `"text":"Tool /off is disabled: being repaired"`},
		"unknown tool":              {request(call("nothing", `{}`)), `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: \"nothing\""}}`},
		"notification":              {request(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), "202"},
		"escaped method": {request(strings.Replace(message("tools/list", ""), "tools/list", `tools\/list`, 1)),
			`200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[`},
		"id that is a string":   {request(strings.Replace(message("tools/list", ""), `"id":1`, `"id":"a\"b"`, 1)), `200 {"jsonrpc":"2.0","id":"a\"b","result":`},
		"id below zero":         {request(strings.Replace(message("tools/list", ""), `"id":1`, `"id":-12`, 1)), `200 {"jsonrpc":"2.0","id":-12,"result":`},
		"name as Base64":        {request(call("math-add", `{}`), "Mcp-Name", "=?base64?bWF0aC1hZGQ=?="), `"structuredContent":{"n":7}`},
		"type with a parameter": {request(call("math-add", `{}`), "Content-Type", "application/json; charset=utf-8"), `"structuredContent":{"n":7}`},
		"blanks":                {request(" \r\n" + call("math-add", " {\n} ") + "\t"), `"structuredContent":{ "n":7}`},
	} {
		if got := answer(h, test.r); got != test.want && !(strings.HasPrefix(test.want, `"`) && strings.HasPrefix(got, "200 ") && strings.Contains(got, test.want)) &&
			!(strings.HasSuffix(test.want, `"result":`) && strings.HasPrefix(got, test.want)) && !(strings.HasSuffix(test.want, `"tools":[`) && strings.HasPrefix(got, test.want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		} else if _, body, ok := strings.Cut(got, " "); ok && !json.Valid([]byte(body)) {
			t.Errorf("%s: not JSON: %s", name, body)
		}
	}
}
