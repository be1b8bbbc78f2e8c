package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// serve starts the server with the files that fill puts into its folder of tools, and with tables of its configuration.
func (b *bench) serve(ctx context.Context, tables string, fill func(directory string) error) (*service.Service, error) {
	return service.InFolder(ctx, service.Options{Binary: b.server, Rest: tables}, fill)
}

// calls calls bench/add as fast as it can over 16 connections.
func (b *bench) calls(ctx context.Context, s *service.Service) (load.Seen, time.Duration, error) {
	return s.Call(ctx, load.Load{
		Text: load.Request(s.Host(), "/bench/add", guest.Input), Answer: guest.Output, Connections: 16, Span: b.Span,
	}, b.report.Log)
}

// beside is something that goes on during the calls of one server, until leave is called.
type beside func(ctx context.Context, s *service.Service) (leave func() error, err error)

// cost prints the processor time of a call to a server without these tables divided by that of a call to a server with them: the fraction of calls/s
// that is left on a quiet machine. On a busy one, calls/s themselves vary more than the bars allow. Two processes with the same configuration differ
// by some 4 % for as long as they live, so each round begins two new ones, and the median of the rounds counts.
func (b *bench) cost(ctx context.Context, name, always, tables string, do beside) error {
	var ratios []float64
	for i := range b.Rounds {
		ratio, err := b.round(ctx, i, always, tables, do)
		if err != nil {
			return err
		}
		ratios = append(ratios, ratio)
	}
	slices.Sort(ratios)
	b.report.Explain("%s: half of the rounds have %.3f to %.3f", name, ratios[len(ratios)/4], ratios[len(ratios)*3/4])
	b.report.Figure(name, measure.Median(ratios))
	return nil
}

// round starts two servers, and returns the processor time of a call without the tables divided by that with them.
func (b *bench) round(ctx context.Context, i int, always, tables string, do beside) (ratio float64, err error) {
	const with, without = 0, 1
	var sides [2]*service.Service
	defer func() {
		for _, s := range sides {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
	}()
	for n := range sides {
		side := (n + i) % len(sides)
		more := always
		if side == with {
			more += tables
		}
		if sides[side], err = b.serve(ctx, more, b.guests.FillSmall); err != nil {
			return 0, err
		}
	}
	leave, err := do(ctx, sides[with])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	var calls [len(sides)]float64
	var used [len(sides)]time.Duration
	for _, n := range []int{with, without, without, with} {
		side := (n + i) % len(sides)
		seen, took, err := b.calls(ctx, sides[side])
		if err != nil {
			return 0, err
		}
		calls[side] += float64(seen.All)
		used[side] += took
	}
	return (used[without].Seconds() / calls[without]) / (used[with].Seconds() / calls[with]), nil
}
