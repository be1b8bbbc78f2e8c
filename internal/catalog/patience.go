package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
)

// A patience calls a source that may never return, whatever its interface promises: its disk may belong to a machine that is gone. The caller gets an
// error in time. The call to the source continues in the background until it ends. The number of such calls is bounded.
type patience struct {
	mu        sync.Mutex
	lists     bool  // an abandoned listing is still running
	reads     int   // how many abandoned reads are still running
	readBytes int64 // how much memory those may hold
}

const (
	// grace is how long a source has to return after its context has ended.
	grace = time.Second
	// mostReads bounds the abandoned reads of a source. If there are several, they hold at most as many bytes together as a module
	// may have.
	mostReads = 64
)

// errHangs is returned for a source that has not returned from an earlier call.
var errHangs = errors.New("it does not answer: an earlier request to it is still unanswered")

// list lists the source.
func (p *patience) list(ctx context.Context, s Source) (*Listing, error) {
	p.mu.Lock()
	hangs := p.lists
	p.mu.Unlock()
	if hangs {
		return nil, errHangs
	}
	return waited(ctx, func() (*Listing, error) { return s.List(ctx) }, func(left bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lists = left
	})
}

// read reads a file of the source.
func (p *patience) read(ctx context.Context, s Source, e Entry, into *buffers) ([]byte, error) {
	content, err := ask(ctx, p, e.Size, func() ([]byte, error) { return read(ctx, s, e, into) })
	if err != nil && err == context.Cause(ctx) {
		err = unreadable(ctx, err)
	}
	return content, err
}

// open opens a file of the source.
func (p *patience) open(ctx context.Context, s Source, name, version string) (io.ReadCloser, error) {
	return ask(ctx, p, 0, func() (io.ReadCloser, error) {
		content, err := s.Open(ctx, name, version)
		if err == nil && ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), content.Close())
		}
		return content, err
	})
}

// ask reads from the source. The read holds at most a given number of bytes.
func ask[T any](ctx context.Context, p *patience, takes int64, read func() (T, error)) (none T, err error) {
	p.mu.Lock()
	n, bytes := p.reads, p.readBytes
	p.mu.Unlock()
	if n >= mostReads || n > 0 && bytes+takes > sandbox.MaxModule {
		return none, &PassingError{Err: fmt.Errorf("its source does not answer: reads of %d of its files are still unfinished", n)}
	}
	return waited(ctx, read, func(left bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if left {
			p.reads++
			p.readBytes += takes
		} else {
			p.reads--
			p.readBytes -= takes
		}
	})
}

// waited returns the result of do, if do returns before ctx ends or shortly after. Otherwise it calls leave(true) and returns the cause of ctx. It
// calls leave(false) when do returns later.
func waited[T any](ctx context.Context, do func() (T, error), leave func(left bool)) (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	var mu sync.Mutex // guards the variables below
	ended, left := false, false
	go func() {
		defer close(done)
		r, e := do()
		mu.Lock()
		defer mu.Unlock()
		ended = true
		if left {
			leave(false)
			return
		}
		result, err = r, e
	}()
	select {
	case <-done:
		return result, err
	case <-ctx.Done():
	}
	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case <-done:
		return result, err
	case <-last.C:
	}
	mu.Lock()
	defer mu.Unlock()
	if ended {
		return result, err
	}
	left = true
	leave(true)
	var none T
	return none, context.Cause(ctx)
}
