package server

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// Reload takes up a new configuration while requests run: tokens, policy and limits. What needs a restart is
// reported by a warning and stays as it is. An error leaves the old configuration in force. It is safe for
// concurrent use. c must not change any more.
func (s *Server) Reload(c *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	// The new tokens are checked before anything changes, so that nothing is left half-way.
	if _, err := newAuth(c); err != nil {
		return err
	}
	if err := s.catalog.Reconfigure(c.LimitsFor, policy(c)); err != nil {
		return fmt.Errorf("take up the new configuration: %w", err)
	}
	if c.Auth.Required { // before the tokens, lest a moment without any lets everybody in
		s.auth.SetRequired(true)
	}
	if err := s.auth.SetTokens(c.Auth.Tokens); err != nil {
		return fmt.Errorf("take up the new tokens: %w", err)
	}
	s.auth.SetRequired(c.Auth.Required)
	s.writeTimeout.Store(int64(writeTimeout(c)))
	for _, key := range c.NeedRestart(s.started) {
		s.logger.Warn("a changed setting needs a restart", "key", key)
	}
	s.logger.Info("configuration taken up", "tools", len(s.catalog.Table().Tools()))
	s.logAuth(c)
	s.current = c
	switch {
	case !s.listed: // it is warned of what is unmatched once it is
	case s.catalog.Settled():
		s.warnUnmatched(c)
	default:
		select {
		case s.unmatched <- struct{}{}:
		default:
		}
	}
	return nil
}

func newAuth(c *config.Config) (*auth.BearerTokenAuth, error) {
	a, err := auth.NewBearerTokenAuth(c.Auth.Tokens)
	if err != nil {
		return nil, fmt.Errorf("take up the tokens: %w", err)
	}
	a.SetRequired(c.Auth.Required)
	return a, nil
}

// logAuth says who is let in; loudly, where it is everybody.
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
}
