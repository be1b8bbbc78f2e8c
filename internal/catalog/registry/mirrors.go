package registry

import (
	"context"
	"io"

	"github.com/toolsrv/toolsrv/internal/oci"
)

// each calls ask with the mirrors and then the origin, until one succeeds.
func (s *Source) each(ctx context.Context, ask func(ctx context.Context, p *oci.Peer) (again bool, err error)) error {
	return s.asks.Load().peers.Each(ctx, lookTimeout, func(mirror oci.Reference, err error) {
		s.options.Logger.Warn("a mirror doesn't have what was asked for, so the next one or the origin is asked", "reference", s.ID(), "mirror", mirror.String(), "again_in", oci.MirrorRest.String(), "error", err)
	}, ask)
}

// fetch writes the module of an artifact to w.
func (s *Source) fetch(ctx context.Context, p *oci.Peer, digest string, w io.Writer) (record, error) {
	a, err := p.Pull(ctx, p.Repository.At(digest), w)
	if err != nil {
		return record{}, err
	}
	return record{Reference: s.ID(), Manifest: a.Manifest, Module: a.Digest, Size: a.Size, Policy: p.Policy()}, nil
}

// pull pulls an artifact into the cache, if that can keep it.
func (s *Source) pull(ctx context.Context, digest string) (*held, error) {
	var h *held
	err := s.each(ctx, func(ctx context.Context, p *oci.Peer) (again bool, err error) {
		give, err := s.options.Cache.places.take(ctx, p.Repository.Host)
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

// copy writes a module to w, because the cache can't keep it. After an error, a part of the module may have been written.
func (s *Source) copy(ctx context.Context, digest string, w io.Writer) (r record, err error) {
	err = s.each(ctx, func(ctx context.Context, p *oci.Peer) (again bool, err error) {
		give, err := s.options.Cache.places.take(ctx, p.Repository.Host)
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
