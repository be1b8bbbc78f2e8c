// Package oci pushes modules to registries of the Open Container Initiative, and pulls them.
//
// An artifact has one module. This package pushes the same form as wkg and wassette: a configuration of type application/vnd.wasm.config.v0+json and
// one layer of type application/wasm. It can also pull a layer of an older type, or an image with one layer of files, one of which is a .wasm file,
// as hyper-mcp can.
//
// A registry is treated as hostile: everything that it sends is bounded before memory is allocated for it, and nothing is used before its digest was
// verified. A registry can't make a client send credentials elsewhere, except for tokens that are issued over TLS. It can't lead the client from
// HTTPS to HTTP, or into a kind of network that it is not in itself.
package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/tlsfiles"
	"github.com/toolsrv/toolsrv/internal/trickle"
)

// Options say how a registry is reached. The zero value is ready to use.
type Options struct {
	// MaxModule is how many bytes a module may have; 0 is 64 MiB.
	MaxModule int64
	// PlainHTTP makes the client use HTTP. It is also used for a registry on loopback, unless CA is set.
	PlainHTTP bool
	// CA is a PEM file with certificates of authorities that are trusted in addition to the system's. If empty, only the system's are.
	CA string
	// Credentials is a file in the form of docker's config.json. If empty, docker's own file is used, and podman's auth.json.
	Credentials string
	// Trust says whose signatures are accepted: an artifact without one of them is not pulled. If nil, no signature is required.
	Trust *signature.Trust
	// Minimum is the lowest version that an artifact may have, according to its manifest, so that nobody can replay an older signed artifact. If
	// empty, any version is accepted.
	Minimum string
	// Patience is how long an answer may stall; 0 means 30 seconds.
	Patience time.Duration
	// Agent is the client's User-Agent, such as "toolsrv/1.2.3".
	Agent string
	// Network looks up names and dials. Nil means the system's, with the proxies of the environment.
	Network Network
}

const (
	defaultMaxModule = 64 << 20 // bytes
	maxManifest      = 1 << 20  // bytes of a manifest
	maxPages         = 100      // pages of a list
	maxPage          = 4 << 20  // bytes of a page of a list
	maxNames         = 10_000   // names in a list
)

// A Registry is a client of one registry. It is safe for concurrent use.
type Registry struct {
	host      string
	plain     bool
	maxModule int64
	transport *http.Transport
	found     func() bool // reports whether there were credentials
	trust     *signature.Trust
	minimum   string

	mu      sync.Mutex
	clients map[string]*auth.Client // clients by repository, since each repository may have its own credentials
	newest  func(repository string) *auth.Client
}

// Open returns a client of a registry, without sending any request yet. The caller closes it.
func Open(host string, o Options) (*Registry, error) {
	if err := (registry.Reference{Registry: host}).ValidateRegistry(); err != nil {
		return nil, fmt.Errorf("%.100q is not the name of a registry: write one such as ghcr.io or registry.example.com:5000", host)
	}
	var roots *x509.CertPool
	if o.CA != "" {
		var err error
		if roots, _, err = tlsfiles.Authorities(o.CA, true); err != nil {
			return nil, err
		}
	}
	r := &Registry{host: host, plain: o.PlainHTTP || o.CA == "" && isLoopback(host), maxModule: o.MaxModule, trust: o.Trust, minimum: o.Minimum}
	if r.maxModule <= 0 {
		r.maxModule = defaultMaxModule
	}
	stall := o.Patience
	if stall <= 0 {
		stall = trickle.Stall
	}
	keys := &keyring{file: o.Credentials}
	if err := keys.check(); err != nil {
		return nil, err
	}
	dial := newDialer(registry.Reference{Registry: host}.Host(), o.Network)
	r.transport = &http.Transport{
		Proxy:                  dial.proxy,
		DialContext:            dial.dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		ResponseHeaderTimeout:  stall,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConns:           4,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small answer must not become a large one
	}
	guarded := &http.Client{Transport: &guard{base: r.transport, plain: r.plain, own: registry.Reference{Registry: host}.Host(), stall: stall}, CheckRedirect: checkRedirect}
	r.found, r.clients = keys.found.Load, map[string]*auth.Client{}
	r.newest = func(repository string) *auth.Client {
		c := &auth.Client{Client: guarded, Cache: auth.NewCache(), Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			return keys.credential(ctx, host, repository)
		}}
		if o.Agent != "" {
			c.SetUserAgent(o.Agent)
		}
		return c
	}
	return r, nil
}

// maxClients is the number of repositories for which tokens are kept.
const maxClients = 100

// client returns the client for a repository, or for the registry itself if that is "".
func (r *Registry) client(repository string) *auth.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[repository]
	if c == nil {
		if len(r.clients) >= maxClients {
			clear(r.clients)
		}
		c = r.newest(repository)
		r.clients[repository] = c
	}
	return c
}

// Close closes idle connections.
func (r *Registry) Close() { r.transport.CloseIdleConnections() }

