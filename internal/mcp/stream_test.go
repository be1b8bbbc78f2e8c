package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// events is a response with a stream of events.
type events struct {
	*http.Response
	lines *bufio.Reader
}

// open sends a request to a server, and returns the stream that answers it.
func open(tb testing.TB, ctx context.Context, server *httptest.Server, r *http.Request) *events {
	tb.Helper()
	e, err := dial(ctx, server, r)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Body.Close() })
	if got := e.Header.Get("Content-Type"); e.StatusCode != http.StatusOK || got != "text/event-stream" || e.Header.Get("X-Accel-Buffering") != "no" || e.Header.Get("Cache-Control") != "no-store" {
		tb.Fatalf("got %d and %v", e.StatusCode, e.Header)
	}
	return e
}

func dial(ctx context.Context, server *httptest.Server, r *http.Request) (*events, error) {
	out, err := http.NewRequestWithContext(ctx, r.Method, server.URL+r.URL.Path, r.Body)
	if err != nil {
		return nil, err
	}
	out.Header = r.Header
	answer, err := server.Client().Do(out)
	if err != nil {
		return nil, err
	}
	return &events{answer, bufio.NewReader(answer.Body)}, nil
}

// next returns the message of the next event, or says how the stream ended.
func (e *events) next() string {
	head, err := e.lines.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	data, err1 := e.lines.ReadString('\n')
	end, err2 := e.lines.ReadString('\n')
	text, ok := strings.CutPrefix(data, "data: ")
	if err := errors.Join(err1, err2); err != nil || head != "event: message\n" || !ok || end != "\n" {
		return "not an event: " + head + data + end
	}
	return strings.TrimSuffix(text, "\n")
}

func serverOf(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	server := httptest.NewServer(h)
	tb.Cleanup(server.Close)
	return server
}

const (
	acknowledged = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`
	listChanged  = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`
	finished     = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`
)

func listening(filter string) *http.Request {
	return request(message("subscriptions/listen", `"notifications":`+filter))
}

// TestListen makes clients listen: each is notified of changes of its own list, and of the end.
// Proves: A caller reaches its own tools only
func TestListen(t *testing.T) {
	t.Parallel()
	table := tableOf(t, tool("math/add", echo), tool("text/upper", echo))
	h := appOf(t, table, options{})
	server := serverOf(t, h)
	all := open(t, t.Context(), server, listening(`{"toolsListChanged":true,"promptsListChanged":true}`))
	math := open(t, t.Context(), server, at("/mcp/math", listening(`{"toolsListChanged":true}`)))
	for _, s := range []*events{all, math} {
		if got := s.next(); got != acknowledged {
			t.Fatalf("got %s", got)
		}
	}
	if err := table.Disable("/text/upper", ""); err != nil {
		t.Fatal(err)
	}
	if got := all.next(); got != listChanged {
		t.Errorf("got %s", got)
	}
	if err := table.Disable("/math/add", ""); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*events{all, math} { // math is notified only of this change
		if got := s.next(); got != listChanged {
			t.Errorf("got %s", got)
		}
	}
	h.EndStreams()
	for _, s := range []*events{all, math} {
		if got := s.next(); got != finished {
			t.Errorf("got %s", got)
		}
		if rest, err := io.ReadAll(s.lines); len(rest) > 0 || err != nil {
			t.Errorf("after the end: got %q (%v)", rest, err)
		}
	}
}

// TestListenForOthers makes a client ask for an unknown kind of change: it gets no notification.
func TestListenForOthers(t *testing.T) {
	t.Parallel()
	table := tableOf(t, tool("add", echo))
	h := appOf(t, table, options{})
	s := open(t, t.Context(), serverOf(t, h), listening(`{"promptsListChanged":true,"toolsListChanged":false,"resourceSubscriptions":["file:///x"]}`))
	if got := s.next(); got != strings.Replace(acknowledged, `"toolsListChanged":true`, "", 1) {
		t.Fatalf("got %s", got)
	}
	if err := table.Disable("/add", ""); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // time for an event that must not come
	h.EndStreams()
	if got := s.next(); got != finished {
		t.Errorf("got %s", got)
	}
}

// TestManyStreams opens one stream more than a caller may have. It can be opened once another one has ended.
// Proves: A caller reaches its own tools only
func TestManyStreams(t *testing.T) {
	t.Parallel()
	h := appOf(t, tableOf(t, tool("add", echo)), options{Options: withStreams(32)})
	server := serverOf(t, h)
	ctx, leave := context.WithCancel(t.Context())
	for range 2 {
		if got := open(t, ctx, server, listening(`{"toolsListChanged":true}`)).next(); got != acknowledged {
			t.Fatalf("got %s", got)
		}
	}
	more := listening(`{}`)
	more.RemoteAddr = "127.0.0.1:1"
	if got, want := answer(h, more), `503 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The caller has too many streams open; end some of them","data":{"code":"overloaded"}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	stream := request("", "Mcp-Method", "", "Mcp-Session-Id", "x", "Mcp-Protocol-Version", "2025-11-25")
	stream.Method, stream.RemoteAddr = http.MethodGet, more.RemoteAddr
	if got := answer(h, stream); !strings.HasPrefix(got, "503 ") { // a session's stream takes a place, too
		t.Errorf("got %s", got)
	}
	leave()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s, err := dial(t.Context(), server, listening(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		s.Body.Close()
		if s.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %d", s.StatusCode)
		}
	}
}

