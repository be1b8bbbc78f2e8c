package nats_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// BenchmarkState measures a write, a read, and the time until another replica has a write.
func BenchmarkState(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		c := start(b, nodes, nil)
		one, other := open(b, c, nil).Space("kv/a"), open(b, c, nil).Space("kv/a")
		b.Run(fmt.Sprint("set/nodes=", nodes), func(b *testing.B) {
			var all []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				if _, err := one.Set(b.Context(), fmt.Sprint(i%100), make([]byte, 100), state.Any, state.SetOptions{}); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
			}
			report(b, all)
		})
		b.Run(fmt.Sprint("seen/nodes=", nodes), func(b *testing.B) {
			var all []time.Duration
			seen := make(chan uint64, 1)
			ctx := b.Context()
			go func() {
				for e, err := range other.Watch(ctx, "seen") {
					if err != nil {
						return
					}
					if !e.Synced {
						seen <- e.Version
					}
				}
			}()
			for b.Loop() {
				began := time.Now()
				version, err := one.Set(ctx, "seen", nil, state.Any, state.SetOptions{})
				if err != nil {
					b.Fatal(err)
				}
				for <-seen != version {
				}
				all = append(all, time.Since(began))
			}
			report(b, all)
		})
		b.Run(fmt.Sprint("get/nodes=", nodes), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := one.Get(b.Context(), "7", 16<<10); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPut measures how long it takes to put an object of 10 MiB on the servers.
func BenchmarkPut(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			objects, content := open(b, start(b, nodes, nil), nil).Objects("tools"), make([]byte, 10<<20)
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if err := objects.Put(b.Context(), "object", bytes.NewReader(content)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func report(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "µs-p99")
}
