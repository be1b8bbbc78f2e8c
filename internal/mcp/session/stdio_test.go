package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestStdio checks the answer to each message that a client writes, in both eras.
func TestStdio(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, version, send, want string
	}{
		{"discover", modern, request("1", "server/discover", modern), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18"],
			"capabilities":{"tools":{"listChanged":true}},"instructions":"Add.","ttlMs":60000,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`},
		{"a call", modern, request("1", "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":2,"b":3}`), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",
			"content":[{"type":"text","text":"{\"sum\":5}"}],"structuredContent":{"sum":5},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`},
		{"a call in a session", legacy, request("1", "tools/call", legacy, `"name":"math-add"`, `"arguments":{"a":2}`), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}}}`},
		{"no arguments", legacy, request("1", "tools/call", legacy, `"name":"echo"`), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}}`},
		{"ping", legacy, request("1", "ping", legacy), `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"no params", legacy, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"an id of many digits", legacy, request("9007199254740993", "ping", legacy), `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		{"an id that is a string", legacy, request(`"\u00e9\n"`, "ping", legacy), `{"jsonrpc":"2.0","id":"é\n","result":{}}`},
		{"a tool that fails", legacy, request("1", "tools/call", legacy, `"name":"fail"`), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no luck"}],"isError":true,
			"_meta":{"io.github.toolsrv/error":{"code":"tool_error","detail":"no luck"}}}}`},
		{"a disabled tool", legacy, request("1", "tools/call", legacy, `"name":"math-deep-off"`), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Tool /math/deep/off is disabled: under repair"}],"isError":true,
			"_meta":{"io.github.toolsrv/error":{"code":"tool_disabled","detail":"Tool /math/deep/off is disabled: under repair"}}}}`},
		{"an unknown tool", legacy, request("1", "tools/call", legacy, `"name":"no"`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: \"no\""}}`},
		{"a call without a name", modern, request("1", "tools/call", modern), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The params have no name"}}`},
		{"arguments that are not an object", legacy, request("1", "tools/call", legacy, `"name":"echo"`, `"arguments":[1]`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The arguments must be an object"}}`},
		{"a made-up cursor", legacy, request("1", "tools/list", legacy, `"cursor":"AAAA"`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid cursor"}}`},
		{"an empty cursor", legacy, request("1", "tools/list", legacy, `"cursor":""`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid cursor"}}`},
		{"a cursor that is not a string", legacy, request("1", "tools/list", legacy, `"cursor":1`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The cursor must be a string"}}`},
		{"a feature that is not declared", legacy, request("1", "prompts/list", legacy), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"logging", legacy, request("1", "logging/setLevel", legacy, `"level":"debug"`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"an unknown method", legacy, request("1", "no/such", legacy), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"ping in a version without it", modern, request("1", "ping", modern), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"subscriptions in a version without them", legacy, request("1", "subscriptions/listen", legacy, `"notifications":{}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"initialize twice", legacy, begin, `{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"The session has begun already"}}`},
		{"a call before initialize", modern, request("1", "tools/list", legacy), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The session has not begun: send initialize first, or name the protocol version in _meta"}}`},
		{"no capabilities", modern, request("1", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The request has no _meta with io.modelcontextprotocol/clientCapabilities"}}`},
		{"an unknown version", modern, request("1", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}}`),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18"],"requested":"2999-01-01"}}}`},
		{"no JSON", modern, `{"jsonrpc":`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"The message is not JSON: Expecting value at byte 11"}}`},
		{"a batch", legacy, `[` + request("1", "ping", legacy) + `]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Batches are not supported; send each message separately"}}`},
		{"no object", legacy, `"ping"`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is not an object"}}`},
		{"another JSON-RPC", legacy, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The message has no \"jsonrpc\": \"2.0\""}}`},
		{"an invalid id", legacy, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"The id must be a string or an integer, of at most 256 bytes"}}`},
		{"params by position", legacy, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The params must be an object"}}`},
		{"initialize without a version", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The params have no protocolVersion"}}`},
		{"initialize", "", begin, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"},"instructions":"Add."}}`},
		{"initialize of an older version", "", strings.Replace(begin, legacy, "2025-06-18", 1), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"},"instructions":"Add."}}`},
		{"initialize of an unknown version", "", strings.Replace(begin, legacy, "2024-11-05", 1), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"},"instructions":"Add."}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newApp(t).stdio(t, session.StdioOptions{})
			if test.version == legacy {
				p.send(begin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				p.next()
			}
			p.send(test.send)
			if got := p.next(); !sameJSON(t, got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			p.quiet(modern) // nothing else comes, and the session continues
		})
	}
}

// A message that needs no answer gets none, however wrong it is.
func TestStdioSilence(t *testing.T) {
	t.Parallel()
	p := newApp(t).stdio(t, session.StdioOptions{})
	p.send("", "  \r", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/no/such","params":{"a":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"panic"}}`,
		`{"jsonrpc":"2.0","id":5,"result":{}}`, `{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":""}}`)
	p.quiet(modern)
}

func TestStdioProgress(t *testing.T) {
	t.Parallel()
	p := newApp(t).stdio(t, session.StdioOptions{})
	p.send(request(`"x"`, "tools/call", modern, `"name":"steps"`))
	for _, want := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1,"total":4,"message":"a \"quarter\"\n"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1.5}}`,
		`{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","content":[{"type":"text","text":"done"}],"structuredContent":"done","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`,
	} {
		if got := p.next(); !sameJSON(t, got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	p.send(begin, request("1", "tools/call", legacy, `"name":"steps"`)) // no token
	p.next()
	if got := p.next(); !strings.Contains(got, `"id":1,`) {
		t.Errorf("without a token: got %s", got)
	}
}

// A cancelled call ends without an answer. The others continue, since calls run concurrently.
func TestStdioCancelled(t *testing.T) {
	t.Parallel()
	for _, version := range []string{modern, legacy} {
		a := newApp(t)
		p := a.stdio(t, session.StdioOptions{})
		p.send(begin)
		p.next()
		p.send(request("7", "tools/call", version, `"name":"wait"`), request(`"7"`, "tools/call", version, `"name":"wait"`))
		<-a.waiting
		<-a.waiting
		p.quiet(version)
		begun := time.Now()
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"too slow"}}`)
		if err := <-a.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		t.Logf("the call ended %v after the notification was written", time.Since(begun))
		p.quiet(version)
		select {
		case <-a.ended:
			t.Error("the call with another id ended, too")
		default:
		}
	}
}

// TestStdioLog checks that the line of a call names the file that answered it.
func TestStdioLog(t *testing.T) {
	t.Parallel()
	a, log := newApp(t), &testkit.Log{}
	filed := tool("filed", `{"type":"object"}`, add)
	filed.Digest = strings.Repeat("0123456789abcdef", 4)
	if err := a.table.Replace([]*wasmtools.Tool{filed}, nil); err != nil {
		t.Fatal(err)
	}
	p := a.stdio(t, session.StdioOptions{Logger: log.Logger(slog.LevelInfo)})
	p.send(request("1", "tools/call", modern, `"name":"filed"`))
	p.next()
	log.Wait(t, "tool=/filed digest=0123456789ab\n")
}

// An internal error tells the client only an id. The log has the id with the cause.
func TestStdioInternal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"secret", "panic"} {
		log := &testkit.Log{}
		p := newApp(t).stdio(t, session.StdioOptions{Logger: log.Logger(slog.LevelInfo)})
		p.send(request("1", "tools/call", modern, `"name":"`+name+`"`))
		line := p.next()
		id, begins := strings.CutPrefix(line, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error; give the operator the request id","data":{"code":"internal","request_id":"`)
		id, ends := strings.CutSuffix(id, `"}}}`)
		if !begins || !ends {
			t.Errorf("%s: got %s", name, line)
		}
		log.Wait(t, id)
		if !strings.Contains(log.String(), "12345") || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "tool=/"+name) && name != "panic" {
			t.Errorf("%s: the log has\n%s", name, log)
		}
		p.quiet(modern)
	}
}

// The principal decides which tools a client sees. A tool that it may not call is answered like a missing one.
func TestStdioScopes(t *testing.T) {
	t.Parallel()
	principal, err := wasmtools.NewPrincipal("ann", "test", "math")
	if err != nil {
		t.Fatal(err)
	}
	p := newApp(t).stdio(t, session.StdioOptions{Principal: principal})
	p.send(request("1", "tools/call", modern, `"name":"echo"`), request("1", "tools/call", modern, `"name":"ohce"`))
	if a, b := p.next(), p.next(); a != strings.Replace(b, "ohce", "echo", 1) && b != strings.Replace(a, "ohce", "echo", 1) {
		t.Errorf("hidden and unknown differ: %s and %s", a, b)
	}
	p.send(request("2", "tools/list", modern))
	if list := p.next(); strings.Contains(list, "echo") || !strings.Contains(list, "math-add") {
		t.Errorf("got %s", list)
	}

	p = newApp(t).stdio(t, session.StdioOptions{Namespace: "math"})
	p.send(request("2", "tools/list", modern))
	if list := p.next(); strings.Contains(list, "echo") || !strings.Contains(list, "math-add") {
		t.Errorf("got %s", list)
	}
}

// The end of the input ends the session. Running calls get some time, since a shell may have piped the requests in.
func TestStdioEnd(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	var out bytes.Buffer
	in := begin + "\n" + request("1", "tools/call", legacy, `"name":"math-add"`, `"arguments":{"a":1}`) + "\r\n" + request("2", "tools/call", modern, `"name":"wait"`) + "\n" +
		request("3", "subscriptions/listen", modern, `"notifications":{"toolsListChanged":true}`) + "\n" + request("4", "server/discover", modern) // the last line has no line break
	begun := time.Now()
	if err := session.Stdio(t.Context(), a.set, strings.NewReader(in), &out, session.StdioOptions{Grace: time.Second}); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < 900*time.Millisecond || took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if err := <-a.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	for _, want := range []string{`"id":0,"result"`, `"id":1,"result"`, `"id":2,"error":{"code":-32603,"message":"The request was cancelled"`, "acknowledged", `"id":3,"result":{"resultType":"complete"`, `"id":4,"result"`} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("want %s once in:\n%s", want, out.String())
		}
	}

	out.Reset()
	begun = time.Now()
	if err := session.Stdio(t.Context(), a.set, strings.NewReader(begin), &out, session.StdioOptions{Grace: 10 * time.Minute}); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("nothing ran, but the end took %v", took)
	}
}

// A client that does not wait for the answer to initialize still has a session, and gets that answer first.
func TestStdioHurries(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	for range 200 {
		var out bytes.Buffer
		if err := session.Stdio(t.Context(), a.set, strings.NewReader(begin+"\n"+request("1", "tools/list", legacy)), &out, session.StdioOptions{}); err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(out.String(), "\n")
		if !strings.Contains(first, `"id":0,"result"`) || !strings.Contains(rest, `"id":1,"result"`) {
			t.Fatalf("got\n%s", out.String())
		}
	}
}

// A call of a tool that is still being read waits for it, even if the input has ended.
func TestStdioReady(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	ready, end := make(chan struct{}), make(chan error, 1)
	var out bytes.Buffer
	go func() {
		in := begin + "\n" + request("1", "tools/call", legacy, `"name":"late"`) + "\n" + request("2", "tools/call", legacy, `"name":"never"`)
		end <- session.Stdio(t.Context(), a.set, strings.NewReader(in), &out, session.StdioOptions{Ready: ready, Grace: time.Minute})
	}()
	time.AfterFunc(50*time.Millisecond, func() { // by then, both calls are waiting
		a.put(t, "late")
		close(ready)
	})
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1,"result"`, `"id":2,"error":{"code":-32602,"message":"Unknown tool`} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("want %s once in:\n%s", want, out.String())
		}
	}
}

func TestStdioStops(t *testing.T) {
	t.Parallel()
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		a := newApp(t)
		p := a.stdio(t, session.StdioOptions{Grace: 10 * time.Minute})
		p.send(request("1", "tools/call", modern, `"name":"wait"`))
		<-a.waiting
		begun := time.Now()
		p.stop()
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if err := <-a.ended; err == nil {
			t.Error("the call was not cancelled")
		}
	})
	t.Run("broken output", func(t *testing.T) {
		t.Parallel()
		a := newApp(t)
		in, write := io.Pipe()
		defer func() { _ = write.Close() }()
		ended := make(chan error)
		go func() { ended <- session.Stdio(t.Context(), a.set, in, broken{}, session.StdioOptions{}) }()
		for _, line := range []string{request("1", "tools/call", modern, `"name":"wait"`), request("2", "server/discover", modern)} {
			if _, err := io.WriteString(write, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
		if err := <-a.ended; err == nil {
			t.Error("the call was not cancelled")
		}
	})
	t.Run("a client that does not read", func(t *testing.T) {
		t.Parallel()
		const gone = "read a message: the client does not read its answers"
		for name, c := range map[string]struct {
			count int
			send  func(id string) string
			want  string
		}{
			"few pings":     {100, func(id string) string { return request(id, "ping", legacy) }, "<nil>"},
			"pings":         {3000, func(id string) string { return request(id, "ping", legacy) }, gone}, // more than run at the same time
			"subscriptions": {3000, func(id string) string { return request(id, "subscriptions/listen", modern, `"notifications":{}`) }, gone},
			"older ones":    {3000, func(id string) string { return request(id, "subscriptions/listen", legacy, `"notifications":{}`) }, gone},
		} {
			a := newApp(t)
			in, write := io.Pipe()
			out := &stuck{release: make(chan struct{})}
			defer close(out.release)
			ended := make(chan error, 1)
			go func() {
				ended <- session.Stdio(t.Context(), a.set, in, out, session.StdioOptions{Patience: 100 * time.Millisecond})
				in.Close()
			}()
			for i := range c.count {
				if _, err := io.WriteString(write, c.send(fmt.Sprint(i))+"\n"); err != nil {
					break // it has ended
				}
			}
			_ = write.Close()
			select {
			case err := <-ended:
				if got := fmt.Sprint(err); got != c.want {
					t.Errorf("after %s: got %s, want %s", name, got, c.want)
				}
			case <-time.After(time.Minute):
				t.Errorf("after %s, Stdio still waits for its client", name)
			}
		}
	})
	t.Run("calls that take long", func(t *testing.T) {
		t.Parallel()
		a := newApp(t)
		p := a.stdio(t, session.StdioOptions{Patience: 10 * time.Millisecond})
		for i := range 1024 {
			p.send(request(fmt.Sprint(i), "tools/call", modern, `"name":"wait"`))
		}
		p.send(request("1024", "tools/call", modern, `"name":"wait"`)) // this one is read, and waits for another to end
		select {
		case err := <-p.ended:
			t.Errorf("it ended with %v although its client reads", err)
		case <-time.After(100 * time.Millisecond):
		}
	})
	t.Run("a read that fails", func(t *testing.T) {
		t.Parallel()
		in, write := io.Pipe()
		_ = write.CloseWithError(errors.New("the disk is gone"))
		if err := session.Stdio(t.Context(), newApp(t).set, in, io.Discard, session.StdioOptions{}); err == nil || err.Error() != "read a message: the disk is gone" {
			t.Errorf("got %v", err)
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A stuck is a pipe that nobody reads.
type stuck struct{ release chan struct{} }

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

func TestStdioLongLine(t *testing.T) {
	t.Parallel()
	const most = 200_000
	p := newApp(t).stdio(t, session.StdioOptions{MaxMessage: most})
	call := func(size int) string {
		head := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_":"`
		return head + strings.Repeat("x", size-len(head)-3) + `"}}`
	}
	p.send(begin)
	p.next()
	p.send(call(most))
	if got, want := p.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, size := range []int{most + 1, most + 70_000, 3 * most} {
		p.send(call(size))
		if got, want := p.next(), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is larger than 200000 bytes"}}`; got != want {
			t.Errorf("%d bytes: got %s, want %s", size, got, want)
		}
	}
	p.quiet(legacy)
}

// In every case the client is notified of a change, exactly once.
func TestStdioChanges(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	p := a.stdio(t, session.StdioOptions{})
	a.put(t, "early") // nobody listens yet
	p.send(begin)
	p.next()
	const session1 = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	answer := func() string { // the session may still get a notification of the early change
		for {
			if line := p.next(); line != session1 {
				return line
			}
		}
	}
	for _, id := range []string{"5", `"five"`} {
		p.send(request(id, "subscriptions/listen", modern, `"notifications":{"toolsListChanged":true,"promptsListChanged":true}`))
		want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
		if got := answer(); !sameJSON(t, got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	p.send(request("6", "subscriptions/listen", modern, `"notifications":{"promptsListChanged":true}`))
	if got, want := answer(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":6}}}`; !sameJSON(t, got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	for i := range 20 {
		a.put(t, fmt.Sprintf("new%d", i))
	}
	told := func(want ...string) {
		t.Helper()
		left := map[string]bool{}
		for _, line := range want {
			left[line] = true
		}
		// The first of twenty changes may have its own notification.
		for deadline := time.Now().Add(time.Minute); len(left) > 0; {
			line := p.next()
			if !strings.Contains(line, "list_changed") || time.Now().After(deadline) {
				t.Fatalf("got %s", line)
			}
			delete(left, line)
		}
	}
	five := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`
	word := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"five"}}}`
	told(session1, five, word)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"five"}}`)
	a.put(t, "last")
	for deadline := time.Now().Add(time.Minute); ; { // until the last change has been reported
		line := p.next()
		if line == word && time.Now().After(deadline) {
			t.Fatal("a subscription that was cancelled is told of changes")
		}
		if line == five {
			break
		}
	}
}

func TestStdioManySubscriptions(t *testing.T) {
	t.Parallel()
	p := newApp(t).stdio(t, session.StdioOptions{})
	refused := 0
	for i := range 70 {
		p.send(request(fmt.Sprint(i), "subscriptions/listen", modern, `"notifications":{"toolsListChanged":true}`))
		if strings.Contains(p.next(), "Too many subscriptions") {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d were refused", refused)
	}
	p.quiet(modern)
}

// More requests than may run at the same time wait their turn; none is lost.
func TestStdioManyRequests(t *testing.T) {
	t.Parallel()
	p := newApp(t).stdio(t, session.StdioOptions{})
	const count = 5000
	go func() {
		for i := range count {
			_, _ = io.WriteString(p.in, request(fmt.Sprint(i), "tools/call", modern, `"name":"math-add"`, `"arguments":{"a":1}`)+"\n")
		}
	}()
	seen := map[string]bool{}
	for range count {
		id, _, _ := strings.Cut(strings.TrimPrefix(p.next(), `{"jsonrpc":"2.0","id":`), ",")
		seen[id] = true
	}
	if len(seen) != count {
		t.Errorf("%d answers", len(seen))
	}
}
