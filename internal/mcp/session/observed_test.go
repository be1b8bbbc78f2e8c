package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A witness is an observer that passes on what it is told of requests, with their ids.
type witness chan [2]string

func (o witness) Answered(a *web.Answer) {
	code := ""
	if a.Error() != nil {
		code = string(a.Error().Code)
	}
	o <- [2]string{fmt.Sprintf("%s %s by %s: %s%s %d %v %v %v", a.Door(), a.Operation(), a.Principal(), a.Tool(), code, a.Status(), a.Request() == nil,
		a.Client().IsValid(), a.Took() >= 0), a.RequestID()}
}

// TestStdioObserved checks that observers, such as the log, are told of each request over two pipes: even of one that calls no tool, or can't be
// read.
func TestStdioObserved(t *testing.T) {
	t.Parallel()
	a, o, log := newApp(t), make(witness, 10), &testkit.Log{}
	if err := a.table.Replace([]*wasmtools.Tool{tool("id", `{"type":"object"}`, func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
		return json.Marshal(call.RequestID)
	}), tool("panic", `{"type":"object"}`, func(context.Context, *wasmtools.Call) ([]byte, error) { panic("odd") })}, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.table.Disable("/panic", ""); err != nil {
		t.Fatal(err)
	}
	p := a.stdio(t, session.StdioOptions{Observers: []web.Observer{o}, Logger: log.Logger(slog.LevelDebug), MaxMessage: 1000})
	ids := map[string]bool{}
	for _, test := range []struct {
		name, send, want, logged string
	}{
		{"a call", request("1", "tools/call", modern, `"name":"id"`), "stdio tools/call by process: /id", "operation=tools/call tool=/id"},
		{"a list", request("1", "tools/list", modern), "stdio tools/list by process: ", "operation=tools/list"},
		{"an unknown tool", request("1", "tools/call", modern, `"name":"no"`), "stdio tools/call by process: not_found", "code=not_found"},
		{"a disabled tool", request("1", "tools/call", modern, `"name":"panic"`), "stdio tools/call by process: /panictool_disabled", "tool=/panic code=tool_disabled"},
		{"an unknown method", request("1", "no/such", modern), "stdio no/such by process: not_found", `operation=no/such`},
		{"a call without a name", request("1", "tools/call", modern), "stdio tools/call by process: invalid_arguments", `code=invalid_arguments error="The params have no name"`},
		{"no JSON", `{"jsonrpc":`, "stdio by process: invalid_arguments", `error="The message is not JSON`},
		{"an invalid id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "stdio by process: invalid_arguments", `error="The id must be`},
		{"too long", `{"jsonrpc":"` + strings.Repeat("x", 1000), "stdio by process: invalid_arguments", `error="The message is larger than`},
	} {
		p.send(test.send)
		answer := p.next()
		var told [2]string
		select {
		case told = <-o:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nobody was told", test.name)
		}
		id := told[1]
		if got, want := strings.Join(strings.Fields(told[0]), " "), strings.Join(strings.Fields(test.want+" 0 true false true"), " "); got != want || id == "" || ids[id] {
			t.Errorf("%s: observers were told %q of the request %q, want %q and an id of its own", test.name, got, id, want)
		}
		if ids[id] = true; test.name == "a call" && !strings.Contains(answer, id) {
			t.Errorf("the tool was called for another request than %s: %s", id, answer)
		}
		log.Wait(t, "request_id="+id)
		if got := log.Count("request_id="+id, test.logged); got != 1 {
			t.Errorf("%s: the log lacks %q of request %s:\n%s", test.name, test.logged, id, log)
		}
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.quiet(modern)
	if len(o) > 1 {
		t.Error("observers are told of a notification")
	}
}
