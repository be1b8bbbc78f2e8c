package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// A recorder notes how calls ended.
type recorder struct{ records *[]string }

func (recorder) Began(ctx context.Context, _ *invoke.Record) context.Context { return ctx }
func (o recorder) Ended(_ context.Context, r *invoke.Record)                 { o.Refused(r) }
func (o recorder) Refused(r *invoke.Record) {
	*o.records = append(*o.records, r.Path+" "+string(r.Code()))
}

// TestLog checks the log lines of requests, and what observers are told about calls.
func TestLog(t *testing.T) {
	t.Parallel()
	secret := errors.New("hunter2")
	var log bytes.Buffer
	var records []string
	table := tableOf(t, tool("math/add", echo), tool("breaks", ends("", &wasmtools.Error{Code: wasmtools.CodeInternal, Err: secret})),
		tool("traps", ends("", &wasmtools.Error{Code: wasmtools.CodeToolTrapped, Err: secret})), tool("off", echo),
		tool("panics", func(context.Context, *wasmtools.Call) ([]byte, error) { panic(secret) }))
	if err := table.Disable("/off", ""); err != nil {
		t.Fatal(err)
	}
	invoker := invoker.New(invoker.Options{Observers: []invoke.Observer{recorder{&records}}})
	h := appOf(t, table, options{set: toolset.Options{Invoker: invoker}, log: slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})})
	for _, test := range []struct {
		body, want, record string
	}{
		{call("math-add", "{}"), "INFO 200 tools/call /math/add", "/math/add "},
		{call("math-add", `{"n":"x"}`), "INFO 200 tools/call /math/add invalid_arguments", "/math/add invalid_arguments"},
		{call("math-add", `{"n":1},"arguments":{}`), "DEBUG 400 tools/call /math/add invalid_arguments The params contain arguments twice", "/math/add invalid_arguments"},
		{call("off", "{}"), "INFO 200 tools/call /off tool_disabled", "/off tool_disabled"},
		{call("nothing", "{}"), "INFO 200 tools/call not_found", ""},
		{call("traps", "{}"), "WARN 200 tools/call /traps tool_trapped hunter2", "/traps tool_trapped"},
		{call("breaks", "{}"), "ERROR 200 tools/call /breaks internal hunter2", "/breaks internal"},
		{call("panics", "{}"), "ERROR 500 tools/call /panics internal panic: hunter2", "/panics internal"},
		{message("tools/list", ""), "INFO 200 tools/list", ""},
		{message("server/discover", ""), "INFO 200 server/discover", ""},
		{message("ping", ""), "DEBUG 404 not_found Method not found", ""},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, "INFO 202 notification", ""},
	} {
		log.Reset()
		records = nil
		status, body := serve(h, request(test.body))
		if strings.Contains(body, "hunter2") || status >= 500 && body != `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error; give the operator the request id","data":{"code":"internal","request_id":"test"}}}` {
			t.Errorf("%s: got %s", test.body, body)
		}
		var line struct {
			Level                        string
			Status                       json.Number
			Operation, Tool, Code, Error string
			RequestID                    string `json:"request_id"`
		}
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.RequestID != "test" {
			t.Fatalf("%s: %v", log.String(), err)
		}
		first, _, _ := strings.Cut(line.Error, "\n")
		got := strings.Join(strings.Fields(strings.Join([]string{line.Level, line.Status.String(), line.Operation, line.Tool, line.Code, first}, " ")), " ")
		if strings.HasPrefix(test.want, "DEBUG") { // unless a second has passed since the last line of this kind
			got = strings.Replace(got, "INFO", "DEBUG", 1)
		}
		if got != test.want || strings.Join(records, ", ") != test.record {
			t.Errorf("%s: got %q and %q, want %q and %q", test.body, got, records, test.want, test.record)
		}
	}
}

// TestLogOfCallTool checks that the line of a call through call_tool names the called tool, and that observers are told of both.
func TestLogOfCallTool(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var records []string
	invoker := invoker.New(invoker.Options{Observers: []invoke.Observer{recorder{&records}}})
	h := appOf(t, tableOf(t, tool("math/add", echo), tool("panics", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("hunter2") })),
		options{set: toolset.Options{Invoker: invoker, Search: toolset.SearchAlways}, log: slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})})
	for _, test := range []struct{ arguments, answer, tool, records string }{
		{`{"name":"math-add","arguments":{"n":1}}`, `"structuredContent":{"n":1}`, "/math/add", "/math/add , /call_tool "},
		{`{"name":"math-add","arguments":{"n":"x"}}`, `"code":"invalid_arguments"`, "/math/add", "/math/add invalid_arguments, /call_tool invalid_arguments"},
		{`{"name":"nothing"}`, `"code":"not_found"`, "/call_tool", "nothing not_found, /call_tool not_found"},
		{`{"name":"panics"}`, `"code":-32603`, "/call_tool", "/panics internal, /call_tool internal"},
	} {
		log.Reset()
		records = nil
		_, body := serve(h, request(call("call_tool", test.arguments)))
		if !strings.Contains(body, test.answer) || strings.Contains(body, "hunter2") {
			t.Errorf("%s: got %s, want %s", test.arguments, body, test.answer)
		}
		if got := strings.Join(records, ", "); got != test.records || !strings.Contains(log.String(), `"tool":"`+test.tool+`"`) {
			t.Errorf("%s: got %q and %s, want %q and %s", test.arguments, got, log.String(), test.records, test.tool)
		}
	}
}
