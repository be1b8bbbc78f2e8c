package server_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
)

// An issuer is an OpenID Connect issuer for tests, which signs tokens.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "1", Algorithm: "ES256"}}}
	i := &issuer{httptest.NewServer(keys), key}
	t.Cleanup(i.Close)
	keys.SetIssuer(i.URL)
	return i
}

func (i *issuer) token(groups ...string) string {
	list, _ := json.Marshal(groups)
	return oidctest.SignIDToken(i.key, "1", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"toolsrv","sub":"ann","exp":%d,"groups":%s,"scope":"tools"}`, i.URL, time.Now().Add(time.Hour).Unix(), list))
}

func (i *issuer) rules(rules ...config.ClaimRule) config.OIDC {
	return config.OIDC{Issuer: i.URL, Audience: []string{"toolsrv"}, Name: "sub", Rules: rules}
}

// TestIssuedTokens lets in tokens of an issuer by rules, which a reload replaces.
func TestIssuedTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	c := settings(t)
	c.Server.Hosts = nil
	c.Auth.OIDC = i.rules(config.ClaimRule{Claim: "groups", Value: "a", Scopes: []string{"shop/echo"}})
	r := start(t, c)
	want := func(when, path, token string, status int) {
		t.Helper()
		if got := r.status(path, token); got != status {
			t.Errorf("%s: %s: got %d, want %d", when, path, got, status)
		}
	}
	want("at first", "/shop/echo", i.token("a"), 200)
	want("at first", "/shop/trap", i.token("a"), 404)
	want("at first", "/shop/echo", i.token("b"), 403)
	want("at first", "/shop/echo", "", 401)
	want("at first", "/shop/echo", newIssuer(t).token("a"), 401)
	r.log.Wait(t, "no [[auth.oidc.rule]] matches a claim")
	r.log.Wait(t, "its signature is not the issuer's")

	next := *c
	next.Auth.OIDC.Rules = []config.ClaimRule{{Claim: "groups", Value: "b", Scopes: []string{"*"}}}
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	want("with another rule", "/shop/echo", i.token("a"), 403)
	want("with another rule", "/shop/trap", i.token("b"), 500)

	other := newIssuer(t)
	last := next
	last.Auth.OIDC = other.rules(next.Auth.OIDC.Rules...)
	if err := r.Reload(&last); err != nil {
		t.Fatal(err)
	}
	want("with another issuer", "/shop/echo", i.token("b"), 401)
	want("with another issuer", "/shop/echo", other.token("b"), 200)
	none := last
	none.Auth.OIDC = config.OIDC{}
	none.Auth.Required = true
	if err := r.Reload(&none); err != nil {
		t.Fatal(err)
	}
	want("without an issuer", "/shop/echo", other.token("b"), 401)
}

// TestResource checks that clients without a token are told where to get one, from any page.
func TestResource(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for name, tt := range map[string]struct{ public, base string }{
		"its own address":  {"", ""},
		"a public one":     {"https://tools.example.com/t", "https://tools.example.com/t"},
		"with a slash":     {"https://tools.example.com/", "https://tools.example.com"},
		"a path in public": {"/t", "/t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.Server.Hosts, c.Server.PublicURL = nil, tt.public
			c.Auth.OIDC = i.rules(config.ClaimRule{Claim: "scope", Value: "tools", Scopes: []string{"*"}}, config.ClaimRule{Claim: "groups", Value: "a", Scopes: []string{"*"}})
			r := start(t, c)
			base := tt.base
			if !strings.Contains(base, "://") {
				base = r.url + base
			}
			get := func(path string) (*http.Response, map[string]any) {
				t.Helper()
				q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				q.Header.Set("Origin", "https://inspector.example")
				if !strings.Contains(path, ".well-known") {
					q.Header.Del("Origin")
				}
				a, err := http.DefaultClient.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Body.Close()
				body, err := io.ReadAll(a.Body)
				if err != nil {
					t.Fatal(err)
				}
				var document map[string]any
				_ = json.Unmarshal(body, &document) // for an error there is a second challenge
				return a, document
			}
			for path, resource := range map[string]string{"": base, "/mcp": base + "/mcp", "/mcp/": base + "/mcp/", "/mcp/shop": base + "/mcp/shop"} {
				a, document := get("/.well-known/oauth-protected-resource" + path)
				if a.StatusCode != 200 || document["resource"] != resource || fmt.Sprint(document["authorization_servers"], document["scopes_supported"]) != "["+i.URL+"] [tools]" {
					t.Errorf("%q: got %s %v, want the resource %s", path, a.Status, document, resource)
				}
				if got := a.Header.Get("Access-Control-Allow-Origin"); got != "*" {
					t.Errorf("%q: pages of other origins may not read the document: got %q", path, got)
				}
			}
			if a, _ := get("/.well-known/oauth-protected-resource/shop"); a.StatusCode != 404 {
				t.Errorf("for a path that is not a resource: got %s", a.Status)
			}
			for path, suffix := range map[string]string{"/mcp": "/mcp", "/mcp/": "/mcp/", "/tools": "", "/mcp/%22x": "/mcp/%22x"} {
				a, _ := get(path)
				want := []string{fmt.Sprintf("Bearer resource_metadata=%q, scope=%q", base+"/.well-known/oauth-protected-resource"+suffix, "tools")}
				if got := a.Header.Values("WWW-Authenticate"); a.StatusCode != 401 || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %s %q, want %q", path, a.Status, got, want)
				}
				if u, err := url.Parse(base); err != nil || u.Host == "" {
					t.Fatal(err)
				}
			}
		})
	}
	c := settings(t)
	c.Server.Hosts = nil
	if got := start(t, c).status("/.well-known/oauth-protected-resource", ""); got != 405 && got != 404 {
		t.Errorf("without an issuer: got %d", got)
	}
}

// TestCertificates lets clients in by their certificates, until the rule or the authority is removed.
func TestCertificates(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t, "a")
	c := secured(t, a)
	c.Server.Hosts = nil
	c.Auth.Certificates = []config.ClaimRule{
		{Claim: "dns", Value: "build.example.com", Scopes: []string{"shop/echo"}}, {Claim: "uri", Value: "spiffe://acme.example/ops/*", Scopes: []string{"*"}},
	}
	r := start(t, c)
	named := func(dns, uri string) *tls.Conn {
		pair := a.Pair(func(c *x509.Certificate) {
			c.DNSNames = []string{dns}
			if u, err := url.Parse(uri); err == nil && uri != "" {
				c.URIs = []*url.URL{u}
			}
		})
		return tls.Client(r.dial(), &tls.Config{RootCAs: a.Pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}})
	}
	ask := func(conn *tls.Conn, path string) int {
		t.Helper()
		text := strings.ReplaceAll(strings.ReplaceAll(said(""), "Host: x", "Host: localhost"), "/shop/echo", path)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	for name, tt := range map[string]struct {
		dns, uri, path string
		want           int
	}{
		"by name":             {"build.example.com", "", "/shop/echo", 200},
		"out of scope":        {"build.example.com", "", "/shop/trap", 404},
		"by URI":              {"x.example.com", "spiffe://acme.example/ops/1", "/shop/echo", 200},
		"by both":             {"build.example.com", "spiffe://acme.example/ops/1", "/shop/trap", 500},
		"another name":        {"evil-build.example.com", "", "/shop/echo", 401},
		"a pattern as name":   {"*.example.com", "", "/shop/echo", 401},
		"another URI":         {"x.example.com", "spiffe://acme.example/opsx", "/shop/echo", 401},
		"a name within a URI": {"x.example.com", "https://build.example.com", "/shop/echo", 401},
	} {
		if got := ask(named(tt.dns, tt.uri), tt.path); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
	r.log.Wait(t, `"principal":"spiffe://acme.example/ops/1"`)
	if got := ask(tls.Client(r.dial(), &tls.Config{RootCAs: a.Pool, ServerName: "localhost"}), "/shop/echo"); got != 401 {
		t.Errorf("without a certificate: got %d", got)
	}
	open := named("build.example.com", "")
	if got := ask(open, "/shop/echo"); got != 200 {
		t.Errorf("got %d", got)
	}
	dir, file := filepath.Split(c.Server.TLS.ClientCA)
	certtest.Write(t, dir, file, certtest.NewAuthority(t, "b").PEM)
	r.log.Wait(t, "the TLS files were read again")
	if got := ask(open, "/shop/echo"); got != 401 {
		t.Errorf("without its authority, over a connection that is still open: got %d", got)
	}
}
