package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
)

// TestHostOfListener checks which hosts are the server's, depending on the address of its listener.
// Proves: Web pages are kept out
func TestHostOfListener(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, address, public string
		hosts                 []string
		allowed, refused      string // hosts
	}{
		{"loopback", "127.0.0.1:0", "", nil, "localhost a.localhost:80 127.0.0.1:PORT [::1]:PORT LOCALHOST.", "evil.example evil.example:PORT 0.0.0.0:PORT localhost.evil.example 10.0.0.5"},
		{"loopback with names", "127.0.0.1:0", "", []string{"*.example.com"}, "localhost tools.example.com a.b.example.com:443", "example.com notexample.com tools.example.com.evil.org"},
		{"loopback behind a proxy", "127.0.0.1:0", "https://tools.example.com:8443/a", nil, "localhost tools.example.com tools.example.com:8443", "example.com evil.example"},
		{"loopback with a prefix", "127.0.0.1:0", "/tools", nil, "localhost", "tools evil.example"},
		{"every address", "0.0.0.0:0", "", nil, "localhost evil.example 10.0.0.5:PORT", ""},
		{"every address behind a proxy", "0.0.0.0:0", "https://tools.example.com", nil, "localhost evil.example tools.example.com", ""},
		{"every address with names", "0.0.0.0:0", "https://tools.example.com", []string{"10.0.0.5"}, "10.0.0.5:PORT tools.example.com", "localhost 127.0.0.1:PORT evil.example"},
		{"loopback with every name", "127.0.0.1:0", "", []string{"*"}, "localhost evil.example", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.Server.Addresses, c.Server.PublicURL, c.Server.Hosts = []string{test.address}, test.public, test.hosts
			r := start(t, c)
			_, port, _ := net.SplitHostPort(r.Addr().String())
			url := "http://127.0.0.1:" + port
			for status, hosts := range map[int]string{200: test.allowed, 421: test.refused} {
				for _, host := range strings.Fields(strings.ReplaceAll(hosts, "PORT", port)) {
					for path, want := range map[string]int{"/tools": status, "/healthz": 200, "/readyz": 200} {
						if got, body := get(t, url+path, "Host", host); got != want {
							t.Errorf("%s of %s: got %d %s, want %d", path, host, got, body, want)
						}
					}
				}
			}
		})
	}
}

// get sends a GET with headers and returns status and body.
func get(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	q.Host = q.Header.Get("Host")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(body)
}

