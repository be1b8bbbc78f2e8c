package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// A served is the server as a process of its own, in a folder that is removed with it.
type served struct {
	*service.Service
	folder string
}

// serve starts the server with the files that fill puts into its folder of tools, and with tables of its configuration. It returns once all tools
// are compiled.
func (b *bench) serve(ctx context.Context, tables string, fill func(directory string) error) (s *served, err error) {
	s = &served{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.folder, err = os.MkdirTemp("", "toolsrv-bench-"); err != nil {
		return s, err
	}
	if err := os.MkdirAll(service.Tools(s.folder), 0o700); err != nil {
		return s, err
	}
	if err := fill(service.Tools(s.folder)); err != nil {
		return s, err
	}
	if s.Service, err = service.Start(ctx, service.Options{Binary: b.server, Directory: s.folder, Rest: tables}); err != nil {
		return s, err
	}
	_, err = s.Quiet(ctx)
	return s, err
}

func (s *served) close() (err error) {
	if s.Service != nil {
		err = s.Stop(10 * time.Second)
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

func (s *served) host() string { return strings.TrimPrefix(s.URL, "http://") }

// calls returns how many calls of bench/add a server answers in a second, as fast as it can, by 16 connections.
func (b *bench) calls(ctx context.Context, s *served) (float64, error) {
	seen, err := load.Generate(ctx, load.Load{
		Host: s.host(), Text: load.Request(s.host(), "/bench/add", guest.Input), Answer: guest.Output, Connections: 16, Span: b.Span,
	}, b.report.Log)
	return seen.Rate, err
}

// A pair are two servers that are called in turn. with has what is measured, and without does not.
type pair struct{ with, without *served }

// pair starts both, which differ by these tables.
func (b *bench) pair(ctx context.Context, tables string) (p pair, err error) {
	if p.without, err = b.serve(ctx, "", b.guests.FillSmall); err != nil {
		return pair{}, err
	}
	if p.with, err = b.serve(ctx, tables, b.guests.FillSmall); err != nil {
		return pair{}, errors.Join(err, p.without.close())
	}
	return p, nil
}

func (p pair) close() error { return errors.Join(p.with.close(), p.without.close()) }

// cost prints as a figure the median of what the one with it answers of what the one without answers in the same round. Each comes first in every
// other round.
func (b *bench) cost(ctx context.Context, name string, p pair) error {
	ratios, rates := make([]float64, b.Rounds), make([]float64, b.Rounds)
	for i := range ratios {
		first, second := p.with, p.without
		if i%2 == 1 {
			first, second = second, first
		}
		one, err := b.calls(ctx, first)
		if err != nil {
			return err
		}
		other, err := b.calls(ctx, second)
		if err != nil {
			return err
		}
		if i%2 == 1 {
			one, other = other, one
		}
		ratios[i], rates[i] = one/other, other
	}
	b.report.Explain("%s: %.0f calls/s without it", name, measure.Median(rates))
	b.report.Figure(name, measure.Median(ratios))
	return nil
}
