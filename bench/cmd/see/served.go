package main

import (
	"context"
	"errors"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// serve starts the server with the files that fill puts into its folder of tools, and with tables of its configuration.
func (b *bench) serve(ctx context.Context, tables string, fill func(directory string) error) (*service.Service, error) {
	return service.InFolder(ctx, service.Options{Binary: b.server, Rest: tables}, fill)
}

// calls calls bench/add as fast as it can, by 16 connections.
func (b *bench) calls(ctx context.Context, s *service.Service) (load.Seen, time.Duration, error) {
	return s.Call(ctx, load.Load{
		Text: load.Request(s.Host(), "/bench/add", guest.Input), Answer: guest.Output, Connections: 16, Span: b.Span,
	}, b.report.Log)
}

// A pair are two servers that are called in turn. with has what is measured, and without does not.
type pair struct{ with, without *service.Service }

// pair starts both, which differ by these tables.
func (b *bench) pair(ctx context.Context, tables string) (p pair, err error) {
	if p.without, err = b.serve(ctx, "", b.guests.FillSmall); err != nil {
		return pair{}, err
	}
	if p.with, err = b.serve(ctx, tables, b.guests.FillSmall); err != nil {
		return pair{}, errors.Join(err, p.without.Close())
	}
	return p, nil
}

func (p pair) close() error { return errors.Join(p.with.Close(), p.without.Close()) }

// cost prints as a figure the processor time of a call without it ÷ with it: what it leaves of calls/s where nothing else runs. Calls/s themselves
// move by more than the bars allow where something does. Each side comes first in every other round. The system counts hundredths of a second, so
// the rounds count together.
func (b *bench) cost(ctx context.Context, name string, p pair) error {
	const with, without = 0, 1
	sides := [...]*service.Service{with: p.with, without: p.without}
	var calls [len(sides)]float64
	var used [len(sides)]time.Duration
	for i := range b.Rounds {
		for n := range sides {
			side := (n + i) % len(sides)
			seen, took, err := b.calls(ctx, sides[side])
			if err != nil {
				return err
			}
			calls[side] += float64(seen.All)
			used[side] += took
		}
	}
	cost := func(side int) float64 { return used[side].Seconds() * 1e6 / calls[side] }
	b.report.Explain("%s: a call takes %.1f µs of a processor with it, and %.1f without; %.3f of the calls in a second", name, cost(with), cost(without), calls[with]/calls[without])
	b.report.Figure(name, cost(without)/cost(with))
	return nil
}
