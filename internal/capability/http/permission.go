package http

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/redact"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/tlsfiles"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// These are the bounds of a grant that names no bounds.
const (
	DefaultRequests      = 32
	DefaultRequestBytes  = 1 << 20
	DefaultResponseBytes = 4 << 20
	DefaultTimeout       = 30 * time.Second
)

// MaxRedirects is how many redirects a grant may allow.
const MaxRedirects = 10

// Secrets has the values for the headers of a grant. It is safe for concurrent use.
type Secrets interface {
	// Secret returns the current value of a secret. The error may name the secret, but must not contain its value.
	Secret(name string) (string, error)
	// Own returns the current value of a caller's own secret, or false if the caller has none. Then no other value is used.
	Own(name string, of personal.ID) (string, bool)
	// RedactorsOf returns redactors for the current and former values of these secrets in a caller's call. A name that ends in [secret.OfPrincipal]
	// means the caller's own secret.
	RedactorsOf(id personal.ID, names secret.Names) redact.Chain
}

// A Rule is the part of one grant in the configuration that concerns requests.
type Rule struct {
	// Granted are patterns of [reach.ParsePattern].
	Granted []string
	// Private are address ranges that may be reached although they are not on the public internet. No range may contain all addresses.
	Private []netip.Prefix
	// Redirects is how many redirects are followed for one request, at most MaxRedirects. With 0, the tool gets the redirect as the answer.
	Redirects int
	// Headers are set by the host. They are keyed by URL pattern, then by name. "${secret:name}" in a value is replaced by a secret.
	Headers map[string]map[string]string
	// CA is the path of a PEM file with certificates of authorities that are trusted in addition to the system's. It may be empty.
	CA string
	// Requests is how many requests the tool may send during a client's call, including nested calls and redirects. 0 means DefaultRequests.
	Requests int
	// RequestBytes and ResponseBytes bound the bodies of a request and, decompressed, of its answer. 0 means their defaults.
	RequestBytes, ResponseBytes int64
	// Traceparent is whether requests say which trace they are part of, if it is recorded.
	Traceparent bool
	// Timeout is how long a request may take with all its redirects. 0 means DefaultTimeout. A request ends with its call in any case.
	Timeout time.Duration
}

// Options are the settings of a Permission.
type Options struct {
	// Secrets has the secrets that headers name. It may be nil if they name none.
	Secrets Secrets
	// Network looks up names and dials. Nil means the system's.
	Network Network
	// Connections counts the connections of all grants. If nil, they are not counted.
	Connections *Connections
	// Logger gets a line if a caller lacks a secret of its own. Nil discards.
	Logger *slog.Logger
	// Injected knows what all grants put into requests. If nil, no other grant injects anything.
	Injected *Injected
}

// A Permission says which requests a tool may send. It is safe for concurrent use, and needs no Close, since connections belong to calls and end with
// them.
type Permission struct {
	needed  []reach.Pattern
	rules   []*rule
	secrets []string     // the names of all secrets in headers, sorted
	found   secret.Names // the same names, in the form that redactors need
	own     bool         // some of the secrets are each caller's own
	options Options
}

// A rule is a Rule that has been read.
type rule struct {
	Rule
	granted []reach.Pattern
	headers []header
	ca      [sha256.Size]byte // digest of the CA file, since many tools may have the same
	dialer  *dialer
}

// New returns the Permission of a tool. needed are the patterns that the tool declares. Exactly one rule applies to a request, the last one that
// grants its URL: private addresses, headers and authorities of other rules are ignored.
func New(needed []string, rules []Rule, o Options) (*Permission, error) {
	g := &Permission{options: o}
	var err error
	if g.needed, err = parsePatterns(needed); err != nil {
		return nil, fmt.Errorf("needs: http: %w", err)
	}
	for _, one := range rules {
		r, err := newRule(one, o)
		if err != nil {
			return nil, err
		}
		g.rules = append(g.rules, r)
		g.secrets = append(g.secrets, secretNames(r.headers)...)
	}
	slices.Sort(g.secrets)
	g.secrets = slices.Compact(g.secrets)
	g.own = slices.ContainsFunc(g.secrets, isOwn)
	g.found = secret.NamesOf(g.secrets...)
	return g, nil
}

// isOwn reports whether a name means a secret of each caller's own.
func isOwn(name string) bool { return strings.HasSuffix(name, secret.OfPrincipal) }

// Check returns an error if a rule is not valid. The error names the key of the configuration, and is for the operator.
func Check(r Rule) error {
	_, err := newRule(r, Options{Secrets: anySecrets{}})
	return err
}

// anySecrets are placeholders for the secrets while a rule is only checked.
type anySecrets struct{}

func (anySecrets) Secret(string) (string, error)                      { return "", errors.New("there are no secrets") }
func (anySecrets) Own(string, personal.ID) (string, bool)             { return "", false }
func (anySecrets) RedactorsOf(personal.ID, secret.Names) redact.Chain { return redact.Chain{} }

