package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/oci"
)

// TestSlowRegistry has a registry that takes all of its places and is then too slow. Other registries are not held up, and whoever waits for the slow
// one is told at once.
func TestSlowRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := places{all: map[string]*place{}}
		take := func(host string) func(error) {
			give, err := p.take(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			return give
		}
		one, two := take("slow"), take("slow")
		for range maxPulls {
			defer take("good")(nil)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if _, err := p.take(ctx, "slow"); err == nil || err.Error() != "enough" {
			t.Errorf("a third one: got %v", err)
		}
		waiting := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := p.take(t.Context(), "slow")
				waiting <- err
			}()
		}
		synctest.Wait()
		one(fmt.Errorf("x: %w", oci.ErrSlow))
		for range 3 {
			if err := <-waiting; !errors.Is(err, oci.ErrSlow) || err.Error() != "slow: the registry is too slow: after such an answer nothing is pulled from it for 1m0s" {
				t.Errorf("got %v", err)
			}
		}
		two(nil)
		time.Sleep(rest)
		take("slow")(errors.New("not found"))
		take("slow")(nil)
	})
}

// TestStillPulled lists a module that is still being pulled. List must return an error that says so before the catalog's own timeout.
func TestStillPulled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("listing took too long"))
		defer cancel()
		if _, err := (&Source{tried: make(chan struct{})}).List(ctx); err == nil || !strings.Contains(err.Error(), "it is being pulled, or is waiting for its turn") {
			t.Errorf("got %v", err)
		}
	})
}
