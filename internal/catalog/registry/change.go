package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/oci"
)

// An asked says which registries a source asks, and for what. It does not change.
type asked struct {
	peers *oci.Peers
	pin   string // the digest that the artifact must have, or "" if the registry decides
	about string // a text that differs between sources that ask different registries, or for different things
}

// policy returns a text that differs between sources that accept different artifacts.
func (a *asked) policy() string { return a.peers.Origin().Policy() }

// open returns which registries the source asks, according to these options.
func (s *Source) open(o Options) (*asked, error) {
	a := &asked{pin: o.Locked}
	if strings.HasPrefix(s.options.Which, "sha256:") {
		a.pin = s.options.Which
	}
	reach := o.Registry
	if a.pin != "" {
		reach.Trust, reach.Minimum = nil, ""
	}
	var err error
	if a.peers, err = oci.OpenPeers(s.options.Repository, o.Mirrors, reach, s.options.Patience); err != nil {
		return nil, err
	}
	a.about = fmt.Sprintf("%q", []any{a.pin, o.Mirrors, reach.PlainHTTP, reach.CA, reach.Credentials, a.policy()})
	return a, nil
}

// Check returns why a source can't be opened with some options, or nil. It asks no registry.
func Check(o Options) error {
	asks, err := (&Source{options: o}).open(o)
	if err != nil {
		return err
	}
	asks.peers.Close()
	return nil
}

// Prepare prepares new options for a source. Only Locked, Mirrors and Registry of o are used. take puts them into force; it is nil if
// nothing differs. What is served stays until something else has been pulled. If the signers have changed, the module is pulled and
// verified again.
func (s *Source) Prepare(o Options) (take func(), err error) {
	next, err := s.open(o)
	if err != nil {
		return nil, err
	}
	if next.about == s.asks.Load().about {
		next.peers.Close()
		return nil, nil
	}
	return func() {
		s.control.Lock()
		defer s.control.Unlock()
		if s.closed {
			next.peers.Close()
			return
		}
		s.stop()
		s.asks.Swap(next).peers.Close()
		s.begin()
	}, nil
}

// begin starts a goroutine that follows the source. It first waits until the previous such goroutine has ended. The caller holds s.control, unless no
// other goroutine has the source yet.
func (s *Source) begin() {
	ctx, stop := context.WithCancel(context.Background())
	before, done := s.done, make(chan struct{})
	s.stop, s.done = stop, done
	s.stopped.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		s.follow(ctx)
	})
}