// TestHostileHosts sends hosts that no client library would send. Only the host that net/http reads counts.
// Proves: Web pages are kept out
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Server.Hosts = nil
	r := start(t, c)
	for _, test := range []struct {
		name, sends string
		status      int
	}{
		{"none", "GET /tools HTTP/1.1\r\n\r\n", 400},
		{"empty", "GET /tools HTTP/1.1\r\nHost:\r\n\r\n", 421},
		{"none in HTTP/1.0", "GET /tools HTTP/1.0\r\n\r\n", 421},
		{"no host in HTTP/1.0, a probe", "GET /healthz HTTP/1.0\r\n\r\n", 200},
		{"two", "GET /tools HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400},
		{"two, the same", "GET /tools HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
		{"two in one", "GET /tools HTTP/1.1\r\nHost: localhost, evil.example\r\n\r\n", 400},
		{"absolute form, foreign target", "GET http://evil.example/tools HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
		{"absolute form, foreign host", "GET http://localhost/tools HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200},
		{"absolute form with a user", "GET http://localhost@evil.example/tools HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
		{"absolute form, foreign probe", "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"slashes before the target", "GET //localhost/tools HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"user", "GET /tools HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n", 400},
		{"zone", "GET /tools HTTP/1.1\r\nHost: [::1%25lo]\r\n\r\n", 421},
		{"not ASCII", "GET /tools HTTP/1.1\r\nHost: l\u00f6calhost\r\n\r\n", 400},
		{"a blank before the colon", "GET /tools HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
		{"forwarded", "GET /tools HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n\r\n", 421},
		{"forwarded from evil", "GET /tools HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example\r\n\r\n", 200},
		{"all paths", "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"a tunnel", "CONNECT localhost:80 HTTP/1.1\r\nHost: evil.example\r\n\r\n", 404},
		{"a tunnel to another host", "CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := r.dial()
			go func() { _, _ = io.WriteString(conn, test.sends) }()
			a, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			if a.StatusCode != test.status {
				t.Errorf("got %s, want %d", a.Status, test.status)
			}
		})
	}
}

// A page sends requests as a browser would for it, by the rules of the Fetch standard: with a preflight request where that is required, and the page
// sees no more than the answer allows.
type page struct {
	origin string
	client *http.Client
}

var errBlocked = errors.New("the browser doesn't let the page")

func (p page) fetch(method, url string, header http.Header, body string) (*http.Response, string, error) {
	var unusual []string
	for name, values := range header {
		if !slices.Contains([]string{"Accept", "Content-Type"}, name) || name == "Content-Type" && values[0] != "text/plain" {
			unusual = append(unusual, strings.ToLower(name))
		}
	}
	simple := method == http.MethodGet || method == http.MethodPost
	if len(unusual) > 0 || !simple {
		q, err := http.NewRequest(http.MethodOptions, url, nil)
		if err != nil {
			return nil, "", err
		}
		q.Header.Set("Origin", p.origin)
		q.Header.Set("Access-Control-Request-Method", method)
		q.Header.Set("Access-Control-Request-Headers", strings.Join(unusual, ","))
		a, err := p.client.Do(q)
		if err != nil {
			return nil, "", err
		}
		a.Body.Close()
		allows := func(header, name string) bool {
			return slices.ContainsFunc(strings.Split(a.Header.Get(header), ", "), func(s string) bool {
				return strings.EqualFold(s, name) || s == "*" && name != "authorization"
			})
		}
		if a.StatusCode/100 != 2 || !p.allowed(a) || !simple && !allows("Access-Control-Allow-Methods", method) {
			return nil, "", fmt.Errorf("%w ask: %s", errBlocked, a.Status)
		}
		for _, name := range unusual {
			if !allows("Access-Control-Allow-Headers", name) {
				return nil, "", fmt.Errorf("%w send %s", errBlocked, name)
			}
		}
	}
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	q.Header = header.Clone()
	q.Header.Set("Origin", p.origin)
	a, err := p.client.Do(q)
	if err != nil {
		return nil, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && !p.allowed(a) {
		err = fmt.Errorf("%w read: %s", errBlocked, a.Status)
	}
	exposed := strings.Split(strings.ToLower(a.Header.Get("Access-Control-Expose-Headers")), ", ")
	for name := range a.Header {
		if !slices.Contains(exposed, strings.ToLower(name)) {
			delete(a.Header, name)
		}
	}
	return a, string(text), err
}

func (p page) allowed(a *http.Response) bool {
	allow := a.Header["Access-Control-Allow-Origin"]
	return len(allow) == 1 && (allow[0] == "*" || allow[0] == p.origin)
}

// TestPageInBrowser lets pages call a tool and read lists: pages of a listed origin can, others can't, and a reload changes that.
// Proves: Web pages are kept out
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Auth.Tokens = []string{"sesame"}
	c.Server.CORSOrigins = []string{"https://app.example.com"}
	r := start(t, c)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	app, evil := page{"https://app.example.com", client}, page{"https://evil.example", client}
	call := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sesame"}}

	if a, body, err := app.fetch(http.MethodPost, r.url+"/shop/echo", call, `{"a":1}`); err != nil || a.StatusCode != 200 || a.Header.Get("X-Request-Id") == "" {
		t.Errorf("a call: got %v %s (%v)", a, body, err)
	}
	a, body, err := app.fetch(http.MethodGet, r.url+"/tools", http.Header{"Authorization": {"Bearer sesame"}}, "")
	if err != nil || a.StatusCode != 200 || a.Header.Get("ETag") == "" {
		t.Fatalf("the list: got %v %s (%v)", a, body, err)
	}
	if a, _, err := app.fetch(http.MethodGet, r.url+"/tools", http.Header{"Authorization": {"Bearer sesame"}, "If-None-Match": {a.Header.Get("ETag")}}, ""); err != nil || a.StatusCode != 304 {
		t.Errorf("reading the list again: got %v (%v)", a, err)
	}
	if a, body, err := app.fetch(http.MethodPost, r.url+"/shop/echo", http.Header{"Content-Type": {"application/json"}}, `{}`); err != nil || a.StatusCode != 401 {
		t.Errorf("without a token: got %v %s (%v)", a, body, err)
	}
	refused := func(p page, header http.Header, status string) {
		t.Helper()
		if _, body, err := p.fetch(http.MethodPost, r.url+"/shop/echo", header, `{}`); !errors.Is(err, errBlocked) || !strings.Contains(err.Error(), status) {
			t.Errorf("%s with %v: got %s (%v)", p.origin, header, body, err)
		}
	}
	plain := http.Header{"Content-Type": {"text/plain"}} // what a page may send without a preflight request
	refused(evil, call, "403")
	refused(evil, plain, "403")
	refused(page{"null", client}, plain, "403")

	if err := r.Reload(changed(c, func(c *config.Config) { c.Server.CORSOrigins = []string{"*"} })); err != nil {
		t.Fatal(err)
	}
	if a, body, err := evil.fetch(http.MethodPost, r.url+"/shop/echo", call, `{"a":1}`); err != nil || a.StatusCode != 200 {
		t.Errorf("every origin: got %v %s (%v)", a, body, err)
	}
	if strings.Contains(r.log.String(), "any web page") {
		t.Error("the log warns about pages although they need a token")
	}
	if err := r.Reload(changed(c, func(c *config.Config) { c.Server.CORSOrigins, c.Auth.Tokens = []string{"*"}, nil })); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.log.String(), "any web page") {
		t.Error("the log doesn't warn about pages that need no token")
	}
	if err := r.Reload(changed(c, func(c *config.Config) { c.Server.CORSOrigins = nil })); err != nil {
		t.Fatal(err)
	}
	refused(app, call, "403")
}

// TestRebinding lets a page's own domain name resolve to the address of the server, so that the page looks like the server's own.
// Proves: Web pages are kept out
func TestRebinding(t *testing.T) {
	t.Parallel()
	c := settings(t)
	r := start(t, c)
	_, port, _ := net.SplitHostPort(r.Addr().String())
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, r.Addr().String())
	}}}
	defer client.CloseIdleConnections()
	rebound := "http://evil.example:" + port
	call := func() int {
		t.Helper()
		q, err := http.NewRequest(http.MethodPost, rebound+"/shop/echo", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"Content-Type": {"application/json"}, "Origin": {rebound}, "Sec-Fetch-Site": {"same-origin"}}
		a, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	if got := call(); got != http.StatusMisdirectedRequest {
		t.Errorf("got %d", got)
	}
	if err := r.Reload(changed(c, func(c *config.Config) { c.Server.Hosts = []string{"*.example"} })); err != nil {
		t.Fatal(err)
	}
	if got := call(); got != http.StatusOK {
		t.Errorf("with the name among the server's hosts: got %d", got)
	}
	if err := r.Reload(changed(c, func(c *config.Config) { c.Server.Hosts, c.Tools.Disabled = []string{"a b"}, []string{"shop"} })); err == nil {
		t.Error("a host with a blank is not refused")
	}
	if got := call(); got != http.StatusOK {
		t.Errorf("after a refused reload: got %d", got)
	}
}
