package server

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/catalog"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A configuration is all that a config.Config decides of requests. It is made whole, beside the one that is in force, and published with
// the generation of the route table that is made for it. Nothing of it changes then.
type configuration struct {
	*config.Config
	grants    *capability.Grants
	auth      *auth.BearerTokenAuth // nil: nobody is asked for a token
	admission *web.Admission        // nil with auth
}

var _ web.Admitter = (*configuration)(nil)

// Admission returns who is let in.
func (c *configuration) Admission() *web.Admission { return c.admission }

// configure makes what a config.Config decides of calls. The secrets are read last, when nothing else can be wrong.
func (k *core) configure(c *config.Config) (*configuration, error) {
	grants, err := k.broker.Grants(c)
	if err != nil {
		return nil, fmt.Errorf("apply the grants: %w", err)
	}
	return &configuration{Config: c, grants: grants}, nil
}

// configure is configure of the core with those who are let in. Whoever is also let in by the configuration before stays who he is.
func (s *Server) configure(c *config.Config, before *configuration) (*configuration, error) {
	tokens, err := tokensOf(c, before)
	if err != nil {
		return nil, fmt.Errorf("apply the tokens: %w", err)
	}
	access, err := s.access(c)
	if err != nil {
		return nil, err
	}
	next, err := s.core.configure(c)
	if err != nil {
		return nil, err
	}
	next.auth, next.admission = tokens, web.NewAdmission(access, auth.Dependency(tokens), s.conns)
	return next, nil
}

func tokensOf(c *config.Config, before *configuration) (*auth.BearerTokenAuth, error) {
	if before != nil {
		return before.auth.Next(c.Auth.Tokens, c.Auth.Required)
	}
	a, err := auth.NewBearerTokenAuth(c.Auth.Tokens)
	if err == nil {
		a.SetRequired(c.Auth.Required)
	}
	return a, err
}

// forCatalog returns what the catalog makes and publishes of it.
func (c *configuration) forCatalog() catalog.Configuration {
	return catalog.Configuration{Limits: c.LimitsFor, Grants: c.grants, Policy: policy(c.Config), Value: c}
}

// policy returns the configuration's policy on which tools start enabled.
func policy(c *config.Config) wasmtools.Policy {
	return wasmtools.Policy{
		Allowlist: c.Tools.Allowlist, Enabled: c.Tools.Enabled, Disabled: c.Tools.Disabled, Reasons: c.Tools.Reasons,
	}
}

// inForce returns the configuration of this moment, or nil before there is one.
func (k *core) inForce() *configuration {
	if k.catalog == nil {
		return nil
	}
	c, _ := k.catalog.Table().Current().Configuration().(*configuration)
	return c
}
