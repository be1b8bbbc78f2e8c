package oci

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	mirrorPatience = 10 * time.Second // without a byte of a mirror's answer; shorter than for a registry, since another peer can be asked
	// MirrorRest is how long a mirror is left alone after an error.
	MirrorRest = 5 * time.Minute
)

// A Peer has the artifacts of a repository. It is their origin or a mirror.
type Peer struct {
	*Registry
	Repository Reference
	IsMirror   bool

	mu    sync.Mutex
	until time.Time // no request is sent to it before this time
}

// Peers are asked for an artifact one after the other: first the mirrors, then the origin. A mirror is asked only by digest, so that it can't lie.
// Only the origin resolves a tag, since a mirror's tag could be outdated. Peers are safe for concurrent use.
type Peers struct{ all []*Peer }

// OpenPeers opens the registry of a repository with the options o, and the registries of its mirrors. Credentials, and the permission to do without
// TLS, apply only to the host for which they were given. patience is how long a mirror may stall; 0 means 10 seconds. The caller closes the Peers.
func OpenPeers(origin Reference, mirrors []Reference, o Options, patience time.Duration) (*Peers, error) {
	first := &Peer{Repository: origin}
	var err error
	if first.Registry, err = Open(origin.Host, o); err != nil {
		return nil, err
	}
	p := &Peers{}
	o.PlainHTTP, o.Patience = false, mirrorPatience
	if patience > 0 {
		o.Patience = patience
	}
	for _, repository := range mirrors {
		m := &Peer{Repository: repository, IsMirror: true}
		if m.Registry, err = Open(repository.Host, o); err != nil {
			p.all = append(p.all, first)
			p.Close()
			return nil, fmt.Errorf("the mirror %s: %w", repository, err)
		}
		p.all = append(p.all, m)
	}
	p.all = append(p.all, first)
	return p, nil
}

// Origin returns the peer that is not a mirror.
func (p *Peers) Origin() *Peer { return p.all[len(p.all)-1] }

// Close closes idle connections.
func (p *Peers) Close() {
	for _, one := range p.all {
		one.Close()
	}
}

// rests reports whether a mirror is left alone.
func (p *Peer) rests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until)
}

func (p *Peer) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(MirrorRest)
}

// Each calls ask with one peer after the other, until one succeeds or nobody else may be asked. Each mirror gets a share of the time limit. The error
// is the origin's, and says what was wrong with the mirrors. failed is called for each failed mirror, and may be nil.
func (p *Peers) Each(ctx context.Context, limit time.Duration, failed func(mirror Reference, err error), ask func(ctx context.Context, p *Peer) (again bool, err error)) error {
	var wrong []string
	for _, one := range p.all {
		if one.rests() {
			continue
		}
		within, cancel := ctx, context.CancelFunc(func() {})
		if one.IsMirror { // leave time to ask the others
			within, cancel = context.WithTimeoutCause(ctx, limit/time.Duration(len(p.all)), errors.New("it took too long"))
		}
		again, err := ask(within, one)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !one.IsMirror {
			if len(wrong) > 0 {
				err = fmt.Errorf("%w; the mirrors asked before: %s", err, strings.Join(wrong, "; "))
			}
			return err
		}
		one.rest()
		if failed != nil {
			failed(one.Repository, err)
		}
		if !again {
			return err
		}
		wrong = append(wrong, err.Error())
	}
	return nil // not reached, since the origin comes last and is never skipped
}
