package server

import (
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/toolsrv/toolsrv/internal/certificate"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// A configuration is the service's configuration together with the rules on who is let in. It is published as one value.
type configuration struct {
	*core.Configuration
	tokens *auth.BearerTokenAuth
	named  *tokens.Verifier // verifies tokens with a name
	issued *issued          // verifies tokens of an issuer; nil if there is no issuer
	// certificates verifies client certificates; nil if there are no rules for certificates.
	certificates *certificate.Verifier
	auth         *auth.Authenticator // asks the verifiers above, and then the program's own
	admission    *web.Admission
	conns        *connections
}

var (
	_ core.Value   = (*configuration)(nil)
	_ web.Admitter = (*configuration)(nil)
)

// Admission returns the rules on who is let in.
func (c *configuration) Admission() *web.Admission { return c.admission }

// Hurry gives up reading a body that arrives slowly.
func (c *configuration) Hurry() bool { return c.conns.hurry() }

// configure makes a configuration from c. If before is nil, it uses what the service has already made from c. If the call is only a check, the
// result must not be published. A caller whom the previous configuration lets in, too, keeps its principal. Secrets are read last, when nothing else
// can be wrong.
func (s *Server) configure(c *config.Config, before *configuration, looks bool) (*configuration, error) {
	plain, err := tokensOf(c, before)
	if err != nil {
		return nil, fmt.Errorf("apply the tokens: %w", err)
	}
	access, err := s.access(c)
	if err != nil {
		return nil, err
	}
	var known *tokens.Verifier
	if before != nil {
		known = before.named
	}
	named, err := tokens.NewVerifier(s.service.Tokens, c.Auth.Declared, access.Client, known)
	if err != nil {
		return nil, fmt.Errorf("apply the tables [[auth.token]]: %w", err)
	}
	issued, err := issuedOf(s, c, before)
	if err != nil {
		return nil, err
	}
	certificates, err := certificatesOf(c, before)
	if err != nil {
		return nil, err
	}
	of := s.service.InForce()
	if before != nil {
		make := s.service.Configure
		if looks {
			make = s.service.Look
		}
		if of, err = make(c); err != nil {
			return nil, err
		}
	}
	verifiers := []auth.Verifier{plain, named}
	if issued != nil {
		verifiers = append(verifiers, issued)
	}
	if certificates != nil {
		verifiers = append(verifiers, certificates)
	}
	who := auth.Dependency(append(verifiers, s.verifiers...)...)
	return &configuration{of, plain, named, issued, certificates, who, web.NewAdmission(access, who, s.conns), s.conns}, nil
}

func tokensOf(c *config.Config, before *configuration) (*auth.BearerTokenAuth, error) {
	if before != nil {
		return before.tokens.Next(c.Auth.Tokens, c.Auth.Required)
	}
	a, err := auth.NewBearerTokenAuth(c.Auth.Tokens)
	if err == nil {
		a.SetRequired(c.Auth.Required)
	}
	return a, err
}

// inForce returns the current configuration.
func (s *Server) inForce() *configuration { return s.under(nil) }

// under returns the configuration of a generation; nil means the current one.
func (s *Server) under(g *wasmtools.Generation) *configuration {
	if g == nil {
		g = s.service.Table.Current()
	}
	c, _ := g.Configuration().(*configuration)
	return c
}

// access returns which hosts and origins a configuration allows, given the addresses that the server listens on. The allowed hosts and
// origins include those of the public address with which the server was started.
func (s *Server) access(c *config.Config) (*web.Access, error) {
	o := web.AccessOptions{Hosts: c.Server.Hosts, Origins: c.Server.CORSOrigins, Loopback: !slices.ContainsFunc(s.listeners, isOpen),
		Proxies: c.Server.TrustedProxies, ProxyHeader: c.Server.ProxyHeader}
	if public, err := url.Parse(s.started.Server.PublicURL); err == nil && public.Host != "" {
		if o.Loopback || len(o.Hosts) > 0 {
			o.Hosts = append(slices.Clone(o.Hosts), public.Hostname())
		}
		o.Origins = append(slices.Clone(o.Origins), public.Scheme+"://"+public.Host)
	}
	a, err := web.NewAccess(o)
	if err != nil {
		return nil, fmt.Errorf("apply server.hosts and server.cors_origins: %w", err)
	}
	return a, nil
}

// isOpen reports whether clients on other machines may be able to reach a listener.
func isOpen(l net.Listener) bool {
	if l.Addr().Network() == "unix" {
		return false
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}

// isOpenToPages reports whether a page of any origin may make requests.
func isOpenToPages(c *config.Config) bool { return slices.Contains(c.Server.CORSOrigins, "*") }
