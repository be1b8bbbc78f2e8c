// Package trickle ends answers over a network that stall, or that arrive too slowly: a server that sends a byte now and then would keep its client
// waiting forever.
package trickle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// Stall is how long an answer may be silent, for clients that have no reason to choose another limit.
	Stall = 30 * time.Second
	// leastRate is how many bytes must arrive in a second, in each window. At this rate, 64 MiB take more than two hours.
	leastRate = 8 << 10
	// window is how long a reader waits for bytes, in total, before the rate is checked.
	window = 10 * time.Second
)

var (
	// ErrStalled is the error of an answer that was silent for too long.
	ErrStalled = errors.New("its answer has stalled")
	// ErrSlow is the error of an answer that arrives too slowly.
	ErrSlow = fmt.Errorf("its answer arrives at less than %d KiB a second", leastRate>>10)
)

// A Body is the body of an answer. Its Read fails with ErrStalled or ErrSlow.
type Body struct {
	from   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer

	begun  bool
	waited time.Duration // how long reads waited for the bytes of this window, without the reader's own time between reads
	came   int64         // bytes in this window
}

// New returns a Body that reads from another one, which may be silent for as long as stall. cancel must end ctx, and ctx must be that of the request:
// this is how a Read that waits for bytes is ended. Close calls cancel, too.
func New(ctx context.Context, cancel context.CancelCauseFunc, from io.ReadCloser, stall time.Duration) *Body {
	return &Body{from: from, ctx: ctx, cancel: cancel, stall: stall, timer: time.AfterFunc(stall, func() { cancel(ErrStalled) })}
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	since := time.Now()
	n, err := b.from.Read(p)
	if b.begun {
		b.waited += time.Since(since)
		b.came += int64(n)
	}
	b.begun = b.begun || n > 0
	if b.waited >= window {
		if err == nil && float64(b.came) < leastRate*b.waited.Seconds() {
			b.cancel(ErrSlow)
			return n, ErrSlow
		}
		b.waited, b.came = 0, 0
	}
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close ends the request.
func (b *Body) Close() error {
	b.timer.Stop()
	err := b.from.Close()
	b.cancel(nil)
	return err
}
