package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An audit notes the requests that it is told of.
type audit struct {
	name  string
	lines *[]string
}

func (o audit) Answered(a *web.Answer) {
	code := ""
	if a.Error() != nil {
		code = string(a.Error().Code)
	}
	*o.lines = append(*o.lines, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s%s %d %s by %q from %v %s %s %v %v", o.name, a.RequestID(), a.Door(), strings.TrimPrefix(a.Request().URL.Path, a.Door()),
		a.Status(), code, a.Principal(), a.Client(), a.Operation(), a.Tool(), a.Uses(), a.Took() >= 0)), " "))
}

// TestObservers checks that two observers are told of each request, even of one that no door has seen.
func TestObservers(t *testing.T) {
	t.Parallel()
	var lines []string
	mux := web.NewMux(web.Options{Access: access(t, web.AccessOptions{Hosts: []string{"example.com"}}), Dependencies: []web.Dependency{bearer(t, "secret")},
		Observers: []web.Observer{audit{"a", &lines}, audit{"b", &lines}}})
	mux.Mount("/toy.api", doorFunc(func(x *web.Exchange) {
		if strings.HasSuffix(x.Request().URL.Path, "/panic") {
			panic("odd")
		}
		x.SetOperation("play")
		x.SetTool("/toys/car")
		x.Call().Used(wasmtools.Use{Capability: "kv", Count: 2})
		x.Send(http.StatusOK, []byte("1"))
	}))
	for _, test := range []struct {
		name, method, target string
		headers              []string
		want                 string
	}{
		{"a call", "GET", "http://example.com/toy.api/car", nil, `/toy.api/car 200 by "token-1" from 192.0.2.1 play /toys/car [{kv 2 0 0 0 0 0s}] true`},
		{"no token", "GET", "http://example.com/toy.api/car", []string{"Authorization", ""}, `/toy.api/car 401 unauthorized by "" from 192.0.2.1 [] true`},
		{"another host", "GET", "http://evil.example/toy.api/car", nil, `/toy.api/car 421 host_not_allowed by "" from 192.0.2.1 [] true`},
		{"another site", "GET", "http://example.com/toy.api/car", []string{"Sec-Fetch-Site", "cross-site"}, `/toy.api/car 403 origin_not_allowed by "" from 192.0.2.1 [] true`},
		{"nothing there", "GET", "http://example.com/nothing", nil, `/nothing 404 not_found by "token-1" from 192.0.2.1 [] true`},
		{"a panic", "GET", "http://example.com/toy.api/panic", nil, `/toy.api/panic 500 internal by "token-1" from 192.0.2.1 [] true`},
		{"a probe", "GET", "http://example.com/healthz", nil, `/healthz 200 by "" from 192.0.2.1 [] true`},
	} {
		lines = nil
		r := httptest.NewRequest(test.method, test.target, nil)
		r.Header.Set("X-Request-Id", "id-1")
		r.Header.Set("Authorization", "Bearer secret")
		for i := 0; i < len(test.headers); i += 2 {
			r.Header.Set(test.headers[i], test.headers[i+1])
		}
		mux.ServeHTTP(httptest.NewRecorder(), r)
		if want := []string{"a id-1 " + test.want, "b id-1 " + test.want}; strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: the observers were told\n%s\nwant\n%s", test.name, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}

// counting counts the requests that it is told of.
type counting struct{ refused, all int }

func (o *counting) Answered(a *web.Answer) {
	if o.all++; a.Error() != nil && a.Principal() == nil {
		o.refused++
	}
}

// Not parallel: AllocsPerRun counts what the whole process allocates.
func TestObserversAllocateNothing(t *testing.T) {
	count := func(observers ...web.Observer) float64 {
		mux := web.NewMux(web.Options{Observers: observers})
		body := []byte("1")
		mux.Mount("/", doorFunc(func(x *web.Exchange) { x.Send(http.StatusOK, body) }))
		r := testkit.Repeat(httptest.NewRequest("GET", "/", nil))
		return testing.AllocsPerRun(100, func() { r.Serve(mux) })
	}
	var o counting
	if none, two := count(), count(&o, &o); two > none || o.all == 0 {
		t.Errorf("a request takes %v allocations unobserved, and %v where two observe %d of them", none, two, o.all)
	}
}
