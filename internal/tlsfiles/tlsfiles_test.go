package tlsfiles_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/tlsfiles"
)

// shown returns the name in the certificate of a handshake now.
func shown(t *testing.T, s *tlsfiles.Source, client *tls.Config) (string, error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Server(a, s.Config()).Handshake() }()
	c := tls.Client(b, client)
	err := c.Handshake()
	if err != nil {
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func named(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.Subject.CommonName = name }
}

// TestRenewed replaces files one after another, as programs that renew certificates do. Some of the new files are wrong.
func TestRenewed(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), certtest.NewAuthority(t, "a")
	put := func(certificate, key []byte) {
		certtest.Write(t, dir, "cert.pem", certificate)
		certtest.Write(t, dir, "key.pem", key)
	}
	put(a.Issue(named("first")))
	log := &testkit.Log{}
	s, err := tlsfiles.Open(tlsfiles.Files{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}, log.Logger(slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	tlsfiles.SetEvery(s, 10*time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.Watch(ctx)
	}()
	defer func() {
		stop()
		<-watched
	}()
	client := &tls.Config{RootCAs: a.Pool, ServerName: "localhost"}
	want := func(name string) {
		t.Helper()
		if got, err := shown(t, s, client); got != name || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, name)
		}
	}
	want("first")
	_, other := a.Issue(nil)
	certtest.Write(t, dir, "key.pem", other)
	log.Wait(t, "the TLS certificate and key stay as they were")
	want("first")
	put(a.Issue(named("second")))
	log.Wait(t, "the TLS files were read again")
	want("second")
	if got := s.Number(); got != 1 {
		t.Errorf("got number %d, want 1", got)
	}
	if err := os.Remove(filepath.Join(dir, "cert.pem")); err != nil {
		t.Fatal(err)
	}
	log.Wait(t, "read server.tls.certificate")
	want("second")
	if strings.Contains(log.String(), "PRIVATE") {
		t.Error("the log has a key")
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), certtest.NewAuthority(t, "a")
	certificate, key := a.Issue(nil)
	otherCertificate, otherKey := a.Issue(nil)
	paths := map[string]string{"": "", "missing": filepath.Join(dir, "missing"), "dir": dir}
	for name, text := range map[string][]byte{
		"cert": certificate, "key": key, "other cert": otherCertificate, "other key": otherKey, "empty": nil, "text": []byte("hello"),
		"broken": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "huge": make([]byte, 2<<20),
	} {
		paths[name] = certtest.Write(t, dir, name, text)
	}
	for name, tt := range map[string]struct{ certificate, key, ca, want string }{
		"another's key":         {"cert", "other key", "", "private key does not match public key"},
		"another's certificate": {"other cert", "key", "", "private key does not match public key"},
		"the wrong way round":   {"key", "cert", "", "PEM"},
		"no certificate":        {"missing", "key", "", "read server.tls.certificate"},
		"a directory":           {"dir", "key", "", "read server.tls.certificate"},
		"no key":                {"cert", "missing", "", "read server.tls.key"},
		"empty":                 {"empty", "key", "", "use server.tls.certificate"},
		"not PEM":               {"cert", "text", "", "use server.tls.certificate"},
		"a broken certificate":  {"broken", "key", "", "use server.tls.certificate"},
		"too large":             {"huge", "key", "", "larger than 1 MiB"},
		"no authority":          {"cert", "key", "missing", "read server.tls.client_ca"},
		"an invalid authority":  {"cert", "key", "text", "it has no certificate in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tlsfiles.Open(tlsfiles.Files{Certificate: paths[tt.certificate], Key: paths[tt.key], ClientCA: paths[tt.ca]}, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestClients checks which client certificates are accepted, in a handshake and later.
func TestClients(t *testing.T) {
	t.Parallel()
	dir, a, b := t.TempDir(), certtest.NewAuthority(t, "a"), certtest.NewAuthority(t, "b")
	certificate, key := a.Issue(nil)
	files := tlsfiles.Files{
		Certificate: certtest.Write(t, dir, "cert", certificate), Key: certtest.Write(t, dir, "key", key), ClientCA: certtest.Write(t, dir, "ca", a.PEM),
	}
	s, err := tlsfiles.Open(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		of     *certtest.Authority
		change func(*x509.Certificate)
		good   bool
	}{
		"good":              {a, nil, true},
		"of another":        {b, nil, false},
		"expired":           {a, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, false},
		"not yet valid":     {a, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, false},
		"for servers alone": {a, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }, false},
	} {
		pair := tt.of.Pair(tt.change)
		if got := s.Vouches([]*x509.Certificate{pair.Leaf}, time.Now()); got != tt.good {
			t.Errorf("%s: vouched for %t, want %t", name, got, tt.good)
		}
	}
	if s.Vouches(nil, time.Now()) {
		t.Error("vouched for nobody")
	}
}
