package web_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// clientOf returns the client in the one log line of a request.
func clientOf(t *testing.T, o web.AccessOptions, remote string, header http.Header) string {
	t.Helper()
	var log lockedLog
	mux := web.NewMux(web.Options{Access: access(t, o), Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	mux.Mount("/", doorFunc(func(x *web.Exchange) { x.Send(200, []byte("{}")) }))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.Header = remote, header
	mux.ServeHTTP(httptest.NewRecorder(), r)
	lines := log.lines()
	if len(lines) != 1 {
		t.Fatalf("got %v, want one line", lines)
	}
	client, _ := lines[0]["client"].(string)
	return client
}

// TestClientInLog checks that a request's log line names its client, even behind proxies, and whatever a client writes into its headers.
func TestClientInLog(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("127.0.0.1/32")}
	for _, test := range []struct {
		name, remote, header string // header is the one that is read
		sent                 http.Header
		want                 string
	}{
		{"no header", "192.0.2.7:80", "", nil, "192.0.2.7"},
		{"IPv6", "[2001:db8::7]:80", "", nil, "2001:db8::7"},
		{"link-local IPv6", "[fe80::1%eth0]:80", "", nil, "fe80::1%eth0"},
		{"IPv4 within IPv6", "[::ffff:192.0.2.7]:80", "", nil, "192.0.2.7"},
		{"no address", "@", "", nil, ""},
		{"a client that names another address", "192.0.2.7:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "192.0.2.7"},
		{"a client that claims to be a proxy", "192.0.2.7:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1, 10.0.0.1"}}, "192.0.2.7"},
		{"a proxy", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "198.51.100.1"},
		{"a proxy, within IPv6", "[::ffff:10.0.0.1]:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "198.51.100.1"},
		{"a proxy that says nothing", "10.0.0.1:80", "", nil, "10.0.0.1"},
		{"two proxies", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1, fd00::1"}}, "198.51.100.1"},
		{"a spoof before a proxy's word", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"203.0.113.66, 10.9.9.9, 198.51.100.1"}}, "198.51.100.1"},
		{"a spoof in a line of its own", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"203.0.113.66", "198.51.100.1"}}, "198.51.100.1"},
		{"a spoof and an empty line", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"203.0.113.66", "", "198.51.100.1", ""}}, "198.51.100.1"},
		{"a spoof in the other header", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1"}, "Forwarded": {"for=203.0.113.66"}}, "198.51.100.1"},
		{"the other header alone", "10.0.0.1:80", "", http.Header{"Forwarded": {"for=203.0.113.66"}}, "10.0.0.1"},
		{"X-Real-Ip", "10.0.0.1:80", "", http.Header{"X-Real-Ip": {"203.0.113.66"}}, "10.0.0.1"},
		{"all are proxies", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"10.0.0.3,10.0.0.2"}}, "10.0.0.3"},
		{"with a port", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"198.51.100.1:4711"}}, "198.51.100.1"},
		{"IPv6 with a port", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"[2001:db8::1]:4711"}}, "2001:db8::1"},
		{"IPv6 in brackets", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"[2001:db8::1]"}}, "2001:db8::1"},
		{"with a zone", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"fe80::1%\n"}}, "fe80::1"},
		{"a proxy that says nonsense", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"203.0.113.66, unknown"}}, "10.0.0.1"},
		{"nothing after a comma", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"203.0.113.66,"}}, "10.0.0.1"},
		{"nonsense of the client", "10.0.0.1:80", "", http.Header{"X-Forwarded-For": {"\x00\x1b[31m, 198.51.100.1"}}, "198.51.100.1"},

		{"Forwarded", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {"for=198.51.100.1;proto=https"}}, "198.51.100.1"},
		{"Forwarded in capitals", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {`By="x, y"; FOR="[2001:db8::1]:80"`}}, "2001:db8::1"},
		{"Forwarded, two proxies", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {"for=198.51.100.1", `for="[fd00::1]"`}}, "198.51.100.1"},
		{"Forwarded, a spoof", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {"for=203.0.113.66, for=198.51.100.1"}}, "198.51.100.1"},
		{"Forwarded, a spoof with a quote", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {`for="203.0.113.66, for=198.51.100.1`}}, "198.51.100.1"},
		{"Forwarded, a spoof in the other header", "127.0.0.1:80", "Forwarded", http.Header{"X-Forwarded-For": {"203.0.113.66"}, "Forwarded": {"for=198.51.100.1"}}, "198.51.100.1"},
		{"Forwarded, hidden", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {"for=203.0.113.66, for=_hidden"}}, "127.0.0.1"},
		{"Forwarded without for", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {"for=203.0.113.66, proto=https"}}, "127.0.0.1"},
		{"Forwarded, for twice", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {"for=203.0.113.66;for=198.51.100.1"}}, "127.0.0.1"},
		{"Forwarded, a quote alone", "127.0.0.1:80", "Forwarded", http.Header{"Forwarded": {`"`}}, "127.0.0.1"},
	} {
		if got := clientOf(t, web.AccessOptions{Proxies: trusted, ProxyHeader: test.header}, test.remote, test.sent); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if got, peer := clientOf(t, web.AccessOptions{}, test.remote, test.sent), clientOf(t, web.AccessOptions{}, test.remote, nil); got != peer {
			t.Errorf("%s, without proxies: got %q, want the peer %q", test.name, got, peer)
		}
	}
	if _, err := web.NewAccess(web.AccessOptions{ProxyHeader: "X-Real-IP"}); err == nil || !strings.Contains(err.Error(), "X-Forwarded-For or Forwarded") {
		t.Errorf("got %v, want an error that says which headers there are", err)
	}
}

// FuzzClient reads any header from a trusted proxy: the client is a valid address, or the proxy's.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.1", "a, b", `for="[::1]:80";by=x, for=_y`, `"`, ",", "[", "1.2.3.4:x", `for=";",`, "::%,::"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		for _, header := range []string{web.ForwardedFor, web.Forwarded} {
			o := web.AccessOptions{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::/1")}, ProxyHeader: header}
			got := clientOf(t, o, "10.0.0.1:80", http.Header{header: {one, two}})
			if a, err := netip.ParseAddr(got); err != nil || a.Zone() != "" || a.Is4In6() {
				t.Errorf("%q %q: got %q", one, two, got)
			}
		}
	})
}

// TestDigestInLog checks that the line of a call names the file that answered it, and that no other line does.
func TestDigestInLog(t *testing.T) {
	t.Parallel()
	var log lockedLog
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{Name: "echo", Description: "Echo.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Digest: strings.Repeat("0123456789abcdef", 4), Caller: wasmtools.CallerFunc(func(_ context.Context, c *wasmtools.Call) ([]byte, error) { return c.Arguments, nil })})
	if err != nil {
		t.Fatal(err)
	}
	mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), Table: table})
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		if x.Request().URL.Path == "/echo" {
			x.SetTool("/echo")
		}
		x.Send(200, json.RawMessage("{}"))
	}))
	for _, path := range []string{"/echo", "/else"} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil))
	}
	lines := log.lines()
	if len(lines) != 2 || lines[0]["digest"] != "0123456789ab" || lines[1]["digest"] != nil {
		t.Errorf("got %v, want the digest 0123456789ab in the first line only", lines)
	}
}
