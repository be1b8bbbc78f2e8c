package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// lockedLog keeps what several goroutines log.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// lines returns the logged lines, each as a map.
func (l *lockedLog) lines() (all []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		all = append(all, decoded(line))
	}
	return all
}

// TestSecondDoor mounts a door beside REST: it gets ids, authorisation, recovery, the log, error bodies, ETags and streams without any work of its
// own, and REST works as before.
func TestSecondDoor(t *testing.T) {
	t.Parallel()
	var log lockedLog
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})) // a level at which each request has its own line
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{
		Namespace: "toys", Name: "echo", Description: "Echo.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(_ context.Context, c *wasmtools.Call) ([]byte, error) { return c.Arguments, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{bearer(t, "secret")}, Logger: logger})
	rest := openapi.NewDoor(mux, table, openapi.DoorOptions{Title: "Toys"})
	defer rest.Close()
	door := newToy()
	mux.Mount("/", rest)
	mux.Mount("/toy.api", door)
	server := httptest.NewServer(mux)

	send := func(method, path, body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"))
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
		header, value            string
		level                    string // level of the log line
	}{
		{"REST", "POST", "/toys/echo", `{"a":1}`, nil, 200, `{"a":1}`, "Cache-Control", "no-store", "INFO"},
		{"a path that begins like the door's", "GET", "/toy.apibox", "", nil, 404, `{"detail":"Not Found","code":"not_found"}`, "", "", "INFO"},
		{"the document", "GET", "/toy.api", "", nil, 200, `["car","ball"]`, "Etag", `"two"`, "INFO"},
		{"the document, known", "GET", "/toy.api", "", []string{"If-None-Match", `"one", W/"two"`}, 304, "", "Vary", "Authorization", "INFO"},
		{"another method", "DELETE", "/toy.api", "", nil, 405, `{"detail":"Method Not Allowed","code":"method_not_allowed"}`, "Allow", "GET, HEAD, OPTIONS", "INFO"},
		{"OPTIONS", "OPTIONS", "/toy.api", "", nil, 204, "", "Allow", "GET, HEAD, OPTIONS", "INFO"},
		{"no token", "GET", "/toy.api", "", []string{"Authorization", ""}, 401, `{"detail":"Invalid or missing bearer token","code":"unauthorized"}`, "Www-Authenticate", "Bearer", "INFO"},
		{"no token, below", "GET", "/toy.api/nothing", "", []string{"Authorization", ""}, 401, `{"detail":"Invalid or missing bearer token","code":"unauthorized"}`, "", "", "DEBUG"},
		{"a path that does not exist", "GET", "/toy.api/nothing", "", nil, 404, `{"detail":"Not Found","code":"not_found"}`, "", "", "DEBUG"},
		{"an encoded slash", "GET", "/toy.api%2Fme", "", nil, 404, `{"detail":"Not Found","code":"not_found"}`, "", "", "DEBUG"},
		{"the id", "GET", "/toy.api/me", "", nil, 200, `"toy.api-me"`, "X-Request-Id", "toy.api-me", "INFO"},
		{"an error", "GET", "/toy.api/broken", "", nil, 503, `{"detail":"Too many calls are running; try again later","code":"overloaded"}`, "Retry-After", "1", "WARN"},
		{"a panic", "GET", "/toy.api/panics", "", nil, 500, `{"detail":"Internal error; give the operator the request id","code":"internal","request_id":"toy.api-panics"}`, "", "", "ERROR"},
		{"a probe", "GET", "/readyz", "", []string{"Authorization", ""}, 200, `{"status":"ready"}`, "", "", ""},
	} {
		before := len(log.lines())
		answer := send(test.method, test.path, test.body, test.headers...)
		body, err := readAll(answer)
		if answer.StatusCode != test.status || body != test.want || err != nil {
			t.Errorf("%s: got %d %s (%v), want %d %s", test.name, answer.StatusCode, body, err, test.status, test.want)
		}
		if got := answer.Header.Get(test.header); test.header != "" && got != test.value {
			t.Errorf("%s: got %s %q, want %q", test.name, test.header, got, test.value)
		}
		if answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: there is no nosniff", test.name)
		}
		if test.level == "" {
			continue
		}
		lines := waitFor(t, before+1, log.lines)
		line := lines[len(lines)-1]
		if line["level"] == "INFO" && test.level == "DEBUG" {
			line["level"] = "DEBUG" // a second has passed since the last request of this kind
		}
		if line["level"] != test.level || line["status"] != float64(test.status) || line["request_id"] != answer.Header.Get("X-Request-Id") {
			t.Errorf("%s: logged %v, want level %s and the status %d", test.name, line, test.level, test.status)
		}
	}

	events := send("GET", "/toy.api/events", "")
	reader := bufio.NewReader(events.Body)
	for _, tick := range []string{"one", "two"} {
		door.ticks <- tick
		line, err := reader.ReadString('\n')
		blank, _ := reader.ReadString('\n')
		if line != "data: "+tick+"\n" || blank != "\n" {
			t.Errorf("got the event %q (%v), want %s", line, err, tick)
		}
	}
	mux.EndStreams()
	if rest, err := readAll(events); rest != "" || err != nil {
		t.Errorf("after the end of the streams: got %q (%v), want a clean end", rest, err)
	}
	server.Close()

	document := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/openapi.json", nil)
	r.Header.Set("Authorization", "Bearer secret")
	mux.ServeHTTP(document, r)
	var d struct{ Paths map[string]any }
	if err := json.Unmarshal(document.Body.Bytes(), &d); err != nil || len(d.Paths) != 1 {
		t.Errorf("the document has the paths %v (%v), want the tool's", d.Paths, err)
	}
	_ = mux.Close()
	text := log.text.String()
	if strings.Contains(text, "secret") || !strings.Contains(text, "panic: the password is hunter2") {
		t.Errorf("the log shows the token, or not the panic: %s", text)
	}
}

func TestMount(t *testing.T) {
	t.Parallel()
	mux := web.NewMux(web.Options{})
	for _, path := range []string{"/", "/a.x", "/a.x/b", "/a.xb", "/admin/a", "/events"} {
		mux.Mount(path, doorFunc(func(x *web.Exchange) { x.Send(http.StatusOK, []byte(path)) }))
	}
	for path, want := range map[string]string{
		"/": "/", "/a.x": "/a.x", "/a.x/": "/a.x", "/a.x/c": "/a.x", "/a.x/b": "/a.x/b", "/a.x/b/c": "/a.x/b", "/a.x/bc": "/a.x", "/a.xb": "/a.xb",
		"/a.xbc": "/", "*": "/", "": "/", "//a.x": "/", "/admin": "/", "/admin/a/b": "/admin/a",
		"/events": "/events", "/events/": "/", "/events/list": "/", // a tool may be there
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Body.String() != want {
			t.Errorf("%q is answered by the door at %q, want %q", path, w.Body, want)
		}
	}
	for _, path := range []string{"", "a.x", "/a.x", "/a.x/", "/healthz", "/readyz", "//", "/a", "/a/b", "/hello", "/hello/world", "/adminb", "/events/list"} {
		if !panics(func() { mux.Mount(path, newToy()) }) {
			t.Errorf("Mount(%q) does not panic", path)
		}
	}
	if !panics(func() { mux.Mount("/c.x", nil) }) {
		t.Error("Mount of nil does not panic")
	}
	empty := httptest.NewRecorder()
	web.NewMux(web.Options{}).ServeHTTP(empty, httptest.NewRequest("GET", "/a", nil))
	if empty.Code != http.StatusNotFound {
		t.Errorf("without doors: got %d, want 404", empty.Code)
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
