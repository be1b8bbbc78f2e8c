package server

import (
	"context"
	"time"
)

// syncedEvery is how often to look whether the catalog is in step with the files after a reload.
const syncedEvery = 20 * time.Millisecond

// warnUnmatched has the configuration in force compared with the tools, now or once the catalog is in step: a reload may let tools in a
// moment later, as a higher limit of memory does. s.reload is held.
func (s *Server) warnUnmatched() {
	if s.service.Catalog.Synced() {
		s.service.WarnUnmatched()
		return
	}
	select {
	case s.unmatched <- struct{}{}:
	default: // it will be
	}
}

// warnOnceSynced does what warnUnmatched leaves for later.
func (s *Server) warnOnceSynced(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.unmatched:
		}
		for ticker := time.NewTicker(syncedEvery); ; {
			s.reload.Lock()
			if s.service.Catalog.Synced() {
				break
			}
			s.reload.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		select {
		case <-s.unmatched: // what another reload has left meanwhile
		default:
		}
		s.service.WarnUnmatched()
		s.reload.Unlock()
	}
}
