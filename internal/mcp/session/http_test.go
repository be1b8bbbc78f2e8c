package session_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A house is an app behind its door, on its own server.
type house struct {
	*app
	t   testing.TB
	mux *web.Mux
	url string

	sessions *mcp.Door
}

// http serves the app. The header X-User names the caller of a request; without it, the caller is everybody.
func (a *app) http(t testing.TB, o mcp.Options) *house {
	t.Helper()
	door := mcp.NewDoor(a.set, o)
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{users{}}, StreamWrite: time.Second})
	mux.Mount(mcp.Path, door)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		mux.EndStreams()
		server.CloseClientConnections()
		server.Close()
		for _, c := range []io.Closer{door, mux, door} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return &house{app: a, t: t, mux: mux, url: server.URL + mcp.Path, sessions: door}
}

// users is a dependency that trusts the header X-User.
type users struct{}

func (users) Check(r *http.Request) error {
	if r.Header.Get("X-User") == "nobody" {
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized}
	}
	return nil
}

func (users) Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	name := r.Header.Get("X-User")
	if name == "" {
		return current, nil
	}
	scope := "*"
	if strings.HasPrefix(name, "math") {
		scope = "math"
	}
	p, err := wasmtools.NewPrincipal(name, "test", scope)
	if err != nil {
		return nil, err
	}
	return p.WithCredential(r.Header.Get("X-Credential")), nil
}

// do sends a request. Headers are names and values in turn.
func (h *house) do(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			h.t.Fatal(err)
		}
		return nil
	}
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// post sends a message and returns the status and the body.
func (h *house) post(body string, headers ...string) (int, string) {
	h.t.Helper()
	return read(h.t, h.do(h.t.Context(), http.MethodPost, "", body, headers...))
}

func read(t testing.TB, r *http.Response) (int, string) {
	t.Helper()
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(body)
}

// begin begins a session and returns its id.
func (h *house) begin(headers ...string) string {
	h.t.Helper()
	r := h.do(h.t.Context(), http.MethodPost, "", begin, headers...)
	id := r.Header.Get("Mcp-Session-Id")
	if status, body := read(h.t, r); status != http.StatusOK || id == "" || !strings.Contains(body, `"protocolVersion":"2025-11-25"`) {
		h.t.Fatalf("initialize: status %d, session %q, %s", status, id, body)
	}
	return id
}

// listen opens the stream of a session. The channel gets the stream's lines, except empty ones, and is closed when the stream ends.
func (h *house) listen(ctx context.Context, id string, headers ...string) <-chan string {
	h.t.Helper()
	r := h.do(ctx, http.MethodGet, "", "", append([]string{"Mcp-Session-Id", id}, headers...)...)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/event-stream" {
		h.t.Fatalf("GET: status %d, type %q", r.StatusCode, r.Header.Get("Content-Type"))
	}
	lines := make(chan string, 100)
	scanner := bufio.NewScanner(r.Body)
	go func() {
		defer close(lines)
		for scanner.Scan() {
			if scanner.Text() != "" {
				lines <- scanner.Text()
			}
		}
	}()
	h.line(lines, ":")
	return lines
}

