package session

import (
	"context"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
)

// tell is called when the tools have changed.
func (s *stdio) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// edition returns the present edition of the client's list.
func (s *stdio) edition() uint64 { return s.set.View(s.namespace, s.principal).Edition() }

// notify notifies the client of changes until the session ends.
func (s *stdio) notify() {
	told := s.edition() // a client that begins with initialize has this list or an older one
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.changed:
		}
		edition := s.edition()
		if edition != told {
			// No client expects a notification before the answer to initialize. After that answer, the client asks for the list anyway.
			if told = edition; s.greeted.Load() {
				s.write(rpc.AppendListChanged(nil, nil))
			}
		}
		for _, p := range s.stale(edition) {
			if p.ctx.Err() == nil {
				s.write(rpc.AppendListChanged(nil, p.request.ID))
			}
		}
		pause := time.NewTimer(rpc.Breather)
		select {
		case <-pause.C:
		case <-s.ctx.Done():
			pause.Stop()
			return
		}
	}
}

// A subscription is the state of one subscriptions/listen.
type subscription struct {
	wanted  bool   // the client asked for changes
	edition uint64 // edition of the list that the client was last notified of
}

// stale returns the subscriptions that know another edition of the list, and marks them as notified.
func (s *stdio) stale(edition uint64) (stale []*reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, known := range s.listening {
		if known.wanted && known.edition != edition {
			s.listening[p] = subscription{true, edition}
			stale = append(stale, p)
		}
	}
	return stale
}

// subscribe adds a subscription, or changes it. It reports false if there are too many.
func (s *stdio) subscribe(p *reply, to subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.listening[p]; !known && len(s.listening) >= maxSubscriptions {
		return false
	}
	s.listening[p] = to
	return true
}

// Listen answers subscriptions/listen: first it acknowledges, and at the end it says that nothing more will come.
func (p *reply) Listen(ctx context.Context, tools bool) protocol.Answer {
	s := p.stdio
	if !s.subscribe(p, subscription{}) { // no notification may come before the acknowledgement
		return p.request.Refuse(&rpc.Fault{Code: rpc.CodeInternal, Message: "Too many subscriptions are open"})
	}
	edition := s.edition()
	s.write(rpc.AppendAcknowledged(nil, p.request.ID, tools))
	s.subscribe(p, subscription{tools, edition})
	s.tell() // there may have been a change since the subscription
	<-ctx.Done()
	s.mu.Lock()
	delete(s.listening, p)
	s.mu.Unlock()
	return protocol.Answer{Text: rpc.AppendUnsubscribed(nil, p.request.ID)}
}
