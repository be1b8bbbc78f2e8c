package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// sent is a body whose length the request does not announce.
func sent(r io.Reader, contentType string) *http.Request {
	request := httptest.NewRequest(http.MethodPost, "/echo", io.NopCloser(r))
	request.ContentLength = -1
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return request
}

func TestBodies(t *testing.T) {
	t.Parallel()
	ten := echo("ten")
	ten.MaxInput = 10
	app := appOf(t, tableOf(t, echo("echo"), ten), openapi.Options{})
	most := `{"a":"` + strings.Repeat("x", wasmtools.DefaultMaxInput-8) + `"}`
	const want = `{"a":1}`
	typed := func(values ...string) *http.Request {
		r := post("/echo", want)
		r.Header["Content-Type"] = values
		return r
	}
	noBody := post("/echo", "")
	noBody.Body = nil
	cut := post("/echo", want)
	cut.Body = http.MaxBytesReader(httptest.NewRecorder(), cut.Body, 3)
	cut.ContentLength = -1
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name    string
		request *http.Request
		status  int
	}{
		{"type in capitals", typed("Application/JSON"), 200},
		{"charset", typed("application/json; charset=UTF-8"), 200},
		{"charset in quotes", typed(`application/json;charset="utf-8"`), 200},
		{"another parameter", typed("application/json; profile=x"), 200},
		{"suffix", typed("application/vnd.api+json"), 200},
		{"suffix alone", typed("application/+json"), 415},
		{"suffix in the middle", typed("application/a+jsonb"), 415},
		{"not application", typed("text/json"), 415},
		{"begins with json", typed("application/jsonp"), 415},
		{"two types", typed("application/json", "application/json"), 415},
		{"two types in one", typed("application/json, text/plain"), 415},
		{"empty type", typed(""), 415},
		{"form", typed("application/x-www-form-urlencoded"), 415},
		{"charset twice", typed("application/json; charset=utf-8; charset=latin1"), 415},
		{"long type", typed("application/" + strings.Repeat("x", 1<<16)), 415},
		{"identity", post("/echo", want, "Content-Encoding", "Identity"), 200},
		{"two encodings", post("/echo", want, "Content-Encoding", "identity, gzip"), 415},
		{"no body at all", noBody, 200},
		{"empty form", post("/echo", "", "Content-Type", "application/x-www-form-urlencoded"), 200},
		{"empty from another site", post("/echo", "", "Content-Type", "", "Sec-Fetch-Site", "cross-site"), 403},
		{"empty from the server's own site", post("/echo", "", "Content-Type", "", "Sec-Fetch-Site", "same-origin"), 200},
		{"empty with the origin of another site", post("/echo", "", "Content-Type", "", "Origin", "https://evil.example"), 403},
		{"empty with the origin null", post("/echo", "", "Content-Type", "", "Origin", "null"), 403},
		{"empty with the server's own origin", post("/echo", "", "Content-Type", "", "Origin", "http://example.com"), 200},
		{"JSON with the origin of another site", post("/echo", want, "Origin", "https://evil.example"), 403},
		{"encoded slash", post("/%65cho%2f", want), 404},
		{"encoded letter", post("/%65cho", want), 200},
		{"too slow", sent(iotest.ErrReader(fmt.Errorf("read tcp: %w", os.ErrDeadlineExceeded)), "application/json").WithContext(gone), 408},
		{"empty JSON from another site", post("/echo", "", "Sec-Fetch-Site", "cross-site"), 403},
		{"unknown length", sent(strings.NewReader(want), "application/json"), 200},
		{"byte by byte", sent(iotest.OneByteReader(strings.NewReader(want)), "application/json"), 200},
		{"empty of unknown length", sent(strings.NewReader(""), ""), 200},
		{"unknown length without a type", sent(strings.NewReader(want), ""), 415},
		{"read fails", sent(iotest.ErrReader(errors.New("reset")), "application/json"), 422},
		{"read fails half-way", sent(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), "application/json"), 422},
		{"client gone", sent(iotest.ErrReader(errors.New("reset")), "application/json").WithContext(gone), 499},
		{"as large as allowed", post("/echo", most), 200},
		{"as large as allowed, of unknown length", sent(strings.NewReader(most), "application/json"), 200},
		{"one byte more than allowed", post("/echo", most+" "), 413},
		{"one byte more than allowed, of unknown length", sent(strings.NewReader(most+" "), "application/json"), 413},
		{"endless", sent(endless{}, "application/json"), 413},
		{"nested without end", post("/echo", strings.Repeat(`{"a":`, 100_000)), 422},
		{"a number without end", post("/echo", `{"a":`+strings.Repeat("9", 1_000_000)), 422},
		{"the tool's own limit", post("/ten", `{"a": 123}`), 200},
		{"over the tool's own limit", post("/ten", `{"a": 1234}`), 413},
		{"cut by a wrapping handler", cut, 413},
	}
	for _, tt := range tests {
		got := serve(app, tt.request)
		if text := bodyOf(t, got); got.StatusCode != tt.status || !json.Valid([]byte(text)) {
			t.Errorf("%s: got %d %.200s, want %d", tt.name, got.StatusCode, text, tt.status)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A client that sends "Expect: 100-continue" is refused without sending the body.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	small := echo("small")
	small.MaxInput = 10
	server := httptest.NewServer(appOf(t, tableOf(t, small), openapi.Options{}))
	defer server.Close()
	tests := []struct {
		name, length, first string
	}{
		{"accepted", "7", "HTTP/1.1 100 Continue"},
		{"refused", "11", "HTTP/1.1 413 Request Entity Too Large"},
	}
	for _, tt := range tests {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %s\r\nExpect: 100-continue\r\n\r\n", tt.length)
		got := make([]byte, len(tt.first))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != tt.first {
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, err, tt.first)
		}
	}
}