// line waits for a certain line of a stream, or for its end.
func (h *house) line(lines <-chan string, want string) {
	h.t.Helper()
	select {
	case got := <-lines:
		if got != want {
			h.t.Errorf("got line %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		h.t.Fatalf("no line %q", want)
	}
}

// TestSession does what every client of an older version does.
func TestSession(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	id := h.begin()
	s := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", legacy}
	if status, body := h.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, s...); status != http.StatusAccepted || body != "" {
		t.Errorf("initialized: %d %s", status, body)
	}
	for _, test := range []struct{ name, send, want string }{
		{"ping", request("1", "ping", legacy), `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"call", request(`"a"`, "tools/call", legacy, `"name":"math-add"`, `"arguments":{"a":1,"b":2}`), `{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}}}`},
		{"call without a token", request("1", "tools/call", legacy, `"name":"steps"`), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`},
		{"wrong arguments", request("1", "tools/call", legacy, `"name":"math-add"`, `"arguments":{"a":"x"}`), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"The arguments do not fit the tool's schema:\n- a: Input should be a valid integer (got \"x\")"}],"isError":true,
			"_meta":{"io.github.toolsrv/error":{"code":"invalid_arguments","detail":[{"type":"int_type","loc":["body","a"],"msg":"Input should be a valid integer","input":"x"}]}}}}`},
		{"unknown tool", request("1", "tools/call", legacy, `"name":"no"`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: \"no\""}}`},
		{"unknown method", request("1", "resources/list", legacy), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"subscriptions", request("1", "subscriptions/listen", legacy, `"notifications":{"toolsListChanged":true}`), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`},
		{"initialize again", begin, `{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"The session has begun already"}}`},
	} {
		if status, body := h.post(test.send, s...); status != http.StatusOK || !sameJSON(t, body, test.want) {
			t.Errorf("%s: got %d %s\nwant %s", test.name, status, body, test.want)
		}
	}
	if status, body := h.post(request("1", "tools/list", legacy), "Mcp-Session-Id", id); status != http.StatusOK || !strings.Contains(body, `"name":"math-add"`) || strings.Contains(body, "resultType") {
		t.Errorf("tools/list: %d %s", status, body)
	}
	if status, body := read(t, h.do(t.Context(), http.MethodDelete, "", "", s...)); status != http.StatusNoContent || body != "" {
		t.Errorf("DELETE: %d %s", status, body)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if status, body := read(t, h.do(t.Context(), method, "", request("1", "ping", legacy), s...)); status != http.StatusNotFound ||
			body != `{"jsonrpc":"2.0","error":{"code":-32001,"message":"There is no such session; begin a new one with initialize"}}` {
			t.Errorf("%s after DELETE: %d %s", method, status, body)
		}
	}
}

// A fault of a message, as opposed to an error of a request, has its own status, and does not end the session.
func TestSessionRefused(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	id := h.begin()
	ping := request("1", "ping", legacy)
	for _, test := range []struct {
		name    string
		body    string
		headers []string
		status  int
		want    string
	}{
		{"no JSON", `{`, nil, 400, "-32700"},
		{"a batch", "[" + ping + "]", nil, 400, "Batches are not supported"},
		{"no session", ping, []string{"Mcp-Session-Id", "", "Mcp-Protocol-Version", legacy}, 404, "-32001"},
		{"another session", ping, []string{"Mcp-Session-Id", id + "x"}, 404, "-32001"},
		{"a future version", ping, []string{"Mcp-Protocol-Version", "2999-01-01"}, 400, `-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18"],"requested":"2999-01-01"}`},
		{"a version that is too old", ping, []string{"Mcp-Protocol-Version", "2024-11-05"}, 400, "-32022"},
		{"_meta of the stateless version", request("1", "tools/list", modern), nil, 400, "-32020"},
		{"a content type other than JSON", ping, []string{"Content-Type", "text/plain"}, 415, "-32600"},
		{"compressed", ping, []string{"Content-Encoding", "gzip"}, 415, "-32600"},
		{"too large", request("1", "tools/call", legacy, `"name":"echo"`, `"arguments":{"a":"`+strings.Repeat("x", 1<<20+70<<10)+`"}`), nil, 413, "input_too_large"},
		{"too large for its tool", request("1", "tools/call", legacy, `"name":"echo"`, `"arguments":{"a":"`+strings.Repeat("x", 1<<20)+`"}`), nil, 200, `"isError":true`},
		{"nobody", ping, []string{"X-User", "nobody"}, 401, "token"},
	} {
		status, body := h.post(test.body, append([]string{"Mcp-Session-Id", id}, test.headers...)...)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: got %d %.300s\nwant %d … %s", test.name, status, body, test.status, test.want)
		}
	}
	for _, test := range []struct{ name, body, want string }{
		{"no session", ping, "begins with initialize"},
		{"a notification without a session", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "begins with initialize"},
		{"no version asked for", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, "-32602"},
		{"initialize as a notification", `{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, "-32600"},
	} {
		if status, body := h.post(test.body, "Mcp-Protocol-Version", legacy); status != 400 || !strings.Contains(body, test.want) {
			t.Errorf("%s: got %d %s", test.name, status, body)
		}
	}
	if status, body := read(t, h.do(t.Context(), http.MethodGet, "", "", "Mcp-Session-Id", id, "Accept", "application/json")); status != 406 {
		t.Errorf("a GET that takes no stream: %d %s", status, body)
	}
	if status, body := read(t, h.do(t.Context(), http.MethodGet, "", "")); status != 400 || !strings.Contains(body, "begins with initialize") {
		t.Errorf("a GET without a session: %d %s", status, body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		for _, session := range []string{"", id} {
			status, body := read(t, h.do(t.Context(), method, "", "", "Mcp-Session-Id", session, "Mcp-Protocol-Version", modern))
			if status != 400 || !strings.Contains(body, `-32600,"message":"Version 2026-07-28 has no sessions; send each message by POST"`) {
				t.Errorf("%s of a version without sessions, in the session %q: %d %s", method, session, status, body)
			}
		}
	}
	if status, _ := read(t, h.do(t.Context(), http.MethodPut, "", "", "Mcp-Session-Id", id)); status != 405 {
		t.Errorf("PUT: %d", status)
	}
	if status, body := h.post(ping, "Mcp-Session-Id", id); status != 200 || !strings.Contains(body, `"result":{}`) {
		t.Errorf("the session is gone: %d %s", status, body)
	}
}

// A session belongs to its principal and its path. For others, the answer is the same as for a missing session, byte for byte.
func TestSessionOfAnother(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	id := h.begin("X-User", "ann")
	_, none := h.post(request("1", "tools/list", legacy), "X-User", "bob", "Mcp-Session-Id", strings.Repeat("A", len(id)))
	for _, test := range []struct{ method, path, user string }{
		{http.MethodPost, "", "bob"}, {http.MethodGet, "", "bob"}, {http.MethodDelete, "", "bob"}, {http.MethodPost, "", ""}, {http.MethodPost, "/math", "ann"},
	} {
		status, body := read(t, h.do(t.Context(), test.method, test.path, request("1", "tools/list", legacy), "X-User", test.user, "Mcp-Session-Id", id))
		if status != 404 || body != none {
			t.Errorf("%+v: got %d %s, want %s", test, status, body, none)
		}
	}
	// A client can cancel only requests of its own session.
	var calls sync.WaitGroup
	calls.Go(func() {
		h.post(request("7", "tools/call", legacy, `"name":"wait"`), "X-User", "ann", "Mcp-Session-Id", id)
	})
	<-h.waiting
	other := h.begin("X-User", "bob")
	h.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, "X-User", "bob", "Mcp-Session-Id", other)
	if status, _ := h.post(request("1", "ping", legacy), "X-User", "ann", "Mcp-Session-Id", id); status != 200 {
		t.Errorf("ann's session is gone: %d", status)
	}
	select {
	case err := <-h.ended:
		t.Errorf("the call ended: %v", err)
	default:
	}
	h.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, "X-User", "ann", "Mcp-Session-Id", id)
	<-h.ended
	calls.Wait()

	// Scopes hold in a session, too.
	math := h.begin("X-User", "math1")
	if _, body := h.post(request("1", "tools/list", legacy), "X-User", "math1", "Mcp-Session-Id", math); !strings.Contains(body, "math-add") || strings.Contains(body, "echo") {
		t.Errorf("got %s", body)
	}
	if _, body := h.post(request("1", "tools/call", legacy, `"name":"echo"`), "X-User", "math1", "Mcp-Session-Id", math); !strings.Contains(body, `Unknown tool: \"echo\"`) {
		t.Errorf("got %s", body)
	}
}

