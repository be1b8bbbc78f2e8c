package nats_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
)

// TestReadAnewWhileWritten opens states while keys are written again and again: each state has all keys as soon as it is open.
func TestReadAnewWhileWritten(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	s := open(t, c, nil)
	const spaces, keys = 8, 100
	ctx, cancel := context.WithCancel(t.Context())
	var ready, writes sync.WaitGroup
	for i := range spaces {
		ready.Add(1)
		writes.Go(func() {
			space := s.Space(fmt.Sprint("a", i))
			for n := 0; n < keys || ctx.Err() == nil; n++ {
				if n == keys {
					ready.Done()
				}
				if _, err := space.Set(t.Context(), fmt.Sprint(n%keys), []byte("value"), state.Any, state.SetOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ready.Wait()
	for range 15 {
		other := open(t, c, nil)
		for i := range spaces {
			for n := range keys {
				if _, found, err := other.Space(fmt.Sprint("a", i)).Get(t.Context(), fmt.Sprint(n), 1<<10); err != nil || !found {
					t.Errorf("a state that was just opened: key %d was found: %t, %v", n, found, err)
				}
			}
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	writes.Wait()
}
