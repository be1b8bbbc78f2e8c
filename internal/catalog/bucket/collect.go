package bucket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// collectEvery is about how often contents without a record are removed.
	collectEvery = time.Hour
	// unnamed is how long a content without a record stays, and leastUnnamed how long it stays in a full bucket. They must be longer than the
	// minutes by which clocks may differ, and the time between the writing of a content and of its record, which is less than a minute.
	unnamed, leastUnnamed = time.Hour, 10 * time.Minute
)

// collect removes contents without a record, until the bucket is closed.
func (b *Bucket) collect() {
	for pause(b.ctx, collectEvery/2+rand.N(collectEvery)) {
		if removed, err := b.Collect(b.ctx, unnamed); err != nil && b.ctx.Err() == nil && !errors.Is(err, state.ErrUnavailable) {
			b.options.Logger.Warn("contents that no file uses any more could not be removed from the bucket", "bucket", b.options.Name, "error", err)
		} else if removed > 0 {
			b.options.Logger.Info("removed contents that no file uses any more from the bucket", "bucket", b.options.Name, "contents", removed)
		}
	}
}

// Collect removes contents that no record names and that are older than age. It removes nothing if a record can't be read, since that record may name
// any content.
func (b *Bucket) Collect(ctx context.Context, age time.Duration) (removed int, err error) {
	named := map[string]bool{}
	b.mu.Lock()
	switch {
	case !b.synced || b.failed != nil:
		err = fmt.Errorf("%w: the bucket's content is not known", state.ErrUnavailable)
	case b.more:
		err = errMore
	}
	for name, f := range b.files {
		if f.err != nil {
			err = fmt.Errorf("%s: %w", text.Short(name), f.err)
		}
		for _, k := range f.Kept {
			named[k.Digest] = true
		}
	}
	b.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return b.objects.Collect(ctx, age, func(object string) bool { return named[object] })
}

// makeRoom makes room for a content, by removing others that no record names. It returns an error if that is not enough.
func (b *Bucket) makeRoom(ctx context.Context, size int64) error {
	left, _, err := b.objects.Room(ctx)
	if err != nil || left >= size {
		return err
	}
	if _, err := b.Collect(ctx, leastUnnamed); err != nil {
		b.options.Logger.Warn("contents that no file uses any more could not be removed from the bucket", "bucket", b.options.Name, "error", err)
	}
	left, most, err := b.objects.Room(ctx)
	if err != nil || left >= size {
		return err
	}
	return fmt.Errorf("%w: the bucket %s may hold %s, and has room for %s more: remove files, or raise the max-bytes of OBJ_%s", state.ErrQuota, b.objects.Bucket(), text.Size(most), text.Size(max(left, 0)), b.objects.Bucket())
}

// noteAfter is how long changes are collected before the cache is told.
const noteAfter = time.Second

// note tells the cache which contents are served, until the bucket is closed.
func (b *Bucket) note() {
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.noted:
		}
		if !pause(b.ctx, noteAfter) {
			return
		}
		var all []string
		b.mu.Lock()
		synced := b.synced
		for _, f := range b.files {
			if s := f.serves(); s != nil && f.err == nil && !f.hidden {
				all = append(all, s.Digest)
			}
		}
		b.mu.Unlock()
		if synced {
			b.options.Cache.UseOnly(b, all)
		}
	}
}
