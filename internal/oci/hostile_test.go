package oci_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

// TestLies pulls from a registry whose answers differ from what it has announced. None of them is accepted, and no more is read than was announced.
// Proves: No tool takes another's place
func TestLies(t *testing.T) {
	t.Parallel()
	blob := func(f func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			if strings.Contains(q.URL.Path, "/blobs/") {
				f(w)
				return true
			}
			return false
		}
	}
	manifest := func(f func(w http.ResponseWriter, q *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			return strings.Contains(q.URL.Path, "/manifests/") && f(w, q)
		}
	}
	other := strings.Repeat("x", len(module))
	for name, c := range map[string]struct {
		before func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"another module of the same length": {blob(func(w http.ResponseWriter) { io.WriteString(w, other) }), "doesn't match its digest"},
		"a longer module, of unknown length": {blob(func(w http.ResponseWriter) {
			w.(http.Flusher).Flush()
			for range 1 << 14 { // 64 KiB each time, if they were read
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}), "has more than the 18 bytes"},
		"a length of 10 GB": {blob(func(w http.ResponseWriter) { w.Header().Set("Content-Length", "10000000000") }), "mismatch Content-Length"},
		"a shorter one":     {blob(func(w http.ResponseWriter) { w.(http.Flusher).Flush(); io.WriteString(w, "short") }), "ends after 5 of 18 bytes"},
		"nothing":           {blob(func(w http.ResponseWriter) { w.(http.Flusher).Flush() }), "ends after 0 of 18 bytes"},
		"a connection that is cut": {blob(func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(len(module)))
			w.Write(module[:9])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "unexpected EOF"},
		"a digest of another module": {blob(func(w http.ResponseWriter) {
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
			w.Write(module)
		}), "mismatch"},
		"a module that was moved":   {blob(func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }), "the registry has nothing with this name"},
		"an answer of another kind": {blob(func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot); io.WriteString(w, "\x1b[31mtea") }), "418"},
		"a manifest other than the announced one": {manifest(func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method != http.MethodGet {
				return false
			}
			io.WriteString(w, strings.Repeat("{", 409))
			return true
		}), "mismatch"},
		"a manifest of 10 GB": {manifest(func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
			w.Header().Set("Content-Length", "10000000000")
			return true
		}), "its manifest has 10000000000 bytes; the limit is 1048576"},
		"a digest that is not verified": {manifest(func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", "sha512:"+strings.Repeat("a", 128))
			w.Header().Set("Content-Length", "10")
			return true
		}), "is not a supported digest"},
		"no digest, and no length": {manifest(func(w http.ResponseWriter, q *http.Request) bool { w.(http.Flusher).Flush(); return true }), "acme/csv:1.2: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ocitest.Serve(t)
			ref, _ := pushed(t, s)
			s.Before(c.before)
			_, _, err := pull(t, open(t, s.Host, oci.Options{}), ref)
			wants(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the error has control characters: %q", err)
			}
		})
	}
}

// TestDigestHolds pulls by a digest from a registry that has another artifact for it.
// Proves: No tool takes another's place
func TestDigestHolds(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	ref, first := pushed(t, s)
	second := put(t, s, "acme/csv", "1.2", nil, layer{"application/wasm", []byte("another one")})
	r := open(t, s.Host, oci.Options{})
	if got, a, err := pull(t, r, ref.At(first.Manifest)); err != nil || string(got) != string(module) || a.Manifest != first.Manifest {
		t.Errorf("got %q, %+v, %v", got, a, err)
	}
	if now, err := r.Resolve(t.Context(), ref); err != nil || now != second {
		t.Errorf("got %s, %v, want %s", now, err, second)
	}
	s.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/manifests/sha256:") {
			q.URL.Path = "/v2/acme/csv/manifests/" + second // the other artifact is served under the requested digest
		}
		return false
	})
	_, _, err := pull(t, r, ref.At(first.Manifest))
	wants(t, err, "mismatch")
}

