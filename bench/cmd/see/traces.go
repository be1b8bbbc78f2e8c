package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// A collector accepts everything that it is sent, without reading it.
type collector struct {
	http    http.Server
	address string
	came    atomic.Int64 // requests
}

func collect() (*collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{address: l.Addr().String()}
	c.http.ReadHeaderTimeout = time.Minute
	c.http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			c.came.Add(1)
		}
	})
	go func() { _ = c.http.Serve(l) }() // until close
	return c, nil
}

// traceCost compares a server that sends a hundredth of its requests to a collector with one that records none.
func (b *bench) traceCost(ctx context.Context) (err error) {
	c, err := collect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.http.Close()) }()
	nothing := func(context.Context, *service.Service) (func() error, error) { return func() error { return nil }, nil }
	err = b.cost(ctx, "trace_cost", "", fmt.Sprintf("[otlp]\nendpoint = 'http://%s'\nsample = 0.01", c.address), nothing)
	if err == nil && c.came.Load() == 0 {
		return errors.New("the collector was sent nothing")
	}
	b.report.Explain("the collector was sent %d batches of spans", c.came.Load())
	return err
}
