package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestNotSettled calls a missing tool while files with tools are still being read.
func TestNotSettled(t *testing.T) {
	t.Parallel()
	coming, table := true, tableOf(t, tool("add", echo))
	table.SetComing(func(string) bool { return coming })
	h := appOf(t, table, options{})
	for _, test := range []struct{ name, want string }{
		{"add", `"structuredContent":{"n":7}`},
		{"later", `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"There is no such tool yet, but files that may contain it are still being read; try again.","data":{"code":"not_ready"}}}`},
	} {
		if got := answer(h, request(call(test.name, "{}"))); got != test.want && (test.want[0] != '"' || !strings.Contains(got, test.want)) {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	searching := appOf(t, table, options{set: toolset.Options{Search: toolset.SearchAlways}})
	if got := answer(searching, request(call("call_tool", `{"name":"later"}`))); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"code":"not_ready"`) {
		t.Errorf("through call_tool: got %s", got)
	}
	coming = false
	if got := answer(searching, request(call("call_tool", `{"name":"later"}`))); !strings.Contains(got, `"code":"not_found"`) {
		t.Errorf("through call_tool, later: got %s", got)
	}
	if got := answer(h, request(call("later", "{}"))); !strings.Contains(got, "Unknown tool") {
		t.Errorf("got %s", got)
	}
}

// TestAnswerMemory checks that a large result and its answer count as used memory until the client has received them.
func TestAnswerMemory(t *testing.T) {
	t.Parallel()
	const size = 300 << 10
	sum := invoker.New(invoker.Options{Memory: 2 * size})
	h := appOf(t, tableOf(t, tool("large", ends(`"`+strings.Repeat("x", size)+`"`, nil)), tool("add", echo)), options{set: toolset.Options{Invoker: sum}})
	stuck := &stuckClient{header: http.Header{}, writing: make(chan struct{}), free: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		h.ServeHTTP(stuck, request(call("large", "{}")))
		close(ended)
	}()
	<-stuck.writing
	if got := answer(h, request(call("large", "{}"))); !strings.Contains(got, `"code":"overloaded"`) || !strings.Contains(got, `"isError":true`) {
		t.Errorf("beside a large answer: got %.1000s", got)
	}
	if got := answer(h, request(call("add", "{}"))); !strings.Contains(got, `{"n":7}`) {
		t.Errorf("a small call beside it: got %s", got)
	}
	close(stuck.free)
	<-ended
	if got := answer(h, request(call("large", "{}"))); !strings.Contains(got, "xxx") {
		t.Errorf("after it: got %.1000s", got)
	}
}

// A stuckClient reads its answer only once it is released.
type stuckClient struct {
	header        http.Header
	writing, free chan struct{}
}

func (c *stuckClient) Header() http.Header { return c.header }
func (c *stuckClient) WriteHeader(int)     {}
func (c *stuckClient) Write(p []byte) (int, error) {
	close(c.writing)
	<-c.free
	return len(p), nil
}

// TestLargeArguments calls a tool with arguments as large as its limit, and one byte larger.
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	one := tool("one", func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil })
	one.MaxInput = 200 << 10
	h := appOf(t, tableOf(t, one), options{})
	for more, want := range map[int]string{0: `"structuredContent":1`, 1: `"code":"input_too_large"`} {
		arguments := `{"n":` + strings.Repeat(" ", int(one.MaxInput)-len(`{"n":1}`)+more) + `1}`
		if got := answer(h, request(call("one", arguments))); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, want) {
			t.Errorf("%d bytes: got %.300s, want %s", len(arguments), got, want)
		}
	}
}

// TestClose closes a door twice. The door continues to serve. Without a set, NewDoor panics.
func TestClose(t *testing.T) {
	t.Parallel()
	h := appOf(t, tableOf(t, tool("add", echo)), options{})
	if err := errors.Join(h.door.Close(), h.door.Close()); err != nil {
		t.Error(err)
	}
	if got := answer(h, request(call("add", "{}"))); !strings.Contains(got, `{"n":7}`) {
		t.Errorf("got %s", got)
	}
	defer func() {
		if v := recover(); v == nil {
			t.Error("a door without a set")
		}
	}()
	mcp.NewDoor(nil, mcp.Options{})
}