// TestRedirects has a registry that redirects elsewhere. Credentials are not sent along, TLS is kept, and so is the kind of network.
// Proves: No tool takes another's place
func TestRedirects(t *testing.T) {
	t.Parallel()
	const user, password = "ann", "secret-of-ann-7654321"
	for name, c := range map[string]struct {
		registry string // its address
		to       string // where the registry redirects for the module; %s is the other server
		names    map[string]string
		want     string
	}{
		"a store on the internet":                                {"93.184.216.34", "http://store.example", map[string]string{"store.example": "93.184.216.35"}, ""},
		"another port of the registry":                           {"93.184.216.34", "http://registry.example:8081", nil, ""},
		"a host below the registry":                              {"93.184.216.34", "http://store.registry.example", map[string]string{"store.registry.example": "93.184.216.35"}, ""},
		"a host beside a registry in a network":                  {"10.0.0.7", "http://store.example", map[string]string{"store.example": "10.9.9.9"}, ""},
		"a service of the network":                               {"93.184.216.34", "http://store.example", map[string]string{"store.example": "10.0.0.8"}, "whose address is private"},
		"a service of the machine":                               {"93.184.216.34", "http://store.example", map[string]string{"store.example": "127.0.0.1"}, "whose address is loopback"},
		"a service of the machine, from a registry in a network": {"10.0.0.7", "http://store.example", map[string]string{"store.example": "127.0.0.1"}, "whose address is loopback"},
		"a cloud's metadata":                                     {"10.0.0.7", "http://169.254.169.254", nil, "whose address is link-local"},
		"a neighbour with a public address":                      {"93.184.216.34", "http://8.8.8.9", nil, "on a network that the server's machine is in"},
		"IPv4 in IPv6":                                           {"93.184.216.34", "http://[::ffff:127.0.0.1]", nil, "whose address is loopback"},
		"a file":                                                 {"93.184.216.34", "file:///etc/passwd", nil, "file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ocitest.Serve(t)
			pushed(t, s)
			var leaked atomic.Bool
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("Authorization") != "" {
					leaked.Store(true)
				}
				w.Write(module)
			}))
			t.Cleanup(store.Close)
			basic := ocitest.Basic(user, password)
			s.Before(func(w http.ResponseWriter, q *http.Request) bool {
				if basic(w, q) {
					return true
				}
				if strings.Contains(q.URL.Path, "/blobs/") {
					http.Redirect(w, q, c.to+"/blob", http.StatusTemporaryRedirect)
					return true
				}
				return false
			})
			network := hosts{names: map[string]string{"registry.example": c.registry}, behind: map[string]string{c.registry + ":80": s.Host, c.registry + ":8081": store.Listener.Addr().String()}}
			for name, a := range c.names {
				network.names[name] = a
				network.behind[a+":80"] = store.Listener.Addr().String()
			}
			keys := credentialsFile(t, "registry.example", user, password)
			r := open(t, "registry.example", oci.Options{PlainHTTP: true, Network: network, Credentials: keys})
			got, _, err := pull(t, r, reference(t, "registry.example", "acme/csv:1.2"))
			wants(t, err, c.want)
			if c.want == "" && string(got) != string(module) {
				t.Errorf("got %q", got)
			}
			if leaked.Load() {
				t.Error("the store got credentials")
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// TestUntrusted connects to registries with untrusted certificates, to one without TLS, and to one that does not run.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	authority, another := certtest.NewAuthority(t, "one"), certtest.NewAuthority(t, "another")
	ca := testkit.Put(t, t.TempDir(), "ca.pem", authority.PEM)
	serve := func(certificate tls.Certificate) string {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for host, want := range map[string]string{
		serve(authority.Pair(nil)): "the registry has nothing with this name",
		serve(another.Pair(nil)):   "is from an authority that is not trusted here: name the authority's file (ca)",
		serve(authority.Pair(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })): "is not valid: x509: certificate has expired",
		ocitest.Serve(t).Host:           "answers without TLS: if it may, ask it over HTTP (plain_http)",
		closed.Listener.Addr().String(): "check the port, and whether the registry is running",
	} {
		_, _, err := pull(t, open(t, host, oci.Options{CA: ca}), reference(t, host, "acme/csv:1.2"))
		wants(t, err, want)
		wants(t, err, host)
	}
}

