package session

import (
	"time"

	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
)

// tell hears that the tools have changed.
func (s *stdio) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// edition returns that of the client's list at this moment.
func (s *stdio) edition() uint64 { return s.set.View(s.namespace, s.principal).Edition() }

// notify tells the client of changes until the session ends.
func (s *stdio) notify() {
	told := s.edition() // what a client that begins with initialize may have, at the latest
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.changed:
		}
		edition := s.edition()
		if edition != told {
			if told = edition; s.conversation.agreed() != "" {
				s.write(rpc.AppendListChanged(nil, nil))
			}
		}
		for _, r := range s.stale(edition) {
			if !r.silent.Load() {
				s.write(rpc.AppendListChanged(nil, r.ID))
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

// A subscription is what a client that listens was told.
type subscription struct {
	wanted  bool   // it wants to know of changes
	edition uint64 // of the list that it knows of
}

// stale returns the subscriptions whose clients know of another list than that of an edition. They are counted as told.
func (s *stdio) stale(edition uint64) (stale []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, known := range s.listening {
		if known.wanted && known.edition != edition {
			s.listening[r] = subscription{true, edition}
			stale = append(stale, r)
		}
	}
	return stale
}

// subscribe adds a subscription, or changes it. It reports false if there are too many.
func (s *stdio) subscribe(r *request, to subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.listening[r]; !known && len(s.listening) >= maxSubscriptions {
		return false
	}
	s.listening[r] = to
	return true
}

// listen answers subscriptions/listen: first that it is heard, and in the end that nothing more will come.
func (s *stdio) listen(r *request) {
	wanted, wrong := r.WantsTools()
	if wrong != nil {
		r.refuse(wrong)
		return
	}
	if !s.subscribe(r, subscription{}) { // it must be told of nothing before it is acknowledged
		r.refuse(&rpc.Fault{Code: rpc.CodeInternal, Message: "Too many subscriptions are open"})
		return
	}
	edition := s.edition()
	s.write(rpc.AppendAcknowledged(nil, r.ID, wanted))
	s.subscribe(r, subscription{wanted, edition})
	s.tell() // of a change since then
	<-r.ctx.Done()
	s.mu.Lock()
	delete(s.listening, r)
	s.mu.Unlock()
	r.finish(answer{text: rpc.AppendUnsubscribed(nil, r.ID)})
}
