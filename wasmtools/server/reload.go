package server

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// Reload applies a new configuration while requests run: tokens, hosts and origins, policy, limits and grants. A changed setting that needs a restart is
// logged and stays as it is. After an error the old configuration stays in force. Reload is safe for concurrent use. c must not
// change any more.
func (s *Server) Reload(c *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	// All that can be refused is checked before anything changes, so that nothing is applied by halves.
	if _, err := newAuth(c); err != nil {
		return err
	}
	access, err := s.access(c)
	if err != nil {
		return err
	}
	grants, err := s.core.broker.Grants(c)
	if err != nil {
		return fmt.Errorf("apply the new grants: %w", err)
	}
	// Whoever is kept out from now on has nothing of what is granted or switched on; everybody is let in after the rest only.
	closed := c.Auth.Required || len(c.Auth.Tokens) > 0
	if closed {
		if err := s.setAuth(c); err != nil {
			return err
		}
	}
	if err := s.core.catalog.Reconfigure(c.LimitsFor, grants, policy(c)); err != nil {
		return fmt.Errorf("apply the new limits, grants and switches: %w", err)
	}
	if !closed {
		if err := s.setAuth(c); err != nil {
			return err
		}
	}
	s.web.SetAccess(access)
	s.writeTimeout.Store(int64(writeTimeout(c)))
	for _, key := range c.NeedRestart(s.started) {
		s.logger.Warn("a changed setting needs a restart", "key", key)
	}
	s.logger.Info("configuration reloaded", "tools", len(s.core.catalog.Table().Tools()))
	s.logAuth(c)
	s.current = c
	if s.listed { // otherwise logReady will warn
		s.warnUnmatched()
	}
	return nil
}

// setAuth applies the tokens of a configuration.
func (s *Server) setAuth(c *config.Config) error {
	if c.Auth.Required { // before the tokens, since a moment without any would let everybody in
		s.auth.SetRequired(true)
	}
	if err := s.auth.SetTokens(c.Auth.Tokens); err != nil {
		return fmt.Errorf("apply the new tokens: %w", err)
	}
	s.auth.SetRequired(c.Auth.Required)
	return nil
}

func newAuth(c *config.Config) (*auth.BearerTokenAuth, error) {
	a, err := auth.NewBearerTokenAuth(c.Auth.Tokens)
	if err != nil {
		return nil, fmt.Errorf("apply the tokens: %w", err)
	}
	a.SetRequired(c.Auth.Required)
	return a, nil
}

// logAuth logs who is let in, with a warning if that is everybody or nobody.
func (s *Server) logAuth(c *config.Config) {
	switch {
	case s.auth.Open():
		s.logger.Warn("auth is off: everybody who reaches the address may call every tool; set auth.tokens, or auth.required to refuse instead",
			"address", s.Addr().String())
	case len(c.Auth.Tokens) == 0:
		s.logger.Warn("auth.required is set and there is no token: every call is refused")
	default:
		s.logger.Info("auth is on", "tokens", len(c.Auth.Tokens))
	}
	if s.auth.Open() && isOpenToPages(c) {
		s.logger.Warn("auth is off and server.cors_origins has \"*\": every web page that somebody visits who reaches the address may call every tool",
			"address", s.Addr().String())
	}
}
