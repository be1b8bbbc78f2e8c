package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// http compares a sandboxed tool with a Go function that does the same, behind the same router and validation.
func (b *bench) http(ctx context.Context) error {
	small, err := b.module(guest.Small)
	if err != nil {
		return err
	}
	sandboxed, err := b.serve(ctx, func(directory string) error { return put(directory, small, guest.Parameters, "add") })
	if err != nil {
		return err
	}
	defer sandboxed.close(ctx)
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{
		Namespace: "bench", Name: "add", Description: "A tool of the benchmarks.",
		Parameters: schema.MustCompile(guest.Parameters), Caller: wasmtools.CallerFunc(add),
	})
	if err != nil {
		return err
	}
	native, err := newService(table, func() {})
	if err != nil {
		return err
	}
	defer native.close(ctx)
	const connections = 16
	ratios, rates := make([]float64, b.rounds), make([]float64, b.rounds)
	for i := range ratios {
		ours, err := b.generate(ctx, sandboxed, connections, time.Second)
		if err != nil {
			return err
		}
		theirs, err := b.generate(ctx, native, connections, time.Second)
		if err != nil {
			return err
		}
		ratios[i], rates[i] = ours.Rate/theirs.Rate, ours.Rate
	}
	b.report.Explain("HTTP on loopback, %d kept-alive connections from a second process on the same cores: %.0f calls/s of the sandboxed tool", connections, measure.Median(rates))
	b.report.Figure("http_vs_native", measure.Median(ratios))
	b.report.Figure("http_calls_per_s", measure.Median(rates))
	return nil
}

// add is small.rs in Go.
func add(_ context.Context, call *wasmtools.Call) ([]byte, error) {
	var in struct{ A, B int64 }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, in.A+in.B, 10), nil
}

// generate has a process of its own call a service's tool bench/add.
func (b *bench) generate(ctx context.Context, s *served, connections int, span time.Duration) (load.Seen, error) {
	return load.Generate(ctx, load.Load{
		Host: s.address, Text: load.Request(s.address, "/bench/add", input), Answer: output, Connections: connections, Span: span,
	}, b.report.Log)
}
