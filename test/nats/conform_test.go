// Package nats_test holds the state on NATS to what package state promises, with the real server in process.
package nats_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/nats"
	"github.com/toolsrv/toolsrv/internal/testkit/statetest"
)

// open opens a state of a cluster, which is closed with the test.
func open(t testing.TB, c *cluster, change func(o *nats.Options)) *nats.Store {
	t.Helper()
	o := nats.Options{URL: c.url(), Prefix: "toolsrv", Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := nats.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// patient has a replica wait long for a node, since .ci/run has other steps take the processors meanwhile. Where nodes fail, a test waits for what a
// server waits for.
func patient(o *nats.Options) { o.Limit = 30 * time.Second }

// TestConformance holds one replica to it, on one node and on three.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			c := start(t, nodes, nil)
			var buckets atomic.Int64
			t.Run("tests", func(t *testing.T) {
				statetest.TestSet(t, func(t *testing.T, clock *statetest.SetClock) state.Store {
					return open(t, c, func(o *nats.Options) {
						o.Prefix, o.Now = fmt.Sprint("b", buckets.Add(1)), clock.Now
						patient(o)
					})
				})
			})
		})
	}
}
