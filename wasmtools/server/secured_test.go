package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/web"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// secured returns a configuration with a certificate of an authority, which also issues client certificates.
func secured(t *testing.T, a *certtest.Authority) *config.Config {
	t.Helper()
	c, dir := settings(t), t.TempDir()
	certificate, key := a.Issue(nil)
	c.Server.TLS = config.TLS{
		Certificate: certtest.Write(t, dir, "cert.pem", certificate), Key: certtest.Write(t, dir, "key.pem", key), ClientCA: certtest.Write(t, dir, "ca.pem", a.PEM),
	}
	return c
}

// A peer is a door that returns the name in the client's certificate.
type peer struct{}

func (peer) Serve(x *web.Exchange) {
	name := "nobody"
	if s := x.Request().TLS; s != nil && len(s.VerifiedChains) > 0 {
		name = s.PeerCertificates[0].Subject.CommonName
	}
	x.Send(http.StatusOK, []byte(x.Request().Proto+" "+name))
}

// TestTLS serves clients of both versions of HTTP, and refuses those whose handshake fails.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t, "a")
	c := secured(t, a)
	c.Server.Hosts = nil
	r := build(t, c)
	r.Mount("/peer.api", peer{})
	run(t, r)
	address := r.Addr().String()
	get := func(t *testing.T, client *http.Client) (string, error) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/peer.api", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(q)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	ann := a.Pair(func(c *x509.Certificate) { c.Subject.CommonName = "ann" })
	stranger := certtest.NewAuthority(t, "b").Pair(nil)
	old := a.Pair(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	for name, tt := range map[string]struct {
		config *tls.Config
		http2  bool
		want   string // "": refused
	}{
		"HTTP/1.1":                    {&tls.Config{}, false, "HTTP/1.1 nobody"},
		"HTTP/2":                      {&tls.Config{}, true, "HTTP/2.0 nobody"},
		"TLS 1.2, HTTP/2":             {&tls.Config{MaxVersion: tls.VersionTLS12}, true, "HTTP/2.0 nobody"},
		"a certificate":               {&tls.Config{Certificates: []tls.Certificate{ann}}, false, "HTTP/1.1 ann"},
		"a certificate, HTTP/2":       {&tls.Config{Certificates: []tls.Certificate{ann}}, true, "HTTP/2.0 ann"},
		"another's certificate":       {&tls.Config{GetClientCertificate: always(stranger)}, false, ""},
		"an expired certificate":      {&tls.Config{GetClientCertificate: always(old)}, true, ""},
		"TLS 1.1":                     {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false, ""},
		"ciphers that HTTP/2 forbids": {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.config.RootCAs = a.Pool
			transport := &http.Transport{TLSClientConfig: tt.config, Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(!tt.http2)
			transport.Protocols.SetHTTP2(tt.http2)
			defer transport.CloseIdleConnections()
			got, err := get(t, &http.Client{Transport: transport, Timeout: patience})
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Run("without TLS", func(t *testing.T) {
		t.Parallel()
		conn := r.dial()
		if got := send(t, conn, probe); got != 400 {
			t.Errorf("got %d", got)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("the connection is not closed: %v", err)
		}
	})
	if err := r.Answers(t.Context()); err != nil {
		t.Errorf("the server does not answer its own probe: %v", err)
	}
}

func always(pair tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
}

// TestHostileHandshakes has clients that begin a TLS handshake and never finish it.
// Proves: Clients keep nobody out
func TestHostileHandshakes(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t, "a")
	r := build(t, secured(t, a))
	r.SetConnections(2, 1)
	r.SetHeads(100 << 10)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	echo := func() int {
		conn := tls.Client(r.dial(), &tls.Config{RootCAs: a.Pool, ServerName: "localhost"})
		return send(t, conn, said(""))
	}
	// Some clients send nothing, or half of a handshake.
	for i := range 6 {
		conn := r.dial()
		if i%2 == 1 {
			if _, err := conn.Write([]byte{22, 3, 1, 1, 0, 1, 0, 0, 252}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := echo(); got != 200 {
		t.Errorf("while clients are silent: got %d", got)
	}
	// Others send too much: a hello of 64 KiB, and then something that must not follow it.
	conn := r.dial()
	record := append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 16<<10)...)
	copy(record[5:], []byte{1, 0, 255, 255})
	go func() {
		for {
			if _, err := conn.Write(record); err != nil {
				return
			}
		}
	}()
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("an endless handshake is read forever")
	}
	if got := echo(); got != 200 {
		t.Errorf("afterwards: got %d", got)
	}
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		_, heads := r.Taken()
		if heads == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("handshakes take %d bytes afterwards", heads)
		}
	}
}