// TestNoFallback has a registry with TLS that redirects to a server without TLS, or has its tokens issued by such a server. The certificate is
// checked.
func TestNoFallback(t *testing.T) {
	t.Parallel()
	s := ocitest.ServeTLS(t)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { w.Write(module) }))
	t.Cleanup(plain.Close)
	ca := authorityFile(t, s)
	ref := reference(t, s.Host, "acme/csv:1.2")
	r := open(t, s.Host, oci.Options{CA: ca, Credentials: credentialsFile(t, s.Host, "ann", "secret-of-ann-7654321")})
	if _, err := r.Push(t.Context(), ref, "csv.wasm", module, nil); err != nil {
		t.Fatal(err)
	}
	if got, _, err := pull(t, r, ref); err != nil || string(got) != string(module) {
		t.Errorf("got %q, %v", got, err)
	}
	s.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") {
			http.Redirect(w, q, plain.URL, http.StatusFound)
			return true
		}
		return false
	})
	_, _, err := pull(t, r, ref)
	wants(t, err, "without TLS")
	s.Before(func(w http.ResponseWriter, q *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+plain.URL+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, _, err = pull(t, r, ref)
	wants(t, err, "http")
	_, _, err = pull(t, open(t, s.Host, oci.Options{CA: testkit.Put(t, t.TempDir(), "ca.pem", certtest.NewAuthority(t, "another").PEM)}), ref)
	wants(t, err, "is from an authority that is not trusted here")
	_, _, err = pull(t, open(t, s.Host, oci.Options{}), ref)
	wants(t, err, "if it wants TLS, name the authority of its certificate")
	// A registry elsewhere is always used over TLS, whatever it says.
	_, _, err = pull(t, open(t, "registry.example:80", oci.Options{Network: hosts{names: map[string]string{"registry.example": "93.184.216.34"}, behind: map[string]string{"93.184.216.34:80": plain.Listener.Addr().String()}}}), reference(t, "registry.example:80", "acme/csv:1.2"))
	wants(t, err, "HTTP")
}

// TestTokens has a registry that says where its tokens are issued. Credentials are sent there only over TLS, or to the registry itself.
// Proves: No tool takes another's place
func TestTokens(t *testing.T) {
	t.Parallel()
	const user, password = "ann", "secret-of-ann-7654321"
	for name, c := range map[string]struct {
		realm   string
		refresh bool // the credentials are a refresh token
		nobody  bool // there are no credentials
		asked   bool // the other server got a request
		want    string
	}{
		"the registry":                     {"http://example.com/token", false, false, false, ""},
		"the registry, with its port":      {"http://EXAMPLE.com:80/token", false, false, false, ""},
		"another port over TLS":            {"https://example.com:8443/token", false, false, true, ""},
		"another port":                     {"http://example.com:8080/token", false, false, false, "credentials sent to example.com:8080 without TLS"},
		"another host":                     {"http://93.184.216.35/token", false, false, false, "credentials sent to 93.184.216.35 without TLS"},
		"another host, refresh token":      {"http://93.184.216.35/token", true, false, false, "credentials sent to 93.184.216.35 without TLS"},
		"another host, with no credential": {"http://93.184.216.35/token", false, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ocitest.Serve(t)
			pushed(t, s)
			var asked, shown atomic.Bool
			answer := func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(io.LimitReader(q.Body, 1<<10))
				if q.Header.Get("Authorization") != "" || strings.Contains(string(body), password) {
					shown.Store(true)
				}
				io.WriteString(w, `{"token":"good","access_token":"good"}`)
			}
			other := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { asked.Store(true); answer(w, q) })
			plain, tls := httptest.NewServer(other), ocitest.ServeTLS(t)
			t.Cleanup(plain.Close)
			tls.Before(func(w http.ResponseWriter, q *http.Request) bool { other(w, q); return true })
			s.Before(func(w http.ResponseWriter, q *http.Request) bool {
				switch {
				case q.URL.Path == "/token":
					answer(w, q)
				case q.Header.Get("Authorization") == "Bearer good":
					return false
				default:
					w.Header().Set("WWW-Authenticate", `Bearer realm="`+c.realm+`",service="x",scope="repository:acme/csv:pull"`)
					w.WriteHeader(http.StatusUnauthorized)
				}
				return true
			})
			network := hosts{names: map[string]string{"example.com": "93.184.216.34", "EXAMPLE.com": "93.184.216.34"}, behind: map[string]string{
				"93.184.216.34:80": s.Host, "93.184.216.34:8443": tls.Host, "93.184.216.34:8080": plain.Listener.Addr().String(), "93.184.216.35:80": plain.Listener.Addr().String(),
			}}
			o := oci.Options{PlainHTTP: true, CA: authorityFile(t, tls), Network: network, Credentials: credentialsFile(t, "example.com", user, password)}
			if c.refresh {
				o.Credentials = testkit.Put(t, t.TempDir(), "c.json", `{"auths":{"example.com":{"identitytoken":"`+password+`"}}}`)
			}
			if c.nobody {
				o.Credentials = ""
			}
			_, _, err := pull(t, open(t, "example.com", o), reference(t, "example.com", "acme/csv:1.2"))
			wants(t, err, c.want)
			if asked.Load() != c.asked || shown.Load() != (c.want == "" && !c.nobody) {
				t.Errorf("another server was asked: %v; it got credentials: %v", asked.Load(), shown.Load())
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// TestBusy has a registry that asks to be left alone: for a moment, in which case the client waits, and for longer, in which case it returns an
// error.
func TestBusy(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	ref, _ := pushed(t, s)
	r := open(t, s.Host, oci.Options{})
	for _, c := range []struct {
		header string
		status int
		times  int64 // how often it answers like this
		after  time.Duration
		want   string
	}{
		{"", http.StatusTooManyRequests, 1, 0, ""},
		{"0", http.StatusServiceUnavailable, 2, 0, ""},
		{"", http.StatusBadGateway, 1 << 20, 0, "502"},
		{"60", http.StatusTooManyRequests, 1, time.Minute, "asked again in 1m0s"},
		{"99999999999", http.StatusTooManyRequests, 1 << 20, 0, "429"},
		{"4294967295", http.StatusTooManyRequests, 1, time.Hour, "asked again in 1h0m0s"},
		{time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat), http.StatusServiceUnavailable, 1, 30 * time.Minute, "asked again in"},
		{"soon", http.StatusTooManyRequests, 1, 0, ""},
	} {
		var times atomic.Int64
		s.Before(func(w http.ResponseWriter, q *http.Request) bool {
			if times.Add(1) > c.times {
				return false
			}
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(c.status)
			return true
		})
		_, _, err := pull(t, r, ref)
		wants(t, err, c.want)
		var busy *oci.BusyError
		if errors.As(err, &busy) != (c.after > 0) || busy != nil && (busy.After > c.after || busy.After < c.after-time.Minute) {
			t.Errorf("%q: got %+v, want %v", c.header, busy, c.after)
		}
	}
}

// TestLists has a registry whose lists never end.
func TestLists(t *testing.T) {
	t.Parallel()
	s := ocitest.Serve(t)
	ref, _ := pushed(t, s)
	r := open(t, s.Host, oci.Options{})
	if tags, err := r.Tags(t.Context(), ref); err != nil || fmt.Sprint(tags) != "[1.2]" {
		t.Errorf("got %v, %v", tags, err)
	}
	if names, err := r.Repositories(t.Context()); err != nil || fmt.Sprint(names) != "[acme/csv]" {
		t.Errorf("got %v, %v", names, err)
	}
	page := 0
	s.Before(func(w http.ResponseWriter, q *http.Request) bool {
		page++
		w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, q.URL.Path, page))
		io.WriteString(w, `{"name":"acme/csv","tags":["a"],"repositories":["a"]}`)
		return true
	})
	_, err := r.Tags(t.Context(), ref)
	wants(t, err, "page")
	_, err = r.Repositories(t.Context())
	wants(t, err, "more than 100 pages")
	if page > 250 {
		t.Errorf("%d pages were asked for", page)
	}
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		io.WriteString(w, `{"name":"acme/csv","tags":[`+strings.Repeat(`"a",`, 20_000)+`"b"]}`)
		return true
	})
	_, err = r.Tags(t.Context(), ref)
	wants(t, err, "more than 10000 tags")
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		io.WriteString(w, `{"name":"acme/csv","tags":["`+strings.Repeat("a", 5<<20)+`"],"repositories":["a"]}`)
		return true
	})
	_, err = r.Tags(t.Context(), ref)
	wants(t, err, "a page of the registry's list has more than 4 MiB")
	_, err = r.Repositories(t.Context())
	wants(t, err, "a page of the registry's list has more than 4 MiB")
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		io.WriteString(w, `{"name":"acme/csv","tags":["a`) // this page is really truncated
		return true
	})
	_, err = r.Tags(t.Context(), ref)
	wants(t, err, "unexpected EOF")
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true })
	_, err = r.Repositories(t.Context())
	wants(t, err, "lists no repositories")
}

