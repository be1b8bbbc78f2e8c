package server

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// Reload applies a new configuration while requests run: tokens, hosts and origins, policy, limits and grants. All of it is in force from
// one moment on: a request that has been read by then goes by the old configuration, and one of which a part is still to come by the new one.
// A changed setting that needs a restart is logged and stays as it is. After an error the old configuration stays in force. Reload is safe
// for concurrent use. c must not change any more.
func (s *Server) Reload(c *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	before := s.core.inForce()
	next, err := s.configure(c, before)
	if err != nil {
		return err
	}
	if err := s.core.catalog.Reconfigure(next.forCatalog()); err != nil {
		return fmt.Errorf("apply the new configuration: %w", err)
	}
	s.writeTimeout.Store(int64(writeTimeout(c)))
	s.logReload(before, next)
	if s.listed { // otherwise logReady will warn
		s.warnUnmatched()
	}
	return nil
}

// logReload logs what a new configuration changes.
func (s *Server) logReload(_, now *configuration) {
	for _, key := range now.NeedRestart(s.started) {
		s.logger.Warn("a changed setting needs a restart", "key", key)
	}
	s.logger.Info("configuration reloaded", "tools", len(s.core.catalog.Table().Tools()))
	s.logAuth(now)
}

// logAuth logs who is let in, with a warning if that is everybody or nobody.
func (s *Server) logAuth(c *configuration) {
	switch {
	case c.auth.Open():
		s.logger.Warn("auth is off: everybody who reaches the address may call every tool; set auth.tokens, or auth.required to refuse instead",
			"address", s.Addr().String())
	case len(c.Auth.Tokens) == 0:
		s.logger.Warn("auth.required is set and there is no token: every call is refused")
	default:
		s.logger.Info("auth is on", "tokens", len(c.Auth.Tokens))
	}
	if c.auth.Open() && isOpenToPages(c.Config) {
		s.logger.Warn("auth is off and server.cors_origins has \"*\": every web page that somebody visits who reaches the address may call every tool",
			"address", s.Addr().String())
	}
}
