// Package certtest makes keys and certificates for tests.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority issues certificates.
type Authority struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the authority's own certificate.
	PEM []byte
	// Pool contains that certificate.
	Pool *x509.CertPool
}

// NewAuthority returns an authority of this name.
func NewAuthority(tb testing.TB, name string) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, key: NewKey(tb), Pool: x509.NewCertPool()}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		tb.Fatal(err)
	}
	a.Pool.AddCert(a.cert)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return a
}

// NewKey returns a key of ECDSA with P-256.
func NewKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// Issue returns a certificate and its key, as PEM. change, which may be nil, changes the template: a certificate for servers and clients that is
// valid for an hour, for 127.0.0.1 and localhost.
func (a *Authority) Issue(change func(*x509.Certificate)) (certificate, key []byte) {
	a.tb.Helper()
	own := NewKey(a.tb)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(form)
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, a.cert, &own.PublicKey, a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), private(a.tb, own)
}

// private returns a key as PEM.
func private(tb testing.TB, key crypto.Signer) []byte {
	tb.Helper()
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// KeyFiles writes a key and its public half as PEM, acme.key and acme.pub, and returns their paths.
func KeyFiles(tb testing.TB, dir string, key crypto.Signer) (secret, public string) {
	tb.Helper()
	encoded, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return Write(tb, dir, "acme.key", private(tb, key)), Write(tb, dir, "acme.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: encoded}))
}

// Pair is Issue for a client.
func (a *Authority) Pair(change func(*x509.Certificate)) tls.Certificate {
	a.tb.Helper()
	pair, err := tls.X509KeyPair(a.Issue(change))
	if err != nil {
		a.tb.Fatal(err)
	}
	return pair
}

// Write replaces the content of a file as a whole, and returns its path.
func Write(tb testing.TB, dir, name string, text []byte) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
	return path
}
