package main

import (
	"context"
	"errors"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// compose measures what a call takes longer that calls another tool, beside one of the same module that doesn't.
func (b *bench) compose(ctx context.Context) (err error) {
	s, err := b.service(ctx, 1, "[[grant]]\nmatch = 'reach/*'\nhttp = ['http://127.0.0.1:1']\nprivate = ['127.0.0.1/32']\nkv = '1MiB'\ntools = ['bench/add']\n")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	times, err := measure.Compare(b.rounds, b.span,
		measure.Side{Name: "calls", Do: func() error { return s.call(ctx, "/reach/call", guest.Input, guest.Output) }},
		measure.Side{Name: "computes", Do: func() error { return s.call(ctx, "/reach/nothing", guest.Input, guest.Output) }},
		measure.Side{Name: "called", Do: func() error { return s.call(ctx, "/bench/add", guest.Input, guest.Output) }})
	if err != nil {
		return err
	}
	b.report.Explain("a call that calls another tool: %.1f µs; one of the same module that does not: %.1f µs; the other tool called directly: %.1f µs",
		times.Of(0)/1e3, times.Of(1)/1e3, times.Of(2)/1e3)
	b.report.Figure("compose_us", times.Difference(0, 1)/1e3)
	return nil
}
