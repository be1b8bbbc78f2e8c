package web_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
)

func access(t testing.TB, o web.AccessOptions) *web.Access {
	t.Helper()
	a, err := web.NewAccess(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestHosts sends requests for many hosts. The host is checked before the token, so that a foreign page learns nothing from the answer.
// Proves: Web pages are kept out
func TestHosts(t *testing.T) {
	t.Parallel()
	loopback := web.AccessOptions{Loopback: true}
	named := web.AccessOptions{Hosts: []string{"tools.example.com", "*.example.org"}}
	both := web.AccessOptions{Loopback: true, Hosts: named.Hosts}
	for _, test := range []struct {
		name    string
		options web.AccessOptions
		host    string
		allowed bool
	}{
		{"loopback by name", loopback, "localhost:8000", true},
		{"loopback by a name below localhost", loopback, "tools.localhost", true},
		{"loopback by address", loopback, "127.0.0.1:8000", true},
		{"loopback by another address", loopback, "127.0.0.2", true},
		{"loopback by IPv6", loopback, "[::1]:8000", true},
		{"loopback by long IPv6", loopback, "[0:0:0:0:0:0:0:1]", true},
		{"capitals and a dot at the end", loopback, "LOCALHOST.:1", true},
		{"DNS rebinding", loopback, "evil.example:8000", false},
		{"looks like localhost", loopback, "localhost.evil.example", false},
		{"looks like an address", loopback, "127.0.0.1.evil.example", false},
		{"ends like localhost", loopback, "notlocalhost", false},
		{"every address", loopback, "0.0.0.0:8000", false},
		{"user", loopback, "localhost@evil.example", false},
		{"user in front", loopback, "evil@localhost", false},
		{"zone", loopback, "[::1%25lo]", false},
		{"number", loopback, "2130706433", false},
		{"invalid port", loopback, "localhost:evil", false},
		{"two in one", loopback, "localhost, evil.example", false},
		{"none", loopback, "", false},
		{"a name on loopback", both, "tools.example.com", true},
		{"loopback beside names", both, "localhost", true},
		{"foreign beside names", both, "evil.example", false},
		{"name", named, "Tools.Example.Com.:443", true},
		{"below", named, "a.b.example.org", true},
		{"not below", named, "example.org", false},
		{"ends like the name", named, "eviltools.example.com", false},
		{"ends like the pattern", named, "notexample.org", false},
		{"goes on after the name", named, "tools.example.com.evil.org", false},
		{"goes on after the pattern", named, "a.example.org.evil.example", false},
		{"loopback, although only names are allowed", named, "localhost", false},
		{"address, although only names are allowed", named, "10.0.0.5", false},
		{"no host, although only names are allowed", named, "", false},
		{"every host", web.AccessOptions{}, "evil.example", true},
		{"every host, none", web.AccessOptions{}, "", true},
		{"every host, nonsense", web.AccessOptions{}, "a b", true},
		{"star on loopback", web.AccessOptions{Loopback: true, Hosts: []string{"*"}}, "evil.example", true},
	} {
		var log bytes.Buffer
		mux := web.NewMux(web.Options{Access: access(t, test.options), Dependencies: []web.Dependency{bearer(t, "secret")}, Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		mux.Mount("/toy.api", newToy())
		for _, header := range []string{"", "X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host"} {
			log.Reset()
			r := httptest.NewRequest("GET", "/toy.api", nil)
			r.Host = test.host
			if header == "Forwarded" {
				r.Header.Set(header, "host=localhost")
			} else if header != "" {
				r.Header.Set(header, "localhost, tools.example.com")
			}
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if want := map[bool]int{true: 401, false: 421}[test.allowed]; w.Code != want {
				t.Errorf("%s, header %q: got %d, want %d", test.name, header, w.Code, want)
			}
			if test.allowed {
				continue
			}
			got, _ := decoded(w.Body.String())["detail"].(string)
			if want := fmt.Sprintf("The host %q is not allowed here; the operator of the server can add it to server.hosts", test.host); got != want || !strings.Contains(w.Body.String(), `"code":"host_not_allowed"`) {
				t.Errorf("%s: got %s", test.name, w.Body)
			}
			if !strings.Contains(log.String(), `"code":"host_not_allowed"`) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("%s: logged %s", test.name, &log)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = test.host
			w := httptest.NewRecorder()
			if mux.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("%s: %s answers %d", test.name, path, w.Code)
			}
		}
	}
}

// TestPages sends requests as pages of many origins do.
// Proves: Web pages are kept out
func TestPages(t *testing.T) {
	t.Parallel()
	listed := web.AccessOptions{Origins: []string{"https://app.example.com", "http://localhost:3000", "chrome-extension://abc"}}
	every := web.AccessOptions{Origins: []string{"*"}}
	for _, test := range []struct {
		name    string
		options web.AccessOptions
		origins []string
		status  int
		allow   string // Access-Control-Allow-Origin
	}{
		{"no page", listed, nil, 200, ""},
		{"own page", listed, []string{"http://tools.example.com"}, 200, ""},
		{"own page behind TLS", listed, []string{"https://tools.example.com"}, 200, ""},
		{"own page without CORS", web.AccessOptions{}, []string{"https://tools.example.com"}, 200, ""},
		{"listed", listed, []string{"https://app.example.com"}, 200, "https://app.example.com"},
		{"listed, with its port", listed, []string{"https://app.example.com:443"}, 200, "https://app.example.com:443"},
		{"listed on this machine", listed, []string{"http://localhost:3000"}, 200, "http://localhost:3000"},
		{"listed extension", listed, []string{"chrome-extension://abc"}, 200, "chrome-extension://abc"},
		{"foreign without CORS", web.AccessOptions{}, []string{"https://app.example.com"}, 403, ""},
		{"foreign", listed, []string{"https://evil.example"}, 403, ""},
		{"null", listed, []string{"null"}, 403, ""},
		{"empty", listed, []string{""}, 403, ""},
		{"star", listed, []string{"*"}, 403, ""},
		{"other scheme", listed, []string{"http://app.example.com"}, 403, ""},
		{"other port", listed, []string{"http://localhost:3001"}, 403, ""},
		{"own host, other port", listed, []string{"http://tools.example.com:3000"}, 403, ""},
		{"own host, other scheme", listed, []string{"ftp://tools.example.com"}, 403, ""},
		{"goes on after the origin", listed, []string{"https://app.example.com.evil.org"}, 403, ""},
		{"ends like the origin", listed, []string{"https://evilapp.example.com"}, 403, ""},
		{"below the origin", listed, []string{"https://a.app.example.com"}, 403, ""},
		{"goes on after the own origin", listed, []string{"https://tools.example.com.evil.org"}, 403, ""},
		{"with a path", listed, []string{"https://app.example.com/"}, 403, ""},
		{"own with a path", listed, []string{"http://tools.example.com/a"}, 403, ""},
		{"with a user", listed, []string{"https://app.example.com@evil.example"}, 403, ""},
		{"two headers", listed, []string{"https://app.example.com", "https://app.example.com"}, 403, ""},
		{"two headers, the second foreign", listed, []string{"https://app.example.com", "https://evil.example"}, 403, ""},
		{"two headers, the first own", listed, []string{"http://tools.example.com", "https://evil.example"}, 403, ""},
		{"two in one", listed, []string{"https://app.example.com https://evil.example"}, 403, ""},
		{"a line break", listed, []string{"https://app.example.com\r\nX: y"}, 403, ""},
		{"1 MB", listed, []string{"https://" + strings.Repeat("a", 1<<20)}, 403, ""},
		{"every, foreign", every, []string{"https://evil.example"}, 200, "*"},
		{"every, null", every, []string{"null"}, 200, "*"},
		{"every, two headers", every, []string{"null", "https://evil.example"}, 200, "*"},
		{"every, no page", every, nil, 200, "*"},
		{"every, own page", every, []string{"http://tools.example.com"}, 200, "*"},
	} {
		mux := web.NewMux(web.Options{Access: access(t, test.options)})
		mux.Mount("/toy.api", newToy())
		r := httptest.NewRequest("GET", "/toy.api", nil)
		r.Host = "tools.example.com"
		r.Header["Origin"] = test.origins
		r.Header.Set("Cookie", "a=b")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != test.status || h.Get("Access-Control-Allow-Origin") != test.allow || h["Access-Control-Allow-Credentials"] != nil {
			t.Errorf("%s: got %d %.300s with %v", test.name, w.Code, w.Body, h)
		}
		if test.status == 403 && (w.Body.Len() > 300 || !strings.Contains(w.Body.String(), `"code":"origin_not_allowed"`) || !strings.Contains(w.Body.String(), "server.cors_origins")) {
			t.Errorf("%s: got %.500s", test.name, w.Body)
		}
		if exposed := h.Get("Access-Control-Expose-Headers"); (test.allow != "") != strings.Contains(exposed, "ETag") {
			t.Errorf("%s: exposes %q", test.name, exposed)
		}
		// What a cache keeps for one origin must not be given to another.
		if varies := strings.Join(h["Vary"], ","); strings.Contains(varies, "Origin") != (len(test.options.Origins) > 1) {
			t.Errorf("%s: varies by %q", test.name, varies)
		}
	}
}

// TestPreflight sends preflight requests. The answer needs no token and does not reveal what is served.
// Proves: Web pages are kept out
func TestPreflight(t *testing.T) {
	t.Parallel()
	o := web.AccessOptions{Origins: []string{"https://app.example.com"}}
	served := 0
	answer := func(o web.AccessOptions, path, page string, more ...string) *httptest.ResponseRecorder {
		mux := web.NewMux(web.Options{Access: access(t, o), Dependencies: []web.Dependency{bearer(t, "secret")}})
		mux.Mount("/toy.api", foreign(func(http.ResponseWriter, *http.Request) { served++ }))
		r := httptest.NewRequest("OPTIONS", path, nil)
		r.Header.Set("Origin", page)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header["X-Request-Id"] = []string{"1"}
		for i := 0; i < len(more); i += 2 {
			r.Header.Add(more[i], more[i+1])
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	first := answer(o, "/toy.api", "https://app.example.com")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":          "https://app.example.com",
		"Access-Control-Allow-Methods":         "DELETE, GET, HEAD, POST",
		"Access-Control-Allow-Headers":         "*, Authorization",
		"Access-Control-Max-Age":               "7200",
		"Access-Control-Allow-Credentials":     "",
		"Access-Control-Allow-Private-Network": "",
		"Vary":                                 "Origin",
	} {
		if got := first.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"nothing there":    answer(o, "/nowhere", "https://app.example.com"),
		"encoded slash":    answer(o, "/toy.api%2Fme", "https://app.example.com"),
		"a wrong token":    answer(o, "/toy.api", "https://app.example.com", "Authorization", "Bearer wrong"),
		"a right token":    answer(o, "/toy.api", "https://app.example.com", "Authorization", "Bearer secret"),
		"a thousand names": answer(o, "/toy.api", "https://app.example.com", "Access-Control-Request-Headers", strings.Repeat("x-"+strings.Repeat("y", 20)+",", 1000)),
		"a thousand lines": answer(o, "/toy.api", "https://app.example.com", strings.Split(strings.Repeat("Access-Control-Request-Headers;\r\nEvil: x;", 1000)+"A;b", ";")...),
		"an odd method":    answer(o, "/toy.api", "https://app.example.com", "Access-Control-Request-Method", "EVIL\r\nX: y"),
	} {
		if w.Code != first.Code || w.Code != 204 || w.Body.Len() != 0 || fmt.Sprint(w.Header()) != fmt.Sprint(first.Header()) {
			t.Errorf("%s: got %d %s with %v, want the same as for another path: %v", name, w.Code, w.Body, w.Header(), first.Header())
		}
	}
	private := answer(o, "/toy.api", "https://app.example.com", "Access-Control-Request-Private-Network", "true")
	if got := private.Header().Get("Access-Control-Allow-Private-Network"); private.Code != 204 || got != "true" {
		t.Errorf("private network: got %d with %q", private.Code, got)
	}
	star := answer(web.AccessOptions{Origins: []string{"*"}}, "/toy.api", "null", "Cookie", "a=b").Header()
	if star.Get("Access-Control-Allow-Origin") != "*" || star["Access-Control-Allow-Credentials"] != nil || star.Get("Access-Control-Allow-Methods") == "" {
		t.Errorf("every origin: got %v", star)
	}
	for _, page := range []string{"https://evil.example", "null", "https://app.example.com/"} {
		for _, path := range []string{"/toy.api", "/nowhere"} {
			if w := answer(o, path, page); w.Code != 403 || w.Header()["Access-Control-Allow-Methods"] != nil || w.Header()["Access-Control-Allow-Origin"] != nil {
				t.Errorf("%s to %s: got %d with %v", page, path, w.Code, w.Header())
			}
		}
	}
	if w := answer(o, "/toy.api", "http://example.com"); w.Code != 401 { // its own host: browsers send no preflight for such a page
		t.Errorf("own page: got %d", w.Code)
	}
	if w := answer(web.AccessOptions{Origins: o.Origins, Loopback: true}, "/toy.api", "https://app.example.com"); w.Code != 421 {
		t.Errorf("foreign host: got %d", w.Code)
	}
	if served != 0 {
		t.Errorf("the door got %d of the preflights", served)
	}
}

// TestErrorsOfPages checks that an allowed page can read why its request was refused, and that caches keep origins apart.
// Proves: Web pages are kept out
func TestErrorsOfPages(t *testing.T) {
	t.Parallel()
	mux := web.NewMux(web.Options{Access: access(t, web.AccessOptions{Origins: []string{"https://app.example.com"}}), Dependencies: []web.Dependency{bearer(t, "secret")}})
	mux.Mount("/toy.api", newToy())
	for _, test := range []struct {
		path, token string
		status      int
		vary        string
	}{
		{"/toy.api", "wrong", 401, "Origin"},
		{"/toy.api", "secret", 200, "Origin, Authorization"},
		{"/toy.api/nowhere", "secret", 404, "Origin"},
		{"/toy.api/broken", "secret", 503, "Origin"},
		{"/toy.api/panics", "secret", 500, "Origin"},
		{"/healthz", "", 200, "Origin"},
	} {
		for range 2 { // twice, since values that responses share must not grow
			r := httptest.NewRequest("GET", test.path, nil)
			r.Header.Set("Origin", "https://app.example.com")
			r.Header.Set("Authorization", "Bearer "+test.token)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			h := w.Header()
			if got := strings.Join(h["Vary"], ", "); w.Code != test.status || got != test.vary || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
				t.Errorf("%s: got %d with %v", test.path, w.Code, h)
			}
		}
	}
}

// TestAccess sends a request from a page of another origin to servers with different access options.
func TestAccess(t *testing.T) {
	t.Parallel()
	for i, test := range []struct {
		access *web.Access
		status int
	}{
		{nil, 403},
		{access(t, web.AccessOptions{Loopback: true}), 421},
		{access(t, web.AccessOptions{}), 403},
		{access(t, web.AccessOptions{Hosts: []string{"example.com"}, Origins: []string{"https://evil.example"}}), 200},
	} {
		mux := web.NewMux(web.Options{Access: test.access})
		mux.Mount("/toy.api", newToy())
		r := httptest.NewRequest("GET", "/toy.api", nil)
		r.Header.Set("Origin", "https://evil.example")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != test.status {
			t.Errorf("%d: got %d, want %d", i, w.Code, test.status)
		}
	}
	for _, o := range []web.AccessOptions{{Hosts: []string{"a:80"}}, {Origins: []string{"a"}}} {
		if _, err := web.NewAccess(o); err == nil {
			t.Errorf("%+v is no error", o)
		}
	}
}

// TestAccessTakesNoMemory checks that a request that comes from no page costs no allocation. It is not parallel, because AllocsPerRun counts what the
// whole process allocates.
func TestAccessTakesNoMemory(t *testing.T) {
	count := func(a *web.Access, host string) float64 {
		mux := web.NewMux(web.Options{Access: a})
		mux.Mount("/", foreign(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
		r := httptest.NewRequest("GET", "/toy.api", nil)
		r.Host = host
		w := httptest.NewRecorder()
		return testing.AllocsPerRun(100, func() {
			clear(w.Header())
			w.Body.Reset()
			mux.ServeHTTP(w, r)
		})
	}
	without := count(nil, "x")
	for _, host := range []string{"127.0.0.1:8000", "localhost:8000", "tools.example.com"} {
		a := access(t, web.AccessOptions{Loopback: true, Hosts: []string{"*.example.com"}, Origins: []string{"https://app.example.com"}})
		if got := count(a, host); !testkit.Race(t) && got > without {
			t.Errorf("%s: got %v allocations, without the check %v", host, got, without)
		}
	}
}

func BenchmarkAccess(b *testing.B) {
	for _, test := range []struct {
		name   string
		access *web.Access
	}{
		{"none", nil},
		{"loopback", access(b, web.AccessOptions{Loopback: true})},
		{"listed", access(b, web.AccessOptions{Hosts: []string{"127.0.0.1"}, Origins: []string{"https://app.example.com"}})},
	} {
		b.Run(test.name, func(b *testing.B) {
			mux := web.NewMux(web.Options{Access: test.access})
			mux.Mount("/", foreign(func(http.ResponseWriter, *http.Request) {}))
			r := httptest.NewRequest("POST", "/toy.api", nil)
			r.Host = "127.0.0.1:8000"
			w := httptest.NewRecorder()
			for b.Loop() {
				mux.ServeHTTP(w, r)
			}
		})
	}
}