// isLoopback reports whether a host, with a port or without, is the machine itself.
func isLoopback(host string) bool {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	name = strings.Trim(name, "[]")
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// repository returns the client of one of the registry's repositories.
func (r *Registry) repository(ref Reference) *remote.Repository {
	return &remote.Repository{
		Client:               r.client(ref.Repository),
		Reference:            registry.Reference{Registry: r.host, Repository: ref.Repository},
		PlainHTTP:            r.plain,
		MaxMetadataBytes:     maxPage + 1, // the guard reports a longer page first
		TagListMaxPages:      maxPages,
		ReferrerListMaxPages: maxPages,
		SkipReferrersGC:      true, // if a tag holds the list of referrers, many registries can't delete the previous list
	}
}

// Tags returns the tags of a repository.
func (r *Registry) Tags(ctx context.Context, ref Reference) ([]string, error) {
	var tags []string
	err := r.repository(ref).Tags(ctx, "", func(page []string) error { return take(&tags, page, "tags") })
	if err != nil {
		ref.Tag, ref.Digest = "", ""
		return nil, r.explain(ref.String(), err)
	}
	return tags, nil
}

// Repositories returns the names of the registry's repositories. Many registries list none, such as ghcr.io.
func (r *Registry) Repositories(ctx context.Context) ([]string, error) {
	var names []string
	asked := &remote.Registry{RepositoryOptions: remote.RepositoryOptions{
		Client: r.client(""), Reference: registry.Reference{Registry: r.host}, PlainHTTP: r.plain, MaxMetadataBytes: maxPage + 1,
	}}
	pages := 0
	err := asked.Repositories(ctx, "", func(page []string) error {
		if pages++; pages > maxPages {
			return fmt.Errorf("the list has more than %d pages", maxPages)
		}
		return take(&names, page, "repositories")
	})
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed) {
		return nil, fmt.Errorf("%s lists no repositories: ask for the tags of one", r.host)
	}
	if err != nil {
		return nil, r.explain(r.host, err)
	}
	return names, nil
}

// take adds a page to a list.
func take(to *[]string, page []string, what string) error {
	if len(*to)+len(page) > maxNames {
		return fmt.Errorf("the list has more than %d %s", maxNames, what)
	}
	for _, name := range page {
		if len(name) <= maxName {
			*to = append(*to, name)
		}
	}
	return nil
}

// explain returns an error that says what is wrong, where, and what to do. Text from the registry is escaped and truncated.
func (r *Registry) explain(what string, err error) error {
	status := 0
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		status = answer.StatusCode
	}
	unknown, isUnknown := errors.AsType[*net.DNSError](err)
	dial, isDial := errors.AsType[*net.OpError](err)
	_, isForeign := errors.AsType[x509.UnknownAuthorityError](err)
	bad, isBad := errors.AsType[*tls.CertificateVerificationError](err)
	lacking, isLacking := errors.AsType[*credentialError](err)
	noCredentials := errors.Is(err, auth.ErrBasicCredentialNotFound)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrSlow):
		return fmt.Errorf("%s: %w", what, err)
	case isUnknown && unknown.IsNotFound:
		return fmt.Errorf("%s: there is no host %s: check the name", what, text.Short(unknown.Name))
	case isUnknown:
		return fmt.Errorf("%s: the address of %s can't be looked up at the moment: check the network, or try again", what, text.Short(unknown.Name))
	case isDial && dial.Op == "dial" && dial.Addr != nil && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: nobody is listening at %s: check the port, and whether the registry is running", what, dial.Addr)
	case isLacking:
		return &clipped{what: what, err: lacking}
	case isForeign:
		return fmt.Errorf("%s: the certificate of %s is from an authority that is not trusted here: name the authority's file (ca)", what, r.asked(err))
	case isBad:
		return fmt.Errorf("%s: the certificate of %s is not valid: %w", what, r.asked(err), bad.Err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s: %s answers without TLS: if it may, ask it over HTTP (plain_http)", what, r.asked(err))
	case errors.Is(err, errdef.ErrNotFound) || status == http.StatusNotFound:
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case noCredentials, status == http.StatusUnauthorized && !r.found():
		return fmt.Errorf("%s: %s requires credentials, and there are none for it: log in with docker or podman, or name a file that has them", what, r.host)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %s rejects the credentials that were found: log in again", what, r.host)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s: %s does not allow it with these credentials", what, r.host)
	case status == http.StatusBadRequest && r.plain:
		return fmt.Errorf("%s: %s answers 400 when it is asked over HTTP: if it wants TLS, name the authority of its certificate (ca), and leave plain_http out", what, r.host)
	}
	return &clipped{what: what, err: err}
}

// asked returns the host that an error is about: the registry, or the target of a redirect.
func (r *Registry) asked(err error) string {
	if at, ok := errors.AsType[*url.Error](err); ok {
		if u, err := url.Parse(at.URL); err == nil && u.Host != "" {
			return text.Short(u.Host)
		}
	}
	return r.host
}

// ErrNotFound means that a registry has no such artifact.
var ErrNotFound = errors.New("the registry has nothing with this name, or doesn't show it to you: toolsrv search lists what it has")

// clipped is an error with text from a registry.
type clipped struct {
	what string
	err  error
}

func (e *clipped) Error() string { return e.what + ": " + text.ClipEscaped(e.err.Error(), 400) }
func (e *clipped) Unwrap() error { return e.err }
