package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

const (
	// kvKeys is how many keys there are, one of which is read. writers is how many callers write them.
	kvKeys, writers = 10_000, 64
	// reads is how many more reads a call of reach/gets makes than one of reach/get.
	reads = 1000
	// writes is how many writes are measured in each round.
	writes = 20
)

// keys measures two costs: of one more read of a key within a call, and of a call over HTTP that writes a key.
func (b *bench) keys(ctx context.Context) (err error) {
	all, end, err := b.replicas(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := fillKeys(ctx, all[0]); err != nil {
		return err
	}
	c := all[1].caller() // this server has not written the keys
	defer c.close()
	arguments := key(kvKeys / 2)
	const want = "116" // version, expiry and 100 bytes
	times, err := measure.Compare(b.Rounds, b.Span/4,
		measure.Side{Name: "1001 gets", Do: func() error { return c.must(ctx, "/reach/gets", arguments, want) }},
		measure.Side{Name: "one get", Do: func() error { return c.must(ctx, "/reach/get", arguments, want) }})
	if err != nil {
		return err
	}
	b.report.Explain("kv_get_us: a request that reads one of %d keys takes %.0f µs, one that reads it %d times %.0f µs", kvKeys, times.Of(1)/1e3, reads+1, times.Of(0)/1e3)
	b.report.Figure("kv_get_us", times.Difference(0, 1)/reads/1e3)
	took := make([]time.Duration, b.Rounds*writes)
	for i := range took {
		begun := time.Now()
		if err := c.must(ctx, "/reach/set", key(i%kvKeys), "0"); err != nil {
			return err
		}
		took[i] = time.Since(begun)
	}
	b.report.Explain("kv_set_ms: of %d requests that write a key, one in a hundred takes more than %v", len(took), measure.Percentile(took, 99).Round(10*time.Microsecond))
	b.report.Figure("kv_set_ms", measure.Percentile(took, 50).Seconds()*1e3)
	return nil
}

// fillKeys writes all keys, many at a time.
func fillKeys(ctx context.Context, s *server) error {
	var errs [writers]error
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			c := s.caller()
			defer c.close()
			for n := next.Add(1); n <= kvKeys && errs[i] == nil; n = next.Add(1) {
				errs[i] = c.must(ctx, "/reach/set", key(int(n-1)), "0")
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}
