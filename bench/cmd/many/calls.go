package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// connections is how many connections a load has, which three servers share.
const connections = 15

// add calls bench/add as fast as it is answered, by connections to the servers.
func (b *bench) add(ctx context.Context, servers ...*server) (load.Seen, error) {
	l := load.Load{
		Host: servers[0].Host(), Text: load.Request(servers[0].Host(), "/bench/add", guest.Input), Answer: guest.Output, Connections: connections, Span: b.Span,
	}
	for _, s := range servers[1:] {
		l.Others = append(l.Others, s.Host())
	}
	return load.Generate(ctx, l, b.report.Log)
}

// three compares calls/s of three servers with those of one, on the same processors.
func (b *bench) three(ctx context.Context) (err error) {
	all, end, err := b.replicas(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var ratios, rates []float64
	for i := range b.Rounds {
		var of [2]float64
		for n := range of {
			side := (n + i) % len(of)
			servers := all
			if side == 1 {
				servers = all[i%len(all):][:1]
			}
			seen, err := b.add(ctx, servers...)
			if err != nil {
				return err
			}
			of[side] = seen.Rate
		}
		ratios, rates = append(ratios, of[0]/of[1]), append(rates, of[0])
	}
	b.report.Explain("three_vs_one: %.0f calls/s of %d servers; %s", measure.Median(rates), len(all), half(ratios))
	b.report.Figure("three_vs_one", measure.Median(ratios))
	return nil
}

// half prints the range in which the middle half of the rounds lie.
func half(ratios []float64) string {
	sorted := slices.Sorted(slices.Values(ratios))
	return fmt.Sprintf("half of the rounds have %.3f to %.3f", sorted[len(sorted)/4], sorted[len(sorted)*3/4])
}

// cost compares a server whose state is in NATS with one that has it in a directory. Two processes with the same configuration differ by some 4 % for
// as long as they live, so each round begins two new ones. As in `make bench-see`, processor time is compared, which decides calls/s on a quiet
// machine; calls/s themselves vary more than the bar allows.
func (b *bench) cost(ctx context.Context) (err error) {
	nodes, endNodes, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endNodes()) }()
	var ratios, rates []float64
	for i := range b.Rounds {
		ratio, rate, err := b.pair(ctx, i, nodes.URL())
		if err != nil {
			return err
		}
		ratios, rates = append(ratios, ratio), append(rates, rate)
	}
	before, err := nodes.Used()
	if err != nil {
		return err
	}
	time.Sleep(b.Span)
	after, err := nodes.Used()
	if err != nil {
		return err
	}
	b.report.Explain("call_cost: calls/s with NATS ÷ without are %.3f; %s; the nodes take %.1f %% of a processor while nothing is written", measure.Median(rates), half(ratios), 100*after.Less(before).Processor.Seconds()/b.Span.Seconds())
	b.report.Figure("call_cost", measure.Median(ratios))
	return nil
}

// pair starts a server with each kind of state. It returns the processor time of a call without NATS divided by that with NATS, and calls/s with NATS
// divided by calls/s without.
func (b *bench) pair(ctx context.Context, i int, url string) (ratio, rate float64, err error) {
	const with, without = 0, 1
	var sides [2]*server
	defer func() {
		for _, s := range sides {
			if s != nil {
				err = errors.Join(err, s.close())
			}
		}
	}()
	for n := range sides {
		side := (n + i) % len(sides)
		if sides[side], err = b.start(ctx, []string{url, ""}[side], ""); err != nil {
			return 0, 0, err
		}
	}
	var calls, rates [len(sides)]float64
	var used [len(sides)]time.Duration
	for _, n := range []int{with, without, without, with} {
		side := (n + i) % len(sides)
		before, err := sides[side].Processor()
		if err != nil {
			return 0, 0, err
		}
		seen, err := b.add(ctx, sides[side])
		if err != nil {
			return 0, 0, err
		}
		after, err := sides[side].Processor()
		if err != nil {
			return 0, 0, err
		}
		calls[side] += float64(seen.All)
		rates[side] += seen.Rate
		used[side] += after - before
	}
	return (used[without].Seconds() / calls[without]) / (used[with].Seconds() / calls[with]), rates[with] / rates[without], nil
}
