// Package certificate identifies callers by their client certificates.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"time"

	"github.com/toolsrv/toolsrv/internal/claim"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// Origin is the origin of principals who are identified by a certificate.
const Origin = "certificate"

// Claims are the kinds of subject alternative names that a certificate can have.
func Claims() []string { return []string{"dns", "uri", "email", "ip"} }

// A Verifier identifies callers by the subject alternative names of their certificates. It never changes.
type Verifier struct {
	rules *claim.Rules
	state func(*http.Request) *tls.ConnectionState
}

var _ auth.Verifier = (*Verifier)(nil)

// New returns a Verifier, or an error that says what is wrong with the rules. state returns the TLS state of a request's connection, which has
// verified chains only if the client's certificate is valid at the moment; it is nil for a connection without TLS.
func New(rules []claim.Rule, state func(*http.Request) *tls.ConnectionState) (*Verifier, error) {
	all, err := claim.New(Origin, rules)
	if err != nil {
		return nil, err
	}
	return &Verifier{all, state}, nil
}

// Verify returns the principal of the client's certificate. The principal's name is the first alternative name that a rule matches, and its realm is
// the kind of that name. Verify returns nil if no rule matches, or there is no certificate.
func (v *Verifier) Verify(r *http.Request) (*wasmtools.Principal, error) {
	state := v.state(r)
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := state.PeerCertificates[0]
	if now := time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return nil, nil
	}
	values := func(kind string) []string { return names(leaf, kind) }
	name, kind := v.rules.First(values)
	if name == "" {
		return nil, nil
	}
	return v.rules.Principal(name, kind, values) // a DNS name can look like somebody's e-mail address
}

// names returns the alternative names of a kind.
func names(c *x509.Certificate, kind string) (all []string) {
	switch kind {
	case "dns":
		return c.DNSNames
	case "email":
		return c.EmailAddresses
	case "uri":
		for _, u := range c.URIs {
			all = append(all, u.String())
		}
	case "ip":
		for _, ip := range c.IPAddresses {
			all = append(all, ip.String())
		}
	}
	return all
}

// Scheme returns the scheme of mutual TLS.
func (v *Verifier) Scheme() auth.Scheme {
	return auth.Scheme{Name: "certificate", Description: json.RawMessage(`{"type":"mutualTLS"}`), Refusal: "Show a client certificate that matches one of the server's rules"}
}

// Open returns false: nobody is let in without a certificate.
func (v *Verifier) Open() bool { return false }

// Version always returns 0, since nothing about a Verifier changes: for other rules there is another Verifier, and Verify asks for the TLS state of
// each request.
func (v *Verifier) Version() uint64 { return 0 }

// Subscribe does nothing, since Open never changes.
func (v *Verifier) Subscribe(func()) func() { return func() {} }