func TestSessionProgress(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	id := h.begin()
	message := request("1", "tools/call", legacy, `"name":"steps"`, `"_meta":{"progressToken":"t"}`)
	r := h.do(t.Context(), http.MethodPost, "", message, "Mcp-Session-Id", id)
	if got := r.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("type %q", got)
	}
	_, body := read(t, r)
	want := `event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":4,"message":"a \"quarter\"\u000a"}}

event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.5}}

event: message
data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}

`
	if body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
	r = h.do(t.Context(), http.MethodPost, "", message, "Mcp-Session-Id", id, "Accept", "application/json")
	if _, body := read(t, r); r.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"id":1`) {
		t.Errorf("a client that takes no stream: %s", body)
	}
}

// A call is cancelled by a notification, or when its connection or its session ends. Nobody gets its result afterwards.
func TestSessionCancelled(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	for _, test := range []struct {
		name string
		end  func(id string, cancel context.CancelFunc)
		want string // the answer; "" if there is none
	}{
		{"notification", func(id string, _ context.CancelFunc) {
			h.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`, "Mcp-Session-Id", id)
		}, ""},
		{"closed connection", func(_ string, cancel context.CancelFunc) { cancel() }, "gone"},
		{"DELETE", func(id string, _ context.CancelFunc) {
			_, _ = read(t, h.do(t.Context(), http.MethodDelete, "", "", "Mcp-Session-Id", id))
		}, `{"jsonrpc":"2.0","id":"w","error":{"code":-32603,"message":"The session has ended","data":{"code":"cancelled"}}}`},
	} {
		id := h.begin()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan string, 1)
		go func() {
			r := h.do(ctx, http.MethodPost, "", request(`"w"`, "tools/call", legacy, `"name":"wait"`), "Mcp-Session-Id", id)
			if r == nil {
				answer <- "gone"
				return
			}
			_, body := read(t, r)
			answer <- body
		}()
		<-h.waiting
		begun := time.Now()
		test.end(id, cancel)
		if err := <-h.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the call ended with %v", test.name, err)
		}
		t.Logf("%s: the call ended after %v", test.name, time.Since(begun))
		if got := <-answer; got != test.want {
			t.Errorf("%s: the answer is %q, want %q", test.name, got, test.want)
		}
		cancel()
	}
}