func newRule(from Rule, o Options) (*rule, error) {
	r := &rule{Rule: from}
	r.Requests = withDefault(r.Requests, DefaultRequests)
	r.RequestBytes = withDefault(r.RequestBytes, DefaultRequestBytes)
	r.ResponseBytes = withDefault(r.ResponseBytes, DefaultResponseBytes)
	r.Timeout = withDefault(r.Timeout, DefaultTimeout)
	var err error
	if r.granted, err = parsePatterns(r.Granted); err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	if r.Redirects < 0 || r.Redirects > MaxRedirects {
		return nil, fmt.Errorf("redirects: %d is out of range: 0 to %d is allowed", r.Redirects, MaxRedirects)
	}
	const most = 1 << 30 // bytes; a body is held in memory
	if r.Requests < 0 || r.RequestBytes < 0 || r.RequestBytes > most || r.ResponseBytes < 0 || r.ResponseBytes > most || r.Timeout < 0 {
		return nil, errors.New("http_requests, http_request_bytes, http_response_bytes or http_timeout is below 0 or above 1GiB")
	}
	for _, p := range r.Private {
		if !p.IsValid() || p.Bits() == 0 || p.Addr().Is4In6() {
			return nil, fmt.Errorf("private: %s can't be granted: write IPv4 ranges as IPv4, and don't grant all addresses", p)
		}
	}
	if r.headers, err = parseHeaders(r.Headers, r.granted); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	if len(secretNames(r.headers)) > 0 && o.Secrets == nil {
		return nil, errors.New("headers: ${secret:...} needs a secret, but there are none")
	}
	roots, err := r.readCA()
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	r.dialer = newDialer(o, roots, r.Private)
	return r, nil
}

// rule returns the rule for a request to t, or nil if none grants it.
func (g *Permission) rule(t reach.Target) *rule {
	for _, r := range slices.Backward(g.rules) {
		if reach.Allowed(g.needed, r.granted, t) {
			return r
		}
	}
	return nil
}

// maxRequestBytes is the largest body that any rule allows.
func (g *Permission) maxRequestBytes() (most int64) {
	for _, r := range g.rules {
		most = max(most, r.RequestBytes)
	}
	return most
}

// granted returns the patterns of all rules.
func (g *Permission) granted() (all []reach.Pattern) {
	for _, r := range g.rules {
		all = append(all, r.granted...)
	}
	return all
}

func withDefault[N int | int64 | time.Duration](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// readCA returns the trusted authorities; nil means the system's.
func (r *rule) readCA() (roots *x509.CertPool, err error) {
	if r.CA == "" {
		return nil, nil
	}
	roots, r.ca, err = tlsfiles.Authorities(r.CA, true)
	return roots, err
}

// Equal reports whether other is a *Permission that allows the same, so that g can be used in its place.
func (g *Permission) Equal(other any) bool {
	o, ok := other.(*Permission)
	if !ok || g == nil || o == nil {
		return ok && g == o
	}
	return g.options.equal(o.options) && slices.Equal(g.needed, o.needed) && slices.EqualFunc(g.rules, o.rules, func(a, b *rule) bool {
		return a.ca == b.ca && reflect.DeepEqual(a.Rule, b.Rule)
	})
}

// equal reports whether the secrets of both options are the same. Secrets with a method Equal(any) bool are compared with it.
func (o Options) equal(other Options) bool {
	if s, ok := o.Secrets.(interface{ Equal(other any) bool }); ok {
		if !s.Equal(other.Secrets) {
			return false
		}
		o.Secrets, other.Secrets = nil, nil
	}
	return o == other
}

var (
	_ hostcall.Filter = (*Permission)(nil)
	_ hostcall.Screen = (*Permission)(nil)
)

// Screen also removes these secrets from what other tools tell the tool, since it uses them without seeing them.
func (g *Permission) Screen(b []byte, who fmt.Stringer) []byte { return g.Filter(b, who) }

// Filter removes the secrets in headers from what the tool says. Of callers' own secrets, it removes those of the current caller.
func (g *Permission) Filter(b []byte, who fmt.Stringer) []byte {
	if len(g.secrets) == 0 {
		return b
	}
	var id personal.ID
	if of, ok := who.(interface{ Who() *wasmtools.Principal }); ok && g.own {
		id, _ = personal.Of(of.Who()) // a caller without an identity has no secrets
	}
	return g.options.Secrets.RedactorsOf(id, g.found).Bytes(b)
}

// Secrets returns the sorted names of the secrets in the grant's headers.
func (g *Permission) Secrets() []string { return slices.Clone(g.secrets) }

func parsePatterns(list []string) (patterns []reach.Pattern, err error) {
	for _, s := range list {
		p, err := reach.ParsePattern(s)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// list joins patterns for a message.
func list(patterns []reach.Pattern) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	const most = 8
	var words []string
	for _, p := range patterns[:min(len(patterns), most)] {
		words = append(words, p.String())
	}
	if len(patterns) > most {
		words = append(words, fmt.Sprintf("%d more", len(patterns)-most))
	}
	return strings.Join(words, ", ")
}
