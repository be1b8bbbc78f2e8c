package core

import (
	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
)

// newAudit returns the audit of a service. It is kept in the service's state, whichever configuration has opened the state.
func newAudit(s *Service) *audit.Log {
	return audit.New(audit.Options{
		Space: func() state.Space {
			if store := s.State.Store(); store != nil {
				return store.Space(audit.Space)
			}
			return nil
		},
		Strict: func() bool {
			c := s.InForce()
			return c != nil && c.Audit.Strict
		},
		Clean:  s.clean,
		Kept:   s.Events.AddAudit,
		Logger: s.Logger,
	})
}
