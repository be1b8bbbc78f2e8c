package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/toolsrv/toolsrv/internal/certificate"
	"github.com/toolsrv/toolsrv/internal/claim"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/oidc"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// resourcePath is the path of the document in which a protected resource says who issues tokens for it; the resource's own path follows (RFC 9728).
const resourcePath = "/.well-known/oauth-protected-resource"

// An issued is a verifier that tells clients without a token where to get one.
type issued struct {
	*oidc.Verifier
	public string // server.public_url
}

var _ auth.Challenger = (*issued)(nil)

// ChallengeFor names the document about the resource that the request is for.
func (v *issued) ChallengeFor(r *http.Request) string {
	challenge := fmt.Sprintf("Bearer resource_metadata=%q", v.base(r)+resourcePath+resourceOf(r.URL.Path))
	if scopes := v.Scopes(); len(scopes) > 0 {
		challenge += fmt.Sprintf(", scope=%q", strings.Join(scopes, " "))
	}
	return challenge
}

// resourceOf returns the path of the resource that a path belongs to. For MCP, it is the path as the client typed it. For any other path it
// is "", which stands for REST as a whole.
func resourceOf(path string) string {
	if isMCP(path) {
		return (&url.URL{Path: path}).EscapedPath()
	}
	return ""
}

func isMCP(path string) bool { return path == mcp.Path || strings.HasPrefix(path, mcp.Path+"/") }

// base returns the address at which clients reach the server, without a slash at its end.
func (v *issued) base(r *http.Request) string {
	if strings.Contains(v.public, "://") {
		return strings.TrimSuffix(v.public, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + strings.TrimSuffix(v.public, "/") // the host has been checked, so it is one of the server's own
}

// A resourceDoor tells anybody who issues the tokens that the server accepts.
type resourceDoor struct{ server *Server }

// Policy lets clients without a token ask, and pages of any origin.
func (resourceDoor) Policy() web.Policy { return web.Policy{Open: true, Pages: web.PagesAll} }

// Serve answers with the document about a resource.
func (d resourceDoor) Serve(x *web.Exchange) {
	if !x.Allow(http.MethodGet, http.MethodHead) {
		return
	}
	path := strings.TrimPrefix(x.Request().URL.Path, resourcePath)
	c, _ := x.Generation().Configuration().(*configuration)
	if c == nil || c.issued == nil || path != "" && (!isMCP(path) || !d.server.started.MCP.Enabled) {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound})
		return
	}
	body, err := web.JSON(struct {
		Resource string   `json:"resource"`
		Name     string   `json:"resource_name"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{c.issued.base(x.Request()) + resourceOf(path), c.Title, []string{c.issued.Issuer().URL()}, c.issued.Scopes(), []string{"header"}})
	if err != nil {
		x.Fail(err)
		return
	}
	x.Header().Set("Content-Type", "application/json")
	x.Send(http.StatusOK, body)
}

// issuedOf returns the verifier for a configuration's issuer, or nil. It returns the earlier verifier if nothing about the issuer has changed.
func issuedOf(s *Server, c *config.Config, before *configuration) (*issued, error) {
	o := c.Auth.OIDC
	if o.Issuer == "" {
		return nil, nil
	}
	var issuer *oidc.Issuer
	if before != nil && before.issued != nil {
		if reflect.DeepEqual(before.Auth.OIDC, o) {
			return before.issued, nil
		}
		if known := before.issued.Issuer(); known.URL() == o.Issuer {
			issuer = known
		}
	}
	if issuer == nil {
		issuer = oidc.NewIssuer(o.Issuer, s.logger)
	}
	v, err := oidc.New(issuer, oidc.Options{Audience: o.Audience, Name: o.Name, Rules: rulesOf(o.Rules)})
	if err != nil {
		return nil, fmt.Errorf("apply the table [auth.oidc]: %w", err)
	}
	return &issued{v, s.started.Server.PublicURL}, nil
}

// certificatesOf returns the verifier for a configuration's certificate rules, or nil. It returns the earlier verifier if the rules have not changed.
func certificatesOf(c *config.Config, before *configuration) (*certificate.Verifier, error) {
	if len(c.Auth.Certificates) == 0 {
		return nil, nil
	}
	if before != nil && before.certificates != nil && reflect.DeepEqual(before.Auth.Certificates, c.Auth.Certificates) {
		return before.certificates, nil
	}
	v, err := certificate.New(rulesOf(c.Auth.Certificates), stateOf)
	if err != nil {
		return nil, fmt.Errorf("apply the tables [[auth.certificate]]: %w", err)
	}
	return v, nil
}

// stateOf returns the TLS state of a request as it is now, even if the handshake was hours ago.
func stateOf(r *http.Request) *tls.ConnectionState {
	if conn := connOf(r); conn != nil && conn.tls != nil {
		return conn.tls.now()
	}
	return r.TLS
}

func rulesOf(list []config.ClaimRule) []claim.Rule {
	all := make([]claim.Rule, len(list))
	for i, r := range list {
		all[i] = claim.Rule(r)
	}
	return all
}

// follow starts reading the keys of a configuration's issuer, and stops reading those of the previous issuer. s.reload is held, or no
// other goroutine has s yet.
func follow(s *Server, c *configuration) {
	var next *oidc.Issuer
	if c != nil && c.issued != nil {
		next = c.issued.Issuer()
	}
	if next == s.issuer {
		return
	}
	if s.issuer != nil {
		s.endIssuer()
	}
	if s.issuer = next; next == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		next.Run(ctx)
	}()
	s.endIssuer = func() {
		cancel()
		<-done
	}
}
