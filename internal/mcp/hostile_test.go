package mcp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestRefused sends invalid requests. Each answer has the status and the code that the specification requires, and the request's id if there is one.
// Proves: A caller reaches its own tools only
// Proves: Nothing stops the server
func TestRefused(t *testing.T) {
	t.Parallel()
	h := fixture(t)
	list, add := message("tools/list", ""), call("math-add", "{}")
	without := func(body, part string) string {
		if !strings.Contains(body, part) {
			t.Fatalf("%s has no %s", body, part)
		}
		return strings.Replace(body, part, "", 1)
	}
	replaced := func(body, old, part string) string { return strings.Replace(body, old, part, 1) }
	const anonymous = 0 // the answer has no id
	for name, test := range map[string]struct {
		r        *http.Request
		status   int
		id, code int
		says     string
	}{
		// The body.
		"nothing":                                {request("", "Mcp-Method", "tools/list"), 400, anonymous, -32700, "The message is not JSON"},
		"not JSON":                               {request(list[:40], "Mcp-Method", "tools/list"), 400, anonymous, -32700, "The message is not JSON"},
		"wrong UTF-8":                            {request(replaced(list, "tools/list", "tools\xff"), "Mcp-Method", "tools/list"), 400, anonymous, -32700, "Invalid UTF-8"},
		"trailing data":                          {request(list + "{}"), 400, anonymous, -32700, "Extra data"},
		"nested too deeply":                      {request(message("tools/list", `"x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000))), 400, anonymous, -32700, "Nested too deeply"},
		"batch":                                  {request("["+list+"]", "Mcp-Method", "tools/list"), 400, anonymous, -32600, "Batches are not supported"},
		"batch of nothing":                       {request(" []", "Mcp-Method", "tools/list"), 400, anonymous, -32600, "Batches are not supported"},
		"a string":                               {request(`"tools/list"`, "Mcp-Method", "tools/list"), 400, anonymous, -32600, "The message is not an object"},
		"null":                                   {request(`null`, "Mcp-Method", "tools/list"), 400, anonymous, -32600, "The message is not an object"},
		"an empty object":                        {request(`{}`, "Mcp-Method", "tools/list"), 400, anonymous, -32600, `no \"jsonrpc`},
		"without a version of JSON-RPC":          {request(without(list, `"jsonrpc":"2.0",`)), 400, 1, -32600, `no \"jsonrpc`},
		"a version of JSON-RPC that is a number": {request(replaced(list, `"2.0"`, `2.0`)), 400, 1, -32600, `no \"jsonrpc`},
		"no method":                              {request(without(list, `"method":"tools/list",`), "Mcp-Method", "tools/list"), 400, 1, -32600, "The method must be a string"},
		"method that is a number":                {request(replaced(list, `"tools/list"`, `1`), "Mcp-Method", "tools/list"), 400, 1, -32600, "The method must be a string"},
		"a response":                             {request(`{"jsonrpc":"2.0","id":1,"result":{}}`, "Mcp-Method", "tools/list"), 400, 1, -32600, "The message is a response"},
		"two methods":                            {request(replaced(list, `"method"`, `"method":"tools/call","method"`)), 400, 1, -32600, "The message contains method twice"},
		"two params":                             {request(replaced(list, `"params"`, `"params":{},"params"`)), 400, 1, -32600, "The message contains params twice"},
		"two ids":                                {request(replaced(list, `"id":1`, `"id":2,"id":1`)), 400, 1, -32600, "The message contains id twice"},
		"a method twice, escaped":                {request(replaced(list, `"method"`, `"meth\u006fd":"tools/call","method"`)), 400, 1, -32600, "The message contains method twice"},
		"id null":                                {request(replaced(list, `"id":1`, `"id":null`)), 400, anonymous, -32600, "The id must be"},
		"id that is an object":                   {request(replaced(list, `"id":1`, `"id":{}`)), 400, anonymous, -32600, "The id must be"},
		"id with a fraction":                     {request(replaced(list, `"id":1`, `"id":1.5`)), 400, anonymous, -32600, "The id must be"},
		"id with an exponent":                    {request(replaced(list, `"id":1`, `"id":1e2`)), 400, anonymous, -32600, "The id must be"},
		"long id":                                {request(replaced(list, `"id":1`, `"id":"`+strings.Repeat("x", 255)+`"`)), 400, anonymous, -32600, "The id must be"},
		"params as a list":                       {request(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`), 400, 1, -32602, "The params must be an object"},
		"params null":                            {request(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`), 400, 1, -32602, "The params must be an object"},
		"two names":                              {request(call("math-add", `{},"name":"off"`), "Mcp-Name", "math-add"), 400, 1, -32602, "The params contain name twice"},
		"two arguments":                          {request(call("math-add", `{},"arguments":{"n":2}`)), 400, 1, -32602, "The params contain arguments twice"},
		"name that is a number":                  {request(replaced(add, `"math-add"`, `7`), "Mcp-Name", "7"), 400, 1, -32602, "The name must be a string"},
		"no name":                                {request(without(add, `"name":"math-add",`), "Mcp-Name", "math-add"), 400, 1, -32602, "The params have no name"},
		"arguments as a list":                    {request(call("math-add", "[1]")), 400, 1, -32602, "The arguments must be an object"},
		"arguments as a string":                  {request(call("math-add", `"{}"`)), 400, 1, -32602, "The arguments must be an object"},
		"call without an id":                     {request(without(add, `"id":1,`)), 400, anonymous, -32600, "A request needs an id"},
		"list without an id":                     {request(without(list, `"id":1,`)), 400, anonymous, -32600, "A request needs an id"},
		"cursor made up":                         {request(message("tools/list", `"cursor":"made up"`)), 200, 1, -32602, "Invalid cursor"},
		"empty cursor":                           {request(message("tools/list", `"cursor":""`)), 400, 1, -32602, "Invalid cursor"},
		"cursor that is a number":                {request(message("tools/list", `"cursor":7`)), 400, 1, -32602, "The cursor must be a string"},
		"unknown method":                         {request(message("tools/frobnicate", "")), 404, 1, -32601, "Method not found"},
		"initialize":                             {request(message("initialize", "")), 404, 1, -32601, "Method not found"},
		"ping":                                   {request(message("ping", "")), 404, 1, -32601, "Method not found"},
		"prompts/list":                           {request(message("prompts/list", "")), 404, 1, -32601, "Method not found"},
		"listen for nothing":                     {request(message("subscriptions/listen", "")), 400, 1, -32602, "The params have no notifications"},
		"notifications as a string":              {request(message("subscriptions/listen", `"notifications":"all"`)), 400, 1, -32602, "The notifications must be an object"},
		"listen, perhaps":                        {request(message("subscriptions/listen", `"notifications":{"toolsListChanged":1}`)), 400, 1, -32602, "must be true or false"},
		"message without end":                    {request(message("tools/list", `"x":"`+strings.Repeat("x", 1<<16)+`"`)), 413, anonymous, -32600, "A message that doesn't call a tool may have at most"},
		"arguments without end":                  {request(call("math-add", `{"n":"`+strings.Repeat("x", 2<<20)+`"}`)), 413, anonymous, -32600, "the limit of /math/add"},
		"endless call of an unknown tool":        {request(call("nothing", `{"n":"`+strings.Repeat("x", 2<<20)+`"}`)), 413, anonymous, -32600, "A message that doesn't call a tool may have at most"},
		"endless call of a disabled tool":        {request(call("off", `{"n":"`+strings.Repeat("x", 2<<20)+`"}`)), 503, anonymous, -32603, "Tool /off is disabled: being repaired"},
		"token that is an object":                {request(replaced(add, `"_meta":{`, `"_meta":{"progressToken":{},`)), 400, 1, -32602, "progressToken must be"},
		"token without end":                      {request(replaced(add, `"_meta":{`, `"_meta":{"progressToken":"`+strings.Repeat("x", 1000)+`",`)), 400, 1, -32602, "progressToken must be"},
		"no _meta":                               {request(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`), 400, 1, -32602, "protocolVersion"},
		"no params":                              {request(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), 400, 1, -32602, "protocolVersion"},
		"_meta that is a list":                   {request(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`), 400, 1, -32602, "_meta must be an object"},
		"_meta without a version":                {request(without(list, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`)), 400, 1, -32602, "protocolVersion"},
		"_meta without capabilities":             {request(without(list, `,"io.modelcontextprotocol/clientCapabilities":{}`)), 400, 1, -32602, "clientCapabilities"},
		"capabilities as a list":                 {request(replaced(list, `Capabilities":{}`, `Capabilities":[]`)), 400, 1, -32602, "clientCapabilities must be an object"},
		"version that is a number":               {request(replaced(list, `"2026-07-28"`, `2026`)), 400, 1, -32602, "protocolVersion must be a string"},
		"two versions in _meta":                  {request(replaced(list, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25",`)), 400, 1, -32602, "twice"},
		"a call with wrong arguments and without _meta": {request(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"math-add","arguments":{"n":"x"}}}`), 400, 1, -32602, "protocolVersion"},

		// Its headers.
		"no type":                                  {request(list, "Content-Type", ""), 415, anonymous, -32600, "Content-Type"},
		"a page's type":                            {request(list, "Content-Type", "text/plain"), 415, anonymous, -32600, "Content-Type"},
		"compressed":                               {request(list, "Content-Encoding", "gzip"), 415, anonymous, -32600, "Content-Encoding"},
		"no version in the header":                 {request(list, "Mcp-Protocol-Version", ""), 400, 1, -32020, "MCP-Protocol-Version is missing"},
		"no version anywhere":                      {request(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Protocol-Version", ""), 400, 1, -32020, "begin with initialize"},
		"another version in the header":            {request(list, "Mcp-Protocol-Version", "2025-11-25"), 400, 1, -32020, "MCP-Protocol-Version is not the version"},
		"another version in the body":              {request(replaced(list, `"2026-07-28"`, `"2099-01-01"`)), 400, 1, -32020, "MCP-Protocol-Version is not the version"},
		"odd version in the header":                {request(list, "Mcp-Protocol-Version", "2026-07-28\xff"), 400, 1, -32020, "MCP-Protocol-Version is not well-formed"},
		"unknown version":                          {request(replaced(list, `"2026-07-28"`, `"v999.0.0"`), "Mcp-Protocol-Version", "v999.0.0"), 400, 1, -32022, `"data":{"supported":["2026-07-28","2025-11-25","2025-06-18"],"requested":"v999.0.0"}`},
		"a long unknown version":                   {request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Protocol-Version", strings.Repeat("9", 5000)), 400, 1, -32022, `"requested":"` + strings.Repeat("9", 61) + `..."`},
		"unknown version without _meta":            {request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Protocol-Version", "1900-01-01"), 400, 1, -32022, `"requested":"1900-01-01"`},
		"no method in the header":                  {request(list, "Mcp-Method", ""), 400, 1, -32020, "Mcp-Method is missing"},
		"another method in the header":             {request(list, "Mcp-Method", "prompts/list"), 400, 1, -32020, "Mcp-Method is not the method"},
		"a call whose header names another method": {request(list, "Mcp-Method", "tools/call", "Mcp-Name", "math-add"), 400, 1, -32020, "Mcp-Method is not the method"},
		"a call that claims to be a list":          {request(add, "Mcp-Method", "tools/list"), 400, 1, -32020, "Mcp-Method is not the method"},
		"method in capitals":                       {request(list, "Mcp-Method", "TOOLS/LIST"), 400, 1, -32020, "Mcp-Method is not the method"},
		"no name in the header":                    {request(add, "Mcp-Name", ""), 400, 1, -32020, "Mcp-Name is missing"},
		"another name in the header":               {request(add, "Mcp-Name", "off"), 400, 1, -32020, "Mcp-Name is not the name"},
		"unknown name in the header":               {request(add, "Mcp-Name", "nothing"), 400, 1, -32020, "Mcp-Name is not the name"},
		"name in Base64 without padding":           {request(add, "Mcp-Name", "=?base64?bWF0aC1hZGQx?=x"), 400, 1, -32020, "Mcp-Name is not the name"},
		"name in bad Base64":                       {request(add, "Mcp-Name", "=?base64?bWF0aC1hZA?="), 400, 1, -32020, "Mcp-Name is missing or not well-formed"},
		"name with another alphabet":               {request(add, "Mcp-Name", "=?base64?bW!0aC1hZGQ=?="), 400, 1, -32020, "Mcp-Name is missing or not well-formed"},
		"name outside of ASCII":                    {request(add, "Mcp-Name", "math-add\u00e9"), 400, 1, -32020, "Mcp-Name is missing or not well-formed"},
	} {
		status, body := serve(h, test.r)
		id := fmt.Sprintf(`"id":%d,`, test.id)
		if test.id == anonymous {
			id = ""
		}
		want := fmt.Sprintf(`{"jsonrpc":"2.0",%s"error":{"code":%d,"message":`, id, test.code)
		if status != test.status || !strings.HasPrefix(body, want) || !strings.Contains(body, test.says) {
			t.Errorf("%s: got\n%d %s\nwant\n%d %s… %s", name, status, body, test.status, want, test.says)
		}
	}
}

// TestTwoHeaders sends requests that have the same header twice.
// Proves: A caller reaches its own tools only
func TestTwoHeaders(t *testing.T) {
	t.Parallel()
	h := fixture(t)
	for _, header := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		r := request(call("math-add", "{}"))
		r.Header.Add(header, r.Header.Get(header))
		if got := answer(h, r); !strings.HasPrefix(got, `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,`) {
			t.Errorf("%s: got %s", header, got)
		}
	}
}

// TestElsewhere sends requests with other methods, and for paths that no namespace can have.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	h := fixture(t)
	for _, method := range []string{http.MethodPut, http.MethodHead, http.MethodPatch} {
		r := request("", "Mcp-Method", "")
		r.Method = method
		if status, _ := serve(h, r); status != http.StatusMethodNotAllowed {
			t.Errorf("%s: got %d", method, status)
		}
	}
	for _, path := range []string{"/mcp/math/", "/mcp//", "/mcp/a%b", "/mcp/a b", "/mcp/.", "/mcp/" + strings.Repeat("x", 65)} {
		if got := answer(h, at(path, request(message("tools/list", "")))); !strings.HasPrefix(got, `404 {"detail":"Not Found"`) {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

// TestBrokenBody makes a body end too early.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	h := fixture(t)
	for name, body := range map[string]string{"list": message("tools/list", ""), "call": call("math-add", "{}")} {
		r := request(body)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:20]), broken{}))
		if got := answer(h, r); !strings.HasPrefix(got, `400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"The body could not be read to its end"`) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestHidden makes a principal call a tool that it may not call: the answer is the same as for a missing tool, byte for byte.
// Proves: A caller reaches its own tools only
func TestHidden(t *testing.T) {
	t.Parallel()
	with, without := tableOf(t, tool("secret", echo), tool("math/add", echo)), tableOf(t, tool("math/add", echo))
	for _, p := range []*wasmtools.Principal{principal(t, "math"), principal(t)} {
		for _, r := range []func() *http.Request{
			func() *http.Request { return request(call("secret", `{}`)) },
			func() *http.Request { return request(call("secret", `{"n":"x"}`)) },
			func() *http.Request { return request(message("tools/list", "")) },
			func() *http.Request { return request(call("secret", `{"n":"`+strings.Repeat("x", 100_000)+`"}`)) },
		} {
			o := options{dependencies: []web.Dependency{as{p}}}
			got, want := answer(appOf(t, with, o), r()), answer(appOf(t, without, o), r())
			if got != want || strings.Contains(got, "A tool") && p.Scopes() == nil {
				t.Errorf("got\n%s\nwithout the tool\n%s", got, want)
			}
		}
	}
}