// TestLargeIsVerified checks that a change of large content is always noticed. Such content is hashed in a separate goroutine.
// Proves: No tool takes another's place
func TestLargeIsVerified(t *testing.T) {
	t.Parallel()
	module := bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB
	changed := bytes.Clone(module)
	changed[len(changed)-1]++
	for name, c := range map[string]struct {
		sent []byte
		want string
	}{
		"as it is":       {module, ""},
		"another byte":   {changed, "doesn't match its digest"},
		"one byte less":  {module[:len(module)-1], "ends after 3145727 of 3145728 bytes"},
		"one byte more":  {append(bytes.Clone(module), 0), "more than the 3145728 bytes"},
		"a part of it":   {module[:1<<20], "ends after 1048576 of 3145728 bytes"},
		"nothing at all": {nil, "ends after 0 of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := ocitest.Serve(t)
			r := open(t, at.Host, oci.Options{})
			ref := oci.Reference{Host: at.Host, Repository: "acme/large", Tag: "1"}
			a, err := r.Push(t.Context(), ref, "large.wasm", module, nil)
			if err != nil {
				t.Fatal(err)
			}
			at.Before(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.Contains(q.URL.Path, "/blobs/") {
					return false
				}
				w.(http.Flusher).Flush() // so that its length is not announced
				w.Write(c.sent)
				return true
			})
			var to bytes.Buffer
			_, err = r.Pull(t.Context(), ref.At(a.Manifest), &to)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err == nil && !bytes.Equal(to.Bytes(), module) {
				t.Errorf("got %d bytes that are not the module", to.Len())
			}
			if _, err := r.Pull(t.Context(), ref.At(a.Manifest), failing{}); err == nil {
				t.Error("a full disk caused no error")
			}
		})
	}
}

// failing takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }
