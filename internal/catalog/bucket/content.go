package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/state"
)

const (
	// tries is how often a content is fetched before an error is returned: somebody may be putting the same content just now.
	tries = 3
	// tryAgain is the pause between two tries.
	tryAgain = 50 * time.Millisecond
)

// errLost is returned for a content that is missing or damaged in the bucket.
var errLost = errors.New("its content in the bucket is missing, or doesn't match its digest: put the file again")

// content returns the content with a digest, from the cache or else from the bucket. The last Read fails if the digest doesn't match.
func (b *Bucket) content(ctx context.Context, digest string, size int64) (io.ReadCloser, error) {
	if kept, err := b.options.Cache.Open(digest, size); err == nil {
		return kept, nil
	}
	give, err := b.fetching.take(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer give()
	for try := 1; ; try++ {
		if kept, err := b.options.Cache.Open(digest, size); err == nil { // another file has the same content
			return kept, nil
		}
		err := b.options.Cache.Keep(b, digest, func(w io.Writer) error {
			content, err := b.objects.Get(ctx, digest, size)
			if err != nil {
				return err
			}
			defer content.Close()
			_, err = io.Copy(w, content)
			return err
		})
		switch {
		case err == nil:
			continue
		case errors.Is(err, registry.ErrUncached):
			return b.direct(ctx, digest, size)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case try < tries && pause(ctx, tryAgain):
			continue
		case errors.Is(err, state.ErrUnavailable):
			return nil, &catalog.PassingError{Err: err}
		}
		return nil, &catalog.PassingError{Err: fmt.Errorf("%w (%w)", errLost, err)}
	}
}

// direct returns a content from the bucket without keeping it in the cache.
func (b *Bucket) direct(ctx context.Context, digest string, size int64) (io.ReadCloser, error) {
	content, err := b.objects.Get(ctx, digest, size)
	if err != nil {
		return nil, &catalog.PassingError{Err: err}
	}
	return registry.Verify(content, digest, func() error { return &catalog.PassingError{Err: errLost} }), nil
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// turns let only one goroutine at a time work on a name.
type turns struct {
	mu sync.Mutex
	of map[string]chan struct{} // closed when the turn ends
}

func (t *turns) take(ctx context.Context, name string) (give func(), err error) {
	for {
		t.mu.Lock()
		before, taken := t.of[name]
		if !taken {
			done := make(chan struct{})
			t.of[name] = done
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.of, name)
				t.mu.Unlock()
				close(done)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
