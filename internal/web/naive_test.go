package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/door"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
	public "github.com/toolsrv/toolsrv/wasmtools/web"
)

// A naive door runs tools for GET /hello.api/{tool}, and takes no precautions.
type naive struct{ invoker *invoker.Invoker }

func (d naive) Serve(x *public.Exchange) {
	if !x.Allow(http.MethodGet) {
		return
	}
	call := x.Call()
	route, err := invoke.Find(x.Generation(), strings.TrimPrefix(x.Request().URL.Path, "/hello.api"), call.Principal)
	if err != nil {
		x.Fail(err)
		return
	}
	if call.Arguments, err = io.ReadAll(x.Request().Body); err != nil {
		x.Fail(err)
		return
	}
	result, err := d.invoker.Call(x.Context(), route, call)
	if err != nil {
		x.Fail(err)
		return
	}
	x.Send(http.StatusOK, result)
}

// endless is a body without an end. It counts the bytes that are read.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestNaiveDoor attacks a door that takes no precautions.
//
// Proves: Web pages are kept out
// Proves: A caller reaches its own tools only
func TestNaiveDoor(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	tool := func(path string, call wasmtools.CallerFunc) *wasmtools.Tool {
		namespace, name, _ := strings.Cut(path, "/")
		return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", Parameters: schema.MustCompile(`{"type":"object"}`), Caller: call}
	}
	table, err := wasmtools.NewRouteTable(
		tool("math/who", func(_ context.Context, c *wasmtools.Call) ([]byte, error) {
			ran.Add(1)
			return fmt.Appendf(nil, "%q", c.Principal), nil
		}),
		tool("math/panics", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("the password is hunter2") }),
		tool("hello/who", func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(`"a tool"`), nil }),
		tool("secret/who", func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(`"a secret"`), nil }))
	if err != nil {
		t.Fatal(err)
	}
	table.SetComing(func(path string) bool { return path == "/math/soon" })
	scoped := sayer(func(p *wasmtools.Principal) (*wasmtools.Principal, error) {
		return wasmtools.NewPrincipal("scoped "+p.String(), "test", "math", "hello")
	})
	access, err := web.NewAccess(web.AccessOptions{Hosts: []string{"tools.example.com"}, Origins: []string{"https://app.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	var log lockedLog
	mux := web.NewMux(web.Options{Access: access, Dependencies: []web.Dependency{bearer(t, "good"), scoped}, Table: table, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	defer mux.Close()
	invoker := invoker.New(invoker.Options{})
	rest := openapi.NewDoor(mux, table, openapi.DoorOptions{Invoker: invoker})
	defer rest.Close()
	mux.Mount("/", rest)
	for _, path := range []string{"/hello", "/hello/who", "/math", "/api"} {
		if !panics(func() { mux.Mount(path, door.Of(naive{invoker})) }) {
			t.Errorf("a door at %s hides tools", path)
		}
	}
	mux.Mount("/hello.api", door.Of(naive{invoker}))

	const token = "Authorization: Bearer good"
	large := new(endless)
	for _, test := range []struct {
		name, method, path string
		body               io.Reader
		headers            []string
		status             int
		want               string
	}{
		{"a call", "GET", "/math/who", nil, []string{token}, 200, `"scoped token-1"`},
		{"a call with arguments", "GET", "/math/who", strings.NewReader(`{"a":1}`), []string{token}, 200, `"scoped token-1"`},
		{"wrong arguments", "GET", "/math/who", strings.NewReader(`[]`), []string{token}, 422, "invalid_arguments"},
		{"no token", "GET", "/math/who", nil, nil, 401, "unauthorized"},
		{"a wrong token", "GET", "/math/who", nil, []string{"Authorization: Bearer bad"}, 401, "unauthorized"},
		{"out of scope", "GET", "/secret/who", nil, []string{token}, 404, "not_found"},
		{"a missing tool", "GET", "/math/nothing", nil, []string{token}, 404, "not_found"},
		{"a tool whose file is being read", "GET", "/math/soon", nil, []string{token}, 503, "not_ready"},
		{"a way out of the path", "GET", "/../math/who", nil, []string{token}, 404, "not_found"},
		{"an encoded slash", "GET", "/math%2Fwho", nil, []string{token}, 404, "not_found"},
		{"another host", "GET", "/math/who", nil, []string{token, "Host: evil.example"}, 421, "host_not_allowed"},
		{"a link on another site", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, 403, "origin_not_allowed"},
		{"a picture on another site", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403, "origin_not_allowed"},
		{"a page of the same site", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: same-site"}, 403, "origin_not_allowed"},
		{"a site that browsers don't name yet", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: next-site"}, 403, "origin_not_allowed"},
		{"two sites", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"}, 403, "origin_not_allowed"},
		{"a script on another site", "GET", "/math/who", nil, []string{token, "Origin: https://evil.example"}, 403, "origin_not_allowed"},
		{"the server's own host over another scheme", "GET", "/math/who", nil, []string{token, "Origin: http://tools.example.com", "Sec-Fetch-Site: cross-site"}, 403, "origin_not_allowed"},
		{"another site, and no token", "GET", "/math/who", nil, []string{"Sec-Fetch-Site: cross-site"}, 403, "origin_not_allowed"},
		{"a listed page", "GET", "/math/who", nil, []string{token, "Origin: https://app.example.com", "Sec-Fetch-Site: cross-site"}, 200, "token-1"},
		{"the own page", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: same-origin"}, 200, "token-1"},
		{"a bookmark", "GET", "/math/who", nil, []string{token, "Sec-Fetch-Site: none"}, 200, "token-1"},
		{"another site asks for methods", "OPTIONS", "/math/who", nil, []string{token, "Sec-Fetch-Site: cross-site"}, 403, "origin_not_allowed"},
		{"POST", "POST", "/math/who", nil, []string{token}, 405, "method_not_allowed"},
		{"HEAD", "HEAD", "/math/who", nil, []string{token}, 405, ""},
		{"a method of its own", "BREW", "/math/who", nil, []string{token}, 405, "method_not_allowed"},
		{"OPTIONS", "OPTIONS", "/math/who", nil, []string{token}, 204, ""},
		{"a body without an end", "GET", "/math/who", large, []string{token}, 413, "input_too_large"},
		{"a body that says that it is large", "GET", "/math/who", strings.NewReader(strings.Repeat(" ", 1<<20+1)), []string{token}, 413, "input_too_large"},
		{"a panic", "GET", "/math/panics", nil, []string{token}, 500, `"code":"internal"`},
	} {
		before := ran.Load()
		r := httptest.NewRequest(test.method, "/", test.body)
		r.Host = "tools.example.com"
		r.URL.Path = "/hello.api" + test.path
		if strings.Contains(test.path, "%") {
			r.URL.Path, r.URL.RawPath = "/hello.api/math/who", "/hello.api"+test.path
		}
		for _, header := range test.headers {
			name, value, _ := strings.Cut(header, ": ")
			if r.Header.Add(name, value); name == "Host" {
				r.Host = value
			}
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != test.status || !strings.Contains(body, test.want) || strings.Contains(body, "hunter2") {
			t.Errorf("%s: got %d %s, want %d %s", test.name, w.Code, body, test.status, test.want)
		}
		if did := ran.Load() > before; did != (test.status == 200) {
			t.Errorf("%s: the tool ran: %t", test.name, did)
		}
		if got := w.Header().Get("Retry-After"); (got != "") != (test.status == 503) {
			t.Errorf("%s: got Retry-After %q", test.name, got)
		}
	}
	if read := large.read.Load(); read > 2<<20 {
		t.Errorf("%d bytes of an endless body were read", read)
	}
	r := httptest.NewRequest(http.MethodPost, "http://tools.example.com/hello/who", bytes.NewReader([]byte(`{}`)))
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if mux.ServeHTTP(w, r); w.Body.String() != `"a tool"` {
		t.Errorf("the tool in the namespace hello: got %d %s", w.Code, w.Body)
	}
}

// TestNaiveDoorByPicture has pages that embed pictures from a server without tokens. Over plain HTTP to another machine, a browser says nothing about
// the page.
//
// Proves: Web pages are kept out
func TestNaiveDoorByPicture(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{Namespace: "math", Name: "who", Description: "A tool.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { ran.Add(1); return []byte("1"), nil })})
	if err != nil {
		t.Fatal(err)
	}
	mux := web.NewMux(web.Options{Table: table})
	defer mux.Close()
	mux.Mount("/hello.api", door.Of(naive{invoker.New(invoker.Options{})}))
	for _, test := range []struct {
		name, url string
		header    [2]string
		status    int
	}{
		{"from another machine", "http://10.1.2.3/hello.api/math/who", [2]string{"Accept", "image/*"}, 403},
		{"by a name", "http://tools.example.com/hello.api/math/who", [2]string{"Referer", "http://evil.example/"}, 403},
		{"by a name that looks local", "http://localhost.example.com/hello.api/math/who", [2]string{}, 403},
		{"to the same machine", "http://localhost:8000/hello.api/math/who", [2]string{}, 200},
		{"to the same machine, by a page", "http://localhost:8000/hello.api/math/who", [2]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"over TLS", "https://tools.example.com/hello.api/math/who", [2]string{}, 200},
	} {
		before := ran.Load()
		r := httptest.NewRequest(http.MethodGet, test.url, http.NoBody)
		if test.header[0] != "" {
			r.Header.Set(test.header[0], test.header[1])
		}
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != test.status || (ran.Load() > before) != (test.status == 200) {
			t.Errorf("%s: got %d %s; the tool ran: %t; want %d", test.name, w.Code, w.Body, ran.Load() > before, test.status)
		}
	}
}

// TestNaiveDoorBetween changes permissions while a naive door reads the body of a request.
//
// Proves: A caller reaches its own tools only
func TestNaiveDoorBetween(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	tools := []*wasmtools.Tool{{Namespace: "math", Name: "who", Description: "A tool.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { ran.Add(1); return []byte("1"), nil })}}
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	access, err := web.NewAccess(web.AccessOptions{Hosts: []string{"example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{bearer(t, "good")}, Table: table})
	defer mux.Close()
	mux.Mount("/hello.api", door.Of(naive{invoker.New(invoker.Options{})}))
	for _, test := range []struct {
		name   string
		change func() error
		status int
	}{
		{"nothing", func() error { return nil }, 200},
		{"the tool is disabled", func() error { return table.Disable("/math/who", "") }, 503},
		{"the tool is gone", func() error { return table.Replace(nil, nil) }, 404},
		{"the token is revoked", func() error {
			return table.Configure(tools, nil, wasmtools.Configuration{Value: admitting{web.NewAdmission(access, bearer(t, "another"))}})
		}, 401},
	} {
		if err := table.Configure(tools, nil, wasmtools.Configuration{}); err != nil {
			t.Fatal(err)
		}
		before := ran.Load()
		r := httptest.NewRequest(http.MethodGet, "/hello.api/math/who", io.MultiReader(strings.NewReader("{"), &changing{test.change, t}, strings.NewReader("}")))
		r.Header.Set("Authorization", "Bearer good")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != test.status || (ran.Load() > before) != (test.status == 200) {
			t.Errorf("%s: got %d %s; the tool ran: %t; want %d", test.name, w.Code, w.Body, ran.Load() > before, test.status)
		}
	}
}

// changing is a part of a body that makes a change before it is read.
type changing struct {
	change func() error
	t      *testing.T
}

func (c *changing) Read([]byte) (int, error) {
	if err := c.change(); err != nil {
		c.t.Error(err)
	}
	return 0, io.EOF
}

// admitting is a configuration for a Mux.
type admitting struct{ admission *web.Admission }

func (a admitting) Admission() *web.Admission { return a.admission }

// TestNaiveDoorHoldsResults has clients that don't read the large results of a naive door: the results count as used memory until they are read.
//
// Proves: Clients keep nobody out
func TestNaiveDoorHoldsResults(t *testing.T) {
	t.Parallel()
	result := append(append([]byte{'"'}, bytes.Repeat([]byte("a"), 1<<20)...), '"')
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{Namespace: "math", Name: "large", Description: "A tool.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return bytes.Clone(result), nil })})
	if err != nil {
		t.Fatal(err)
	}
	mux := web.NewMux(web.Options{Table: table})
	defer mux.Close()
	mux.Mount("/hello.api", door.Of(naive{invoker.New(invoker.Options{Memory: 4 << 20})}))
	call := func(w http.ResponseWriter) {
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://example.com/hello.api/math/large", strings.NewReader("{}")))
	}
	read := make(chan struct{})
	writing := make(chan struct{})
	var answered sync.WaitGroup
	for range 3 {
		answered.Go(func() { call(&unreading{httptest.NewRecorder(), writing, read}) })
		<-writing
	}
	w := httptest.NewRecorder()
	if call(w); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "overloaded") {
		t.Errorf("with three unread results, where four have room: got %d and %d bytes", w.Code, w.Body.Len())
	}
	close(read)
	answered.Wait()
	w = httptest.NewRecorder()
	if call(w); w.Code != http.StatusOK || w.Body.Len() != len(result) || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("once they are read: got %d and %d bytes", w.Code, w.Body.Len())
	}
}

// unreading is the response of a client that reads nothing until read is closed.
type unreading struct {
	*httptest.ResponseRecorder
	writing chan<- struct{}
	read    <-chan struct{}
}

func (u *unreading) Write(p []byte) (int, error) {
	u.writing <- struct{}{}
	<-u.read
	return len(p), nil
}

// TestPagesOfDoor sends requests from pages to doors that admit some of them.
//
// Proves: Web pages are kept out
func TestPagesOfDoor(t *testing.T) {
	t.Parallel()
	const read, all = web.PagesRead, web.PagesAll
	mux := web.NewMux(web.Options{})
	for path, pages := range map[string]web.Pages{"/listed.api": web.PagesListed, "/read.api": read, "/all.api": all} {
		mux.Mount(path, struct {
			doorFunc
			policied
		}{func(x *web.Exchange) { x.Send(http.StatusOK, []byte("1")) }, policied{web.Policy{Pages: pages}}})
	}
	const evil, cross = "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"
	for _, test := range []struct {
		method, path string
		headers      []string
		status       int
		allow        string
	}{
		{"GET", "/listed.api", []string{cross}, 403, ""},
		{"GET", "/nothing.api", []string{cross}, 403, ""},
		{"GET", "/read.api", []string{cross}, 200, ""},
		{"HEAD", "/read.api", []string{cross}, 200, ""},
		{"POST", "/read.api", []string{cross}, 403, ""},
		{"QUERY", "/read.api", []string{cross}, 403, ""},
		{"GET", "/read.api", []string{evil, cross}, 403, ""},
		{"GET", "/all.api", []string{evil, cross}, 200, "*"},
		{"POST", "/all.api", []string{evil}, 200, "*"},
		{"OPTIONS", "/all.api", []string{evil, cross, "Access-Control-Request-Method: POST"}, 204, "*"},
		{"OPTIONS", "/read.api", []string{evil, cross, "Access-Control-Request-Method: POST"}, 403, ""},
		{"GET", "/healthz", []string{cross}, 200, ""},
	} {
		r, w := httptest.NewRequest(test.method, test.path, nil), httptest.NewRecorder()
		for _, header := range test.headers {
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
		}
		mux.ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != test.status || got != test.allow {
			t.Errorf("%s %s %q: got %d %s for %q, want %d for %q", test.method, test.path, test.headers, w.Code, w.Body, got, test.status, test.allow)
		}
	}
}

// policied is a door's policy.
type policied struct{ policy web.Policy }

func (p policied) Policy() web.Policy { return p.policy }
