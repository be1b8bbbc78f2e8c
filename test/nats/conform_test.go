// Package nats_test checks that the state on NATS keeps the promises of package state, with the real server in process.
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

// open opens a state in a cluster, which is closed when the test ends.
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

// patient makes a replica wait longer for a node, since other steps of .ci/run may use the processors meanwhile. In tests with failing nodes, a
// replica waits only as long as a server does.
func patient(o *nats.Options) { o.Limit = 30 * time.Second }

// TestConformance tests one replica, on one node and on three.
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
