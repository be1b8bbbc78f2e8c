package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/oci"
)

const (
	maxPulls = 2           // concurrent pulls from one registry, so that a start with many sources takes little memory and bandwidth
	rest     = time.Minute // how long a registry is left alone after it was too slow
)

// places bound the concurrent pulls. Each registry has its own place, so that a slow one does not hold up the sources of another.
type places struct {
	mu  sync.Mutex
	all map[string]*place
}

// A place bounds the pulls from one registry.
type place struct {
	free chan struct{}

	mu    sync.Mutex
	until time.Time // nobody pulls before this time
}

// of returns the place of a registry.
func (p *places) of(host string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[host]
	if one == nil {
		one = &place{free: make(chan struct{}, maxPulls)}
		p.all[host] = one
	}
	return one
}

// take waits until a source may pull from a registry. The caller gives the place back with the error of the pull. If the registry was too slow, all
// who wait for it get that error at once, and so do later callers for a while.
func (p *places) take(ctx context.Context, host string) (give func(error), err error) {
	one := p.of(host)
	select {
	case one.free <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	one.mu.Lock()
	alone := time.Now().Before(one.until)
	one.mu.Unlock()
	if alone {
		<-one.free
		return nil, fmt.Errorf("%s: %w: after such an answer nothing is pulled from it for %v", host, oci.ErrSlow, rest)
	}
	return func(err error) {
		if errors.Is(err, oci.ErrSlow) {
			one.mu.Lock()
			one.until = time.Now().Add(rest)
			one.mu.Unlock()
		}
		<-one.free
	}, nil
}
