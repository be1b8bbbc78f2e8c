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

// A patience asks a source that may never answer, whatever it promises: a disk may be one of a machine that is gone. Whoever asks is told so in
// time. What was asked goes on by itself until it ends, and is bounded.
type patience struct {
	mu        sync.Mutex
	lists     bool  // a listing goes on that nobody waits for any longer
	reads     int   // the same of files
	readBytes int64 // what those have in memory at most
}

const (
	// grace is how long a source has to return when nobody waits for it any longer.
	grace = time.Second
	// mostReads is how many files of a source may be being read that nobody waits for any longer. Together they have as many bytes as a
	// module may, or there is only one.
	mostReads = 64
)

// errHangs is a source's that does not return from what it was asked before.
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

// open opens a file of the source, as that has it.
func (p *patience) open(ctx context.Context, s Source, name, version string) (io.ReadCloser, error) {
	return ask(ctx, p, 0, func() (io.ReadCloser, error) {
		content, err := s.Open(ctx, name, version)
		if err == nil && ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), content.Close())
		}
		return content, err
	})
}

// ask reads of the source, which takes a number of bytes at most.
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

// waited returns what do returns, if it does until ctx ends or a moment later. Otherwise it calls leave with true, and with false when do has
// ended.
func waited[T any](ctx context.Context, do func() (T, error), leave func(left bool)) (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	var mu sync.Mutex // guards what follows
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