// A Go function that panics ends its call, and not its session.
func TestSessionPanics(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	id := h.begin()
	status, body := h.post(request(`"p"`, "tools/call", legacy, `"name":"panic"`), "Mcp-Session-Id", id)
	if status != 500 || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"Internal error; give the operator the request id","data":{"code":"internal","request_id":"`) ||
		strings.Contains(body, "12345") {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := h.post(request("1", "ping", legacy), "Mcp-Session-Id", id); status != 200 {
		t.Errorf("the session is gone: %d %s", status, body)
	}
}

func TestSessionChanges(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{})
	id, bystander := h.begin("X-User", "ann"), h.begin("X-User", "math1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := h.listen(ctx, id, "X-User", "ann")
	quiet := h.listen(ctx, bystander, "X-User", "math1")
	changed := `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	h.put(t, "new")
	h.line(lines, "event: message")
	h.line(lines, changed)

	// A second stream replaces the first, and gets the notifications that the first has not sent.
	second := h.listen(ctx, id, "X-User", "ann")
	if _, open := <-lines; open {
		t.Error("the first stream is still open")
	}
	h.put(t, "newer")
	h.line(second, "event: message")
	h.line(second, changed)
	read(t, h.do(t.Context(), http.MethodDelete, "", "", "X-User", "ann", "Mcp-Session-Id", id))
	if _, open := <-second; open {
		t.Error("the stream outlives its session")
	}

	// A client is not notified of a tool that it does not see. It is notified of those that it sees, even if no stream was open at the time.
	h.put(t, "math/new")
	h.line(quiet, "event: message")
	h.line(quiet, changed)
	late := h.begin()
	h.put(t, "latest")
	testkit.Until(t, "the change is noted", func() bool { return h.door(late) })
	heard := h.listen(ctx, late)
	h.line(heard, "event: message")
	h.line(heard, changed)
}

// door reports whether the list of a session has a tool. The set announces a change after a moment.
func (h *house) door(id string) bool {
	_, body := h.post(request("1", "tools/list", legacy), "Mcp-Session-Id", id)
	time.Sleep(10 * time.Millisecond)
	return strings.Contains(body, `"latest"`)
}
