// Package tlsfiles makes the TLS configuration of a server from files with a certificate, its key and the authorities of client certificates, and
// reads the files again when they change.
package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// Files are paths of PEM files.
type Files struct {
	Certificate string // the server's certificate, followed by those of its authorities
	Key         string
	ClientCA    string // the authorities of client certificates; if empty, clients are not asked for a certificate
}

const (
	// lookEvery is how often the files are checked. Changed files are read once they have stayed the same for this long.
	lookEvery = time.Second
	// soon is a time: a certificate that expires within it causes a warning when it is read.
	soon = 7 * 24 * time.Hour
)

// A Source is the TLS configuration in files. It is safe for concurrent use.
type Source struct {
	files  Files
	logger *slog.Logger
	every  time.Duration
	config *tls.Config
	read   stamps // the stamps of the content that is in force or was refused; after Open, only Watch uses them
	now    atomic.Pointer[content]
}

// A content is the content of the files at one time. It never changes.
type content struct {
	config  *tls.Config
	clients *x509.CertPool // nil: no authority
	number  uint64         // how many contents were in force before this one
}

// Open reads the files.
func Open(files Files, logger *slog.Logger) (*Source, error) {
	s := &Source{files: files, logger: logger, every: lookEvery}
	s.read = s.look() // looks before the files are read, so that a change in between is noticed later
	first, err := s.content()
	if err != nil {
		return nil, err
	}
	s.now.Store(first)
	s.config = first.config.Clone()
	s.config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now.Load().config, nil }
	return s, nil
}

// Config returns a configuration that uses, in each handshake, the current content of the files.
func (s *Source) Config() *tls.Config { return s.config }

// Number returns a number that grows each time that new content is in force.
func (s *Source) Number() uint64 { return s.now.Load().number }

// Vouches reports whether the client's certificate is valid now and issued by one of the current authorities.
func (s *Source) Vouches(chain []*x509.Certificate, now time.Time) bool {
	c := s.now.Load()
	if c.clients == nil || len(chain) == 0 {
		return false
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: c.clients, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// Watch reads the files again when they change, until ctx ends. After an error, which is logged, the old content stays in force.
func (s *Source) Watch(ctx context.Context) {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for before := s.read; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.look()
		settled := now.equal(before)
		if before = now; !settled || now.equal(s.read) {
			continue
		}
		s.read = now
		if err := s.renew(); err != nil {
			s.logger.Error("the TLS certificate and key stay as they were", "error", err)
		}
	}
}

// renew puts the current content of the files in force.
func (s *Source) renew() error {
	next, err := s.content()
	if err != nil {
		return err
	}
	next.number = s.now.Load().number + 1
	s.now.Store(next)
	leaf := next.config.Certificates[0].Leaf
	s.logger.Info("the TLS files were read again", "certificate", s.files.Certificate, "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

func (s *Source) content() (*content, error) {
	certificate, err := textfile.Read(s.files.Certificate)
	if err != nil {
		return nil, fmt.Errorf("read server.tls.certificate: %w", err)
	}
	key, err := textfile.Read(s.files.Key)
	if err != nil {
		return nil, fmt.Errorf("read server.tls.key: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("use server.tls.certificate %s with server.tls.key %s: %w; both must be PEM, and the key must belong to the certificate", s.files.Certificate, s.files.Key, err)
	}
	switch now, leaf := time.Now(), pair.Leaf; {
	case now.After(leaf.NotAfter), now.Before(leaf.NotBefore):
		s.logger.Warn("the TLS certificate is not valid at this time, so clients refuse it: renew it, or set the clock", "certificate", s.files.Certificate,
			"from", leaf.NotBefore.UTC().Format(time.RFC3339), "to", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Add(soon).After(leaf.NotAfter):
		s.logger.Warn("the TLS certificate expires soon: renew it", "certificate", s.files.Certificate, "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	c := &content{config: &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		// The cipher suites of TLS 1.2 that HTTP/2 allows; TLS 1.3 has its own.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		NextProtos: []string{"h2", "http/1.1"},
	}}
	if s.files.ClientCA == "" {
		return c, nil
	}
	authorities, err := textfile.Read(s.files.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read server.tls.client_ca: %w", err)
	}
	c.clients = x509.NewCertPool()
	if !c.clients.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("read server.tls.client_ca %s: it has no certificate in PEM form", s.files.ClientCA)
	}
	c.config.ClientCAs, c.config.ClientAuth = c.clients, tls.VerifyClientCertIfGiven
	return c, nil
}

// stamps are the system's information about the files.
type stamps [3]os.FileInfo

func (s *Source) look() (all stamps) {
	for i, path := range []string{s.files.Certificate, s.files.Key, s.files.ClientCA} {
		if path != "" {
			all[i], _ = os.Stat(path) // nil for a missing file
		}
	}
	return all
}

func (s stamps) equal(other stamps) bool {
	for i, a := range s {
		b := other[i]
		if (a == nil) != (b == nil) || a != nil && (!os.SameFile(a, b) || !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size()) {
			return false
		}
	}
	return true
}