// progressing returns a tool that reports progress twice, logs a line, and then ends with this outcome.
func progressing(result string, err error) wasmtools.CallerFunc {
	return func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
		call.Progress(0, 0, "")
		call.Log(0, "a line")
		call.Progress(1.5, 4e6, "two\nlines")
		return []byte(result), err
	}
}

func withToken(body string) string {
	return strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":"t\"1",`, 1)
}

// TestProgress calls tools that report progress: the reports are sent only to clients that gave a token and accept a stream.
func TestProgress(t *testing.T) {
	t.Parallel()
	h := appOf(t, tableOf(t, tool("works", progressing("{\n\"n\":1}", nil)), tool("fails", progressing("", errors.New("2 are left"))),
		tool("breaks", progressing("", &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New("hunter2")})), tool("quiet", echo)), options{})
	server := serverOf(t, h)
	const own = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"toolsrv","version":"0.1.0"}}`
	for name, want := range map[string]string{
		"works":  `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"{\n\"n\":1}"}],"structuredContent":{ "n":1},` + own + `}}`,
		"fails":  `"text":"2 are left"`,
		"breaks": `"error":{"code":-32603,"message":"Internal error; give the operator the request id","data":{"code":"internal","request_id":"test"}}}`,
	} {
		s := open(t, t.Context(), server, request(withToken(call(name, "{}"))))
		for _, want := range []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\"1","progress":0}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\"1","progress":1.5,"total":4000000,"message":"two\u000alines"}}`,
		} {
			if got := s.next(); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		if got := s.next(); got != want && (want[0] == '{' || !strings.Contains(got, want)) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if got := s.next(); got != "EOF" {
			t.Errorf("%s: after the response: got %s", name, got)
		}
	}
	open(t, t.Context(), server, request(withToken(call("works", "{}")), "Accept", "Application/JSON, Text/Event-Stream")) // media types are case-insensitive
	for name, r := range map[string]*http.Request{
		"without a token":     request(call("works", "{}")),
		"without a stream":    request(withToken(call("works", "{}")), "Accept", "application/json"),
		"without any reports": request(withToken(call("quiet", "{}"))),
	} {
		s, err := dial(t.Context(), server, r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(s.Body)
		s.Body.Close()
		if s.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(string(body), `{"jsonrpc":"2.0","id":1,"result":`) || err != nil {
			t.Errorf("%s: got %v %s (%v)", name, s.Header, body, err)
		}
	}
}

// TestCancelled makes the client go away: before the tool reported anything, and between its reports.
func TestCancelled(t *testing.T) {
	t.Parallel()
	for name, reports := range map[string]bool{"silent": false, "reporting": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, ended := make(chan struct{}), make(chan error, 1)
			h := appOf(t, tableOf(t, tool("wait", func(ctx context.Context, call *wasmtools.Call) ([]byte, error) {
				if reports {
					call.Progress(1, 2, "")
				}
				close(begun)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			})), options{})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			server := serverOf(t, h)
			go func() {
				if s, err := dial(ctx, server, request(withToken(call("wait", "{}")))); err == nil {
					_, _ = io.Copy(io.Discard, s.Body)
					s.Body.Close()
				}
			}()
			<-begun
			leave()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the call goes on")
			}
		})
	}
}

// A deaf client reads some events and then stops, until its time to read is over.
type deaf struct {
	transcript
	left int
}

func (d *deaf) Write(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return d.transcript.Write(p)
}

// TestDeafClient makes a client stop reading in the middle of a call's reports, and in the middle of a stream of changes: the call
// is cancelled, and the stream ends.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	table := tableOf(t, tool("wait", func(ctx context.Context, call *wasmtools.Call) ([]byte, error) {
		call.Progress(1, 3, "")
		if ctx.Err() != nil {
			t.Error("cancelled too early")
		}
		call.Progress(2, 3, "")
		call.Progress(3, 3, "")
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	h := appOf(t, table, options{})
	client := &deaf{transcript: transcript{header: http.Header{}}, left: 1}
	h.ServeHTTP(client, request(withToken(call("wait", "{}"))))
	if got := client.take(); strings.Count(got, "data: ") != 1 || !strings.Contains(got, `"progress":1,`) {
		t.Errorf("got %q", got)
	}

	client = &deaf{transcript: transcript{header: http.Header{}}, left: 1}
	ended := make(chan struct{})
	go func() {
		h.ServeHTTP(client, listening(`{"toolsListChanged":true}`))
		close(ended)
	}()
	for client.take() == "" { // the acknowledgement
		time.Sleep(time.Millisecond)
	}
	if err := table.Disable("/wait", ""); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the stream goes on")
	}
}
