package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/oci"
)

const (
	mirrorPatience = 10 * time.Second // without a byte of a mirror's answer, since there is somebody else to ask
	mirrorRest     = 5 * time.Minute  // that a mirror is left alone for after an error
)

// A peer has the artifacts of a source: its origin, or a mirror of that.
type peer struct {
	repository oci.Reference
	registry   *oci.Registry
	isMirror   bool

	mu    sync.Mutex
	until time.Time // nothing is asked of it before
}

// peers are asked for an artifact one after the other: the mirrors, and then the origin. They are asked by its digest only, about which none can
// lie; what a tag is now the origin alone says, since a mirror's word could be an old one.
type peers []*peer

// openPeers opens the registries of a source. No credentials, and no leave to do without TLS, are for another host than they were given for.
func openPeers(o Options, reach oci.Options) (all peers, err error) {
	origin := &peer{repository: o.Repository}
	if origin.registry, err = oci.Open(o.Repository.Host, reach); err != nil {
		return nil, err
	}
	for _, repository := range o.Mirrors {
		to := reach
		to.PlainHTTP, to.Patience = false, mirrorPatience
		if o.Patience > 0 {
			to.Patience = o.Patience
		}
		m := &peer{repository: repository, isMirror: true}
		if m.registry, err = oci.Open(repository.Host, to); err != nil {
			append(all, origin).close()
			return nil, fmt.Errorf("the mirror %s: %w", repository, err)
		}
		all = append(all, m)
	}
	return append(all, origin), nil
}

func (p peers) origin() *peer { return p[len(p)-1] }

func (p peers) close() {
	for _, one := range p {
		one.registry.Close()
	}
}

// rests reports whether a mirror is left alone.
func (p *peer) rests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until)
}

func (p *peer) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(mirrorRest)
}

// each has ask ask one peer after the other, until one has given what is wanted or nobody else may be asked. The error is the origin's, and says
// what was wrong with the mirrors.
func (s *Source) each(ctx context.Context, ask func(ctx context.Context, p *peer) (again bool, err error)) error {
	var wrong []string
	all := s.asks.Load().peers
	for _, p := range all {
		if p.rests() {
			continue
		}
		within, cancel := ctx, context.CancelFunc(func() {})
		if p.isMirror { // which leaves time to ask the others
			within, cancel = context.WithTimeoutCause(ctx, lookTimeout/time.Duration(len(all)), errors.New("it took too long"))
		}
		again, err := ask(within, p)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !p.isMirror {
			if len(wrong) > 0 {
				err = fmt.Errorf("%w; of its mirrors before: %s", err, strings.Join(wrong, "; "))
			}
			return err
		}
		p.rest()
		s.options.Logger.Warn("a mirror does not give what is wanted, so the next one or the origin is asked", "reference", s.ID(), "mirror", p.repository.String(), "again_in", mirrorRest.String(), "error", err)
		if !again {
			return err
		}
		wrong = append(wrong, err.Error())
	}
	return nil // not reached: the origin is the last, and never rests
}

// fetch writes the module of an artifact to w.
func (s *Source) fetch(ctx context.Context, p *peer, digest string, w io.Writer) (record, error) {
	a, err := p.registry.Pull(ctx, p.repository.At(digest), w)
	if err != nil {
		return record{}, err
	}
	return record{Reference: s.ID(), Manifest: a.Manifest, Module: a.Digest, Size: a.Size, Policy: p.registry.Policy()}, nil
}

// pull pulls an artifact into the cache, if that can keep it.
func (s *Source) pull(ctx context.Context, digest string) (*held, error) {
	var h *held
	err := s.each(ctx, func(ctx context.Context, p *peer) (again bool, err error) {
		give, err := s.options.Cache.places.take(ctx, p.repository.Host)
		if err != nil {
			return true, err
		}
		r, kept, err := s.options.Cache.keep(s, func(w io.Writer) (record, error) { return s.fetch(ctx, p, digest, w) }, s.options.Logger)
		give(err)
		h = &held{record: r, kept: kept}
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// copy writes a module to w, for a cache that can't keep it. After an error, a part of it may have been written.
func (s *Source) copy(ctx context.Context, digest string, w io.Writer) (r record, err error) {
	err = s.each(ctx, func(ctx context.Context, p *peer) (again bool, err error) {
		give, err := s.options.Cache.places.take(ctx, p.repository.Host)
		if err != nil {
			return true, err
		}
		to := &begun{Writer: w}
		r, err = s.fetch(ctx, p, digest, to)
		give(err)
		return !to.yes, err
	})
	return r, err
}

// begun notes whether anything was written.
type begun struct {
	io.Writer
	yes bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.Writer.Write(p)
}
