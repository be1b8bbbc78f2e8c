package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// A call reads one of this many keys. Writers write to all of them.
const kvKeys = 10_000

// kvGuest returns tools whose keys are on disk, in a directory that is removed with the tools.
func (b *bench) kvGuest(ctx context.Context) (s *service, end func() error, err error) {
	dir, err := os.MkdirTemp("", "toolsrv-bench-kv-")
	if err != nil {
		return nil, nil, err
	}
	s, err = b.service(ctx, 1, fmt.Sprintf("[state]\ndirectory = %q\n[[grant]]\nmatch = 'reach/*'\nhttp = ['http://127.0.0.1:1']\nprivate = ['127.0.0.1/32']\nkv = '1GiB'\ntools = ['bench/add']\n", dir))
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() error { return errors.Join(s.close(), os.RemoveAll(dir)) }, nil
}

func kvArguments(key int64) string { return fmt.Sprintf(`{"key":"%d"}`, key%kvKeys) }

// get measures what one more read of a key takes within a call.
func (b *bench) get(ctx context.Context) (err error) {
	s, end, err := b.kvGuest(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := fillKV(ctx, s); err != nil {
		return err
	}
	const want = "116" // version, expiry and 100 bytes
	arguments := kvArguments(kvKeys / 2)
	times, err := measure.Compare(b.Rounds, b.Span,
		measure.Side{Name: "1001 gets", Do: func() error { return s.call(ctx, "/reach/gets", arguments, want) }},
		measure.Side{Name: "one get", Do: func() error { return s.call(ctx, "/reach/get", arguments, want) }},
		measure.Side{Name: "none", Do: func() error { return s.call(ctx, "/reach/nothing", arguments, "5") }})
	if err != nil {
		return err
	}
	b.report.Explain("a call that reads one of %d keys: %.1f µs; one of the same module that reads none: %.1f µs; 1,001 reads: %.0f µs",
		kvKeys, times.Of(1)/1e3, times.Of(2)/1e3, times.Of(0)/1e3)
	b.report.Figure("kv_get_us", times.Difference(0, 1)/1e6)
	return nil
}

func fillKV(ctx context.Context, s *service) error {
	var errs [64]error
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := next.Add(1); n <= kvKeys && errs[i] == nil; n = next.Add(1) {
				errs[i] = s.call(ctx, "/reach/set", kvArguments(n), "0")
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// set compares durable writes per second: of a tool with 64 callers, and of 64 callers of bbolt's Batch.
func (b *bench) set(ctx context.Context) (err error) {
	s, end, err := b.kvGuest(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	dir, err := os.MkdirTemp("", "toolsrv-bench-bbolt-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := bbolt.Open(filepath.Join(dir, "db"), 0o600, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	bucket := []byte("keys")
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		return err
	}
	value := make([]byte, 100)
	tool := func(n int64) error { return s.call(ctx, "/reach/set", kvArguments(n), "0") }
	batch := func(n int64) error {
		return db.Batch(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(fmt.Append(nil, n%kvKeys), value) })
	}
	var tools, batches, ratios []float64
	for round := range b.Rounds + 1 {
		ours, err := rate(b.Span, tool)
		if err != nil {
			return err
		}
		theirs, err := rate(b.Span, batch)
		if err != nil {
			return err
		}
		if round > 0 { // the first write is not measured
			tools, batches, ratios = append(tools, ours), append(batches, theirs), append(ratios, ours/theirs)
		}
	}
	b.report.Explain("64 callers write, in a second: a tool %.0f times, bbolt's Batch %.0f times", measure.Median(tools), measure.Median(batches))
	b.report.Figure("kv_set_per_s", measure.Median(tools))
	b.report.Figure("kv_set_vs_bbolt", measure.Median(ratios))
	return nil
}

// rate calls do from 64 callers for a while, and returns how many calls ended per second. n is the number of the call.
func rate(span time.Duration, do func(n int64) error) (float64, error) {
	var errs [64]error
	var next, done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range errs {
		wg.Go(func() {
			for time.Since(begin) < span && errs[i] == nil {
				errs[i] = do(next.Add(1))
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds(), errors.Join(errs[:]...)
}

// compose measures how much longer a call takes if it calls another tool, in comparison with a call of the same module that doesn't.
func (b *bench) compose(ctx context.Context) (err error) {
	s, err := b.service(ctx, 1, "[[grant]]\nmatch = 'reach/*'\nhttp = ['http://127.0.0.1:1']\nprivate = ['127.0.0.1/32']\nkv = '1MiB'\ntools = ['bench/add']\n")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	times, err := measure.Compare(b.Rounds, b.Span,
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
