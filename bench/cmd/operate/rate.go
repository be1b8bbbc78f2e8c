package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// rate measures how much time rates add to a call with one of ten thousand narrower tokens. A call with such a token also counts for the token that
// it was made from.
func (b *bench) rate(context.Context) error {
	const tokens, turns, calls = 10_000, 200, 1000
	bound := wasmtools.Rate{Calls: rates.MaxCalls, Period: time.Second, Concurrent: 10}
	l := rates.New()
	all := make([]*wasmtools.Call, tokens)
	for i := range all {
		parent, err := wasmtools.NewPrincipal(fmt.Sprint("team-", i), wasmtools.OriginToken, "*")
		if err != nil {
			return err
		}
		child, err := wasmtools.NewPrincipal(fmt.Sprint("team-", i, "/night"), wasmtools.OriginToken, "*")
		if err != nil {
			return err
		}
		all[i] = &wasmtools.Call{Principal: child.WithRate(bound, parent.WithRate(bound, nil))}
	}
	took := make([]time.Duration, turns)
	for turn := range took {
		begun := time.Now()
		for n := range calls {
			ticket, err := l.Begin(all[(turn*calls+n)%tokens])
			if err != nil {
				return err
			}
			ticket.End()
		}
		took[turn] = time.Since(begun) / calls
	}
	slices.Sort(took)
	b.report.Explain("a call that counts for two tokens of %d: %v, and %v in the slowest of %d turns", 2*tokens, took[turns/2], took[turns-1], turns)
	b.report.Figure("rate_us", took[turns/2].Seconds()*1e6)
	return nil
}