func TestDefaultsReachTheTool(t *testing.T) {
	t.Parallel()
	greet := echo("greet")
	greet.Parameters = schema.MustCompile(`{"type":"object","properties":{"name":{"type":"string","default":"you"}}}`)
	app := appOf(t, tableOf(t, greet), openapi.Options{})
	if got := bodyOf(t, serve(app, post("/greet", ""))); got != `{"name":"you"}` {
		t.Errorf("got %s", got)
	}
}

// It is not the service's fault if a client goes away or times out.
func TestContextErrors(t *testing.T) {
	t.Parallel()
	wait := tool("wait", func(ctx context.Context, _ *wasmtools.Call) ([]byte, error) {
		<-ctx.Done()
		return nil, fmt.Errorf("wait: %w", ctx.Err())
	})
	app := appOf(t, tableOf(t, wait, failing("own", context.DeadlineExceeded)), openapi.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	tests := []struct {
		name, path string
		ctx        context.Context
		want       int
	}{
		{"client gone", "/wait", gone, 499},
		{"out of the server's time", "/wait", late, 504},
		{"the tool's own deadline", "/own", t.Context(), 400},
	}
	for _, tt := range tests {
		if got := serve(app, post(tt.path, `{}`).WithContext(tt.ctx)); got.StatusCode != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got.StatusCode, tt.want)
		}
	}
}

// If foreign code panics, the client still gets an answer. Only http.ErrAbortHandler, which net/http expects, passes through.
// Proves: Nothing stops the server
func TestPanics(t *testing.T) {
	t.Parallel()
	abort := tool("abort", func(context.Context, *wasmtools.Call) ([]byte, error) { panic(http.ErrAbortHandler) })
	odd := tool("odd", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("odd") })
	app := appOf(t, tableOf(t, abort, odd), openapi.Options{})
	if got := serve(app, post("/odd", `{}`)); got.StatusCode != 500 {
		t.Errorf("a tool's panic: got %d", got.StatusCode)
	}
	if got := serve(appOf(t, tableOf(t), openapi.Options{Dependencies: []openapi.Dependency{check(func(*http.Request) error { panic("odd") })}}), get("/tools")); got.StatusCode != 500 {
		t.Errorf("a dependency's panic: got %d", got.StatusCode)
	}
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("ErrAbortHandler: got panic %v", v)
			}
		}()
		serve(app, post("/abort", `{}`))
	}()
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("a panic after the header: got panic %v", v)
			}
		}()
		app.ServeHTTP(brokenWriter{httptest.NewRecorder()}, get("/tools"))
	}()
}

type check func(*http.Request) error

func (f check) Check(r *http.Request) error { return f(r) }

// brokenWriter panics when it is written to.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { panic("broken") }

