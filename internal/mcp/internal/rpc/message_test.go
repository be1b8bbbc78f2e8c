package rpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, id, method, fault string }{
		{"a request", `{"jsonrpc":"2.0","id":1,"method":"m"}`, "1", "m", ""},
		{"escapes", ` { "\u006ason\u0072pc" : "2.0" , "id" : "\n" , "method" : "\u006d" } `, `"\n"`, "m", ""},
		{"a notification", `{"jsonrpc":"2.0","method":"m","params":{}}`, "", "m", ""},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, "1", "", ""},
		{"the longest id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 254) + `","method":"m"}`, `"` + strings.Repeat("x", 254) + `"`, "m", ""},
		{"an id that is too long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 255) + `","method":"m"}`, "", "", "-32600 The id must be a string or an integer, of at most 256 bytes"},
		{"an id with a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, "", "", "-32600 The id must be a string or an integer, of at most 256 bytes"},
		{"an id with an exponent", `{"jsonrpc":"2.0","id":1e3,"method":"m"}`, "", "", "-32600 The id must be a string or an integer, of at most 256 bytes"},
		{"an id below zero", `{"jsonrpc":"2.0","id":-1,"method":"m"}`, "-1", "m", ""},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"m"}`, "", "", "-32600 The id must be a string or an integer, of at most 256 bytes"},
		{"two methods", `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, "1", "", "-32600 The message contains method twice"},
		{"no version", `{"id":1,"method":"a"}`, "1", "", `-32600 The message has no "jsonrpc": "2.0"`},
		{"no method", `{"jsonrpc":"2.0","id":1}`, "1", "", "-32600 The method must be a string"},
		{"an invalid method", `{"jsonrpc":"2.0","id":1,"method":7}`, "1", "", "-32600 The method must be a string"},
		{"params by position", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, "1", "m", "-32602 The params must be an object"},
		{"params null", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, "1", "m", "-32602 The params must be an object"},
		{"two names", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","na\u006de":"b"}}`, "1", "m", "-32602 The params contain name twice"},
		{"an invalid name", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":1}}`, "1", "m", "-32602 The name must be a string"},
		{"an invalid _meta", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":1}}`, "1", "m", "-32602 The params' _meta must be an object"},
		{"an invalid progress token", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":true}}}`, "1", "m", "-32602 The _meta's progressToken must be a string or an integer, of at most 256 bytes"},
		{"an invalid version", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}}`, "1", "m", "-32602 The _meta's io.modelcontextprotocol/protocolVersion must be a string"},
		{"a batch", ` [{"jsonrpc":"2.0","id":1,"method":"m"}]`, "", "", "-32600 Batches are not supported; send each message separately"},
		{"a word", `"m"`, "", "", "-32600 The message is not an object"},
		{"nothing", ``, "", "", "-32700 The message is not JSON: Expecting value at byte 0"},
		{"half", `{"jsonrpc"`, "", "", "-32700 The message is not JSON: Expecting ':' delimiter at byte 10"},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2001), "", "", "-32700 The message is not JSON: Nested too deeply at byte 5041"},
		{"wrong UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "", "", "-32700 The message is not JSON: Invalid UTF-8 at byte 34"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var m rpc.Message
			got := ""
			if f := m.Parse([]byte(test.text)); f != nil {
				got = fmt.Sprint(f.Code, " ", f.Message)
			}
			if got != test.fault || string(m.ID) != test.id || string(m.Method) != test.method {
				t.Errorf("got %q, id %q, method %q", got, m.ID, m.Method)
			}
		})
	}
}

func TestParseParams(t *testing.T) {
	t.Parallel()
	var m rpc.Message
	text := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a\"b","arguments":{"x":[1,{}]},"cursor":"c","notifications":{"toolsListChanged":true},"protocolVersion":"v",` +
		`"clientInfo":{},"clientInfo":7,"requestId":7,"other":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"a":1},"progressToken":"t","x":1}}}`
	if f := m.Parse([]byte(text)); f != nil {
		t.Fatal(f)
	}
	for _, test := range []struct{ name, got, want string }{
		{"name", string(m.Name), `a"b`},
		{"arguments", string(m.Arguments), `{"x":[1,{}]}`},
		{"cursor", string(m.Cursor), `"c"`},
		{"notifications", string(m.Notifications), `{"toolsListChanged":true}`},
		{"version of initialize", string(m.Version), `"v"`},
		{"request id", string(m.RequestID), `7`},
		{"version", string(m.MetaVersion), `2026-07-28`},
		{"capabilities", string(m.Capabilities), `{"a":1}`},
		{"token", string(m.Token), `"t"`},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, test.got, test.want)
		}
	}
	if wanted, f := m.WantsTools(); !wanted || f != nil {
		t.Errorf("got %v, %v", wanted, f)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	id, token := []byte(`"i"`), []byte(`7`)
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"fault", rpc.AppendFault(nil, id, rpc.Invalid("a \"b\"\n")), `{"jsonrpc":"2.0","id":"i","error":{"code":-32600,"message":"a \"b\"\u000a"}}`},
		{"fault with data", rpc.AppendFault(nil, nil, &rpc.Fault{Code: 1, Message: "m", Data: []byte("{}")}), `{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":{}}}`},
		{"progress", rpc.AppendProgress(nil, token, 0.5, 3, "é\""), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5,"total":3,"message":"é\""}}`},
		{"progress without total", rpc.AppendProgress(nil, token, 1e300, 0, ""), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1e+300}}`},
		{"list changed", rpc.AppendListChanged(nil, nil), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
		{"list changed of a subscription", rpc.AppendListChanged(nil, id), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"i"}}}`},
		{"acknowledged", rpc.AppendAcknowledged(nil, id, true), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"i"}}}`},
		{"unsubscribed", rpc.AppendUnsubscribed(nil, id), `{"jsonrpc":"2.0","id":"i","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"i"}}}`},
	} {
		if string(test.got) != test.want || !json.Valid(test.got) {
			t.Errorf("%s: got %s", test.name, test.got)
		}
	}
}

// FuzzParse checks that a message is read as package json reads it, and that each answer is JSON on one line.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`, `[]`, `{}`, `{"jsonrpc":"2.0","id":"\ud800","method":"\ud800"}`,
		`{"jsonrpc":"2.0","id":1e9,"method":"","params":{"notifications":{"toolsListChanged":false}}}`, "{\"jsonrpc\":\"2.0\",\n\"id\"\r:\"a\",\"method\":\"b\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m rpc.Message
		fault := m.Parse(text)
		if fault == nil {
			var want map[string]json.RawMessage
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatalf("package json refuses it: %v", err)
			}
			if string(m.ID) != string(want["id"]) {
				t.Errorf("id %q, package json: %q", m.ID, want["id"])
			}
			var method string
			if want["method"] != nil && json.Unmarshal(want["method"], &method) != nil || string(m.Method) != method {
				t.Errorf("method %q, package json: %q", m.Method, want["method"])
			}
			_, _ = m.WantsTools()
			fault = rpc.Invalid(string(m.Method))
		}
		if out := rpc.AppendFault(nil, m.ID, fault); !json.Valid(out) || strings.ContainsAny(string(out), "\r\n") {
			t.Errorf("the answer is %q", out)
		}
	})
}
