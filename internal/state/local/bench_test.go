package local_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/state"
)

// callers is how many callers set at once in benchmarks, for each processor.
var callers = 64 / runtime.GOMAXPROCS(0)

// BenchmarkSet measures durable sets of 64 callers, in this package and with bbolt's own Batch.
func BenchmarkSet(b *testing.B) {
	value := make([]byte, 100)
	b.Run("state", func(b *testing.B) {
		store := open(b, b.TempDir())
		defer store.Close()
		s := store.Space("a")
		var n atomic.Int64
		b.SetParallelism(callers)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Set(b.Context(), fmt.Sprint(n.Add(1)%10_000), value, state.Any, state.SetOptions{}); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("bbolt", func(b *testing.B) {
		db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("a")); return err }); err != nil {
			b.Fatal(err)
		}
		var n atomic.Int64
		b.SetParallelism(callers)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := db.Batch(func(tx *bbolt.Tx) error {
					return tx.Bucket([]byte("a")).Put(fmt.Append(nil, n.Add(1)%10_000), value)
				}); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkGet measures reads of 100 bytes among 1,000 keys.
func BenchmarkGet(b *testing.B) {
	store := open(b, b.TempDir())
	defer store.Close()
	s := store.Space("a")
	for i := range 1000 {
		if _, err := s.Set(b.Context(), fmt.Sprint(i), make([]byte, 100), state.Any, state.SetOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if _, ok, err := s.Get(b.Context(), fmt.Sprint(i%1000), state.MaxValue); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
