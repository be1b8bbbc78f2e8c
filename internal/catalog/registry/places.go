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
	maxPulls = 2           // from a registry at a time, so that a start with many sources takes little memory and bandwidth
	rest     = time.Minute // that a registry is left alone for which was too slow
)

// places are those in which sources pull. Each registry has its own, so that one that is slow holds up the sources of no other.
type places struct {
	mu  sync.Mutex
	all map[string]*place
}

// A place is a registry's.
type place struct {
	free chan struct{}

	mu    sync.Mutex
	until time.Time // nobody pulls before
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

// take waits until a source may pull from a registry. Whoever gives the place back says what came of it: after an answer that was too slow,
// those that wait are told so at once, and nobody has to find it out again for a time.
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