// TestAuthorityGone replaces the authority of a client's certificate while its connection is open: from then on, the certificate is no longer valid.
func TestAuthorityGone(t *testing.T) {
	t.Parallel()
	a, b := certtest.NewAuthority(t, "a"), certtest.NewAuthority(t, "b")
	c := secured(t, a)
	c.Server.Hosts = nil
	r := build(t, c)
	r.Mount("/peer.api", peer{})
	run(t, r)
	client := tls.Client(r.dial(), &tls.Config{RootCAs: a.Pool, ServerName: "localhost", Certificates: []tls.Certificate{a.Pair(nil)}})
	in := bufio.NewReader(client)
	ask := func() string {
		t.Helper()
		if _, err := io.WriteString(client, "GET /peer.api HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := ask(); got != "HTTP/1.1 test" {
		t.Errorf("got %q", got)
	}
	dir, file := filepath.Split(c.Server.TLS.ClientCA)
	certtest.Write(t, dir, file, append(b.PEM, a.PEM...))
	r.log.Wait(t, "the TLS files were read again")
	if got := ask(); got != "HTTP/1.1 test" {
		t.Errorf("with another authority added: got %q", got)
	}
	certtest.Write(t, dir, file, b.PEM)
	r.log.WaitFor(t, "a second reading", func(all string) bool { return strings.Count(all, "the TLS files were read again") == 2 })
	if got := ask(); got != "HTTP/1.1 nobody" {
		t.Errorf("without its authority: got %q", got)
	}
}

// TestSocketAndTLS lets a server listen on TCP with TLS, and on a socket without TLS, at the same time.
func TestSocketAndTLS(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t, "a")
	c := secured(t, a)
	path := filepath.Join(t.TempDir(), "s")
	c.Server.Addresses, c.Server.Hosts = append(c.Server.Addresses, "unix:"+path), nil
	prefix, err := config.Parse([]byte(`server.trusted_proxies = ["127.0.0.1/32"]`), "")
	if err != nil {
		t.Fatal(err)
	}
	c.Server.TrustedProxies = prefix.Server.TrustedProxies
	r := start(t, c)
	if got := send(t, tls.Client(r.dial(), &tls.Config{RootCAs: a.Pool, ServerName: "localhost"}), strings.ReplaceAll(said(""), "Host: x", "Host: localhost")); got != 200 {
		t.Errorf("TLS: got %d", got)
	}
	if got := send(t, tls.Client(r.dial(), &tls.Config{RootCAs: a.Pool, ServerName: "localhost"}), said("")); got != 421 {
		t.Errorf("another host over loopback: got %d", got)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := send(t, conn, strings.ReplaceAll(said(""), "Host: x", "Host: tools.example.com\r\nX-Forwarded-For: 203.0.113.7")); got != 200 {
		t.Errorf("the socket: got %d", got)
	}
	r.log.Wait(t, `"client":"203.0.113.7"`)
	r.stop()
	if err := r.result(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestTLSFails checks that a server whose certificate doesn't belong to its key does not start, and listens nowhere.
func TestTLSFails(t *testing.T) {
	t.Parallel()
	a := certtest.NewAuthority(t, "a")
	c := secured(t, a)
	_, other := a.Issue(nil)
	certtest.Write(t, filepath.Dir(c.Server.TLS.Key), filepath.Base(c.Server.TLS.Key), other)
	path := filepath.Join(t.TempDir(), "s")
	c.Server.Addresses = []string{"unix:" + path}
	good := *c
	good.Server.TLS = config.TLS{}
	if err := start(t, &good).CheckRestart((*public.Config)(c.Handle())); err == nil || !strings.Contains(err.Error(), "private key does not match public key") {
		t.Errorf("before a restart: got %v", err)
	}
	path = filepath.Join(t.TempDir(), "s")
	c.Server.Addresses = []string{"unix:" + path}
	_, _, err := open(t, c, core.Options{}, server.Options{})
	if err == nil || !strings.Contains(err.Error(), "private key does not match public key") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is there: %v", err)
	}
}