func TestDependencyErrors(t *testing.T) {
	t.Parallel()
	called := 0
	app := appOf(t, tableOf(t, echo("echo")), openapi.Options{Dependencies: []openapi.Dependency{
		check(func(r *http.Request) error {
			switch r.Header.Get("X-Try") {
			case "internal":
				return errors.New("hunter2")
			case "overloaded":
				return &wasmtools.Error{Code: wasmtools.CodeOverloaded}
			}
			return nil
		}),
		check(func(*http.Request) error { called++; return nil }),
	}})
	for try, want := range map[string]int{"internal": 500, "overloaded": 503} {
		if got := serve(app, post("/echo", `{}`, "X-Try", try)); got.StatusCode != want || strings.Contains(bodyOf(t, got), "hunter2") {
			t.Errorf("%s: got %d, want %d", try, got.StatusCode, want)
		}
	}
	if called != 0 {
		t.Errorf("the second dependency was asked after the first refused")
	}
	if got := serve(app, post("/echo", `{}`)); got.StatusCode != 200 || called != 1 {
		t.Errorf("got %d after %d calls, want 200 after 1", got.StatusCode, called)
	}
}

// Proves: Answers and logs show what is meant to be seen
func TestLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	trap := failing("trap", &wasmtools.Error{Code: wasmtools.CodeToolTrapped, Err: errors.New("unreachable")})
	bug := failing("bug", &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New(strings.Repeat("long", 4<<10))})
	app := appOf(t, tableOf(t, echo("echo"), trap, bug), openapi.Options{Logger: log, Dependencies: []openapi.Dependency{bearer(t, "sesame")}})
	tests := []struct {
		name, path, token, level, code, cause string
		status                                int
	}{
		{"result", "/echo", "sesame", "INFO", "", "", 200},
		{"no token", "/echo", "wrong-token", "INFO", "unauthorized", "", 401},
		{"trap", "/trap", "sesame", "WARN", "tool_trapped", "unreachable", 500},
		{"bug", "/bug", "sesame", "ERROR", "internal", "longlong", 500},
		{"probe", "/healthz", "", "DEBUG", "method_not_allowed", "", 405},
		{"long path", "/" + strings.Repeat("p", 1<<12), "sesame", "INFO", "not_found", "", 404},
	}
	for _, tt := range tests {
		text.Reset()
		serve(app, post(tt.path+"?key=sesame-query", `{"body": "sesame-body"}`, "Authorization", "Bearer "+tt.token))
		line := text.String()
		var got struct {
			Level, Msg, Method, Path, Code, Error string
			RequestID                             string `json:"request_id"`
			Status                                int
			Duration                              *int64
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v: %s", tt.name, err, line)
		}
		if got.Level != tt.level || got.Msg != "request" || got.Method != "POST" || got.Code != tt.code || got.Status != tt.status ||
			!strings.HasPrefix(got.Error, tt.cause) || got.Duration == nil || len(got.RequestID) != 32 || !strings.HasPrefix(tt.path, strings.TrimSuffix(got.Path, "...")) {
			t.Errorf("%s: got %s", tt.name, line)
		}
		if strings.Contains(line, "sesame") || strings.Contains(line, "wrong-token") {
			t.Errorf("%s: the log has a secret: %s", tt.name, line)
		}
		if len(line) > 5<<10 {
			t.Errorf("%s: the line has %d bytes", tt.name, len(line))
		}
	}
}

// No body makes the service fail: the answer is a result or an error, always in JSON.
// Proves: Nothing stops the server
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":1,"b":2}`, `{"a":1,"a":2,"b":3}`, `{"a":NaN}`, `{"a":1e999999,"b":1}`, `[]`, `null`, "{\"a\":\"\xff\"}",
		`{"a":1,"b":2} x`, strings.Repeat(`{"a":`, 20), "\ufeff{}", `{"a":{"a":{}}}`, "\x00",
		`{"a":999999999999999999999}`, `{"\ud800":1}`,
	} {
		f.Add([]byte(seed), "application/json")
	}
	f.Add([]byte("a=1"), "application/x-www-form-urlencoded")
	f.Add([]byte("{}"), `application/json; charset="`)
	app := openapi.NewApp(tableOf(f, add(), echo("echo")), openapi.Options{})
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		for _, path := range []string{"/echo", "/math/add"} {
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header["Content-Type"] = []string{contentType}
			got := serve(app, r)
			text := bodyOf(t, got)
			switch got.StatusCode {
			case 200, 400, 413, 415, 422:
			default:
				t.Errorf("POST %s %q: got %d %s", path, body, got.StatusCode, text)
			}
			if !json.Valid([]byte(text)) {
				t.Errorf("POST %s %q: got no JSON: %s", path, body, text)
			}
		}
	})
}
