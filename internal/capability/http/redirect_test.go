package http_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// A journal notes the requests that servers get.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// TestRedirects makes a server redirect with each status, and checks the second request.
// Proves: Requests go only where they were granted
func TestRedirects(t *testing.T) {
	t.Parallel()
	var got journal
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.note("%s %s %s auth=%s key=%s type=%s", r.Method, r.URL.Path, body, r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("Content-Type"))
		if status, _ := strconv.Atoi(r.URL.Query().Get("status")); status > 0 {
			w.Header().Set("Location", r.URL.Query().Get("to"))
			w.WriteHeader(status)
		}
	}
	here, there := serve(t, handler), serve(t, handler)
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{here, there}, Redirects: 1}})
	for _, test := range []struct {
		method string
		status int
		to     string // a path, or a URL on one of the servers here and there
		want   string // the second request; "" if there must be none
	}{
		{"GET", 301, "/x", "GET /x  auth=a key=k type=t"},
		{"GET", 302, here + "/x", "GET /x  auth=a key=k type=t"},
		{"GET", 303, "/x", "GET /x  auth=a key=k type=t"},
		{"GET", 307, "/x", "GET /x  auth=a key=k type=t"},
		{"GET", 308, "/x", "GET /x  auth=a key=k type=t"},
		{"GET", 301, "x", "GET /a/x  auth=a key=k type=t"},
		{"GET", 301, "?y", "GET /a/b  auth=a key=k type=t"},
		{"GET", 301, "/x#fragment", "GET /x  auth=a key=k type=t"},
		{"POST", 301, "/x", "GET /x  auth=a key=k type="},
		{"POST", 302, "/x", "GET /x  auth=a key=k type="},
		{"POST", 303, "/x", "GET /x  auth=a key=k type="},
		{"POST", 307, "/x", "POST /x body auth=a key=k type=t"},
		{"POST", 308, "/x", "POST /x body auth=a key=k type=t"},
		{"PUT", 302, "/x", "PUT /x body auth=a key=k type=t"},
		{"DELETE", 303, "/x", "GET /x  auth=a key=k type="},
		{"HEAD", 303, "/x", "HEAD /x  auth=a key=k type=t"},
		{"GET", 302, there + "/x", "GET /x  auth= key= type=t"},
		{"POST", 307, there + "/x", "POST /x body auth= key= type=t"},
		{"POST", 303, there + "/x", "GET /x  auth= key= type="},
		{"GET", 300, "/x", ""}, {"GET", 304, "/x", ""}, {"GET", 305, "/x", ""}, {"GET", 306, "/x", ""}, {"GET", 399, "/x", ""}, {"GET", 201, "/x", ""}, {"GET", 302, "", ""},
	} {
		before := len(got.lines)
		c := begin(t, g)
		body := ""
		if test.method != "GET" && test.method != "HEAD" {
			body = "body"
		}
		in := c.send(t, outgoing{Method: test.method, URL: fmt.Sprintf("%s/a/b?status=%d&to=%s", here, test.status, url.QueryEscape(test.to)), body: body,
			Headers: [][]string{{"Authorization", "a"}, {"X-Key", "k"}, {"Content-Type", "t"}}})
		c.ABI.End()
		lines := got.lines[before+1:]
		if test.want == "" && (len(lines) > 0 || in.Status != test.status) || test.want != "" && (!slices.Equal(lines, []string{test.want}) || in.Status != 200) {
			t.Errorf("%s with %d to %q: the server got %q, the guest %+v; want %q", test.method, test.status, test.to, lines, in, test.want)
		}
		if test.want != "" && len(c.Uses) != 2 {
			t.Errorf("got the uses %+v", c.Uses)
		}
	}
}

// TestRedirectsElsewhere makes a server redirect, with each status, to an origin that is not granted. Nothing is dialled.
// Proves: Requests go only where they were granted
func TestRedirectsElsewhere(t *testing.T) {
	t.Parallel()
	from := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Location"] = r.URL.Query()["to"]
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.WriteHeader(status)
	})
	host := strings.TrimPrefix(from, "http://")
	for _, to := range []string{
		"https://evil.test/", "http://evil.test/", "//evil.test/", "///evil.test/", "/\\evil.test/", "\\\\evil.test/", "http:evil.test", "http:/evil.test/", "http:///evil.test/", "https:evil.test", "HTTP://EVIL.TEST/",
		"http://" + host + "@evil.test/", "http://evil.test@" + host + "/", "http://" + host + ".evil.test/", "http://evil.test#@" + host + "/", "http://evil.test\\@" + host + "/",
		"http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/", "http://[::ffff:169.254.169.254]/", "http://[::1]:80/", "http://127.0.0.1:1/", "http://localhost/", "http://0/",
		"ftp://" + host + "/", "file:///etc/passwd", "gopher://" + host + "/", "javascript:alert(1)", "data:text/plain,x", "unix:/run/x", "https://" + host + "/",
		"/v2/../admin", "../../../wasmtools/capability", "../admin", "/%2e%2e/admin", "/v1/", "/", "?x=%zz", "/v2/..;/x", "/v2/x y", "/v2/é", "/v2/%2e%2e%2fadmin", "/v2/x%2f..%2f..%2fadmin", "/v2x",
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			n := &network{}
			g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{from + "/v2/"}, Redirects: 3}, network: n})
			in := get(t, g, fmt.Sprintf("%s/v2/x?status=%d&to=%s", from, status, url.QueryEscape(to)))
			if in.Code != "redirect" || len(n.dialed) > 0 || len(n.asked) > 0 {
				t.Errorf("%d to %q: got %+v, look-ups %v, dials %v", status, to, in, n.asked, n.dialed)
			}
		}
	}
	n := &network{}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{from}, Redirects: 3}, network: n})
	if in := get(t, g, from+"/?status=302&to=/a&to=/b"); in.Code != "redirect" {
		t.Errorf("two places: got %+v", in)
	}
	granted := grant(t, spec{Rule: httpcap.Rule{Granted: []string{from, "http://10.0.0.1"}, Redirects: 3}, network: n})
	if in := get(t, granted, from+"/?status=302&to=http://10.0.0.1/"); in.Code != "not_granted" || len(n.dialed) > 0 {
		t.Errorf("to a private address: got %+v, dials %v", in, n.dialed)
	}
}

// TestRedirectBounds makes a server redirect without end.
// Proves: Requests go only where they were granted
func TestRedirectBounds(t *testing.T) {
	t.Parallel()
	requests := 0
	from := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	for _, test := range []struct {
		spec     spec
		out      outgoing
		code     string
		requests int
	}{
		{spec{Rule: httpcap.Rule{Redirects: 0}}, outgoing{}, "", 1},
		{spec{Rule: httpcap.Rule{Redirects: 3}}, outgoing{Redirect: "manual"}, "", 1},
		{spec{Rule: httpcap.Rule{Redirects: 3}}, outgoing{Redirect: "follow"}, "redirect", 4},
		{spec{Rule: httpcap.Rule{Redirects: 10}}, outgoing{}, "redirect", 11},
		{spec{Rule: httpcap.Rule{Redirects: 10, Requests: 5}}, outgoing{}, "limit", 5},
	} {
		requests = 0
		test.spec.Granted, test.out.URL = []string{from}, from+"/"
		c := begin(t, grant(t, test.spec))
		in := c.send(t, test.out)
		if in.Code != test.code || in.Code == "" && in.Status != 302 || requests != test.requests {
			t.Errorf("%+v: got %+v after %d requests, want %q after %d", test.spec, in, requests, test.code, test.requests)
		}
		c.ABI.End()
	}
}
