package catalog

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A stuck source has a file whose reading takes as long as the test wants, like a file whose content takes long to check.
type stuck struct {
	Source
	release chan struct{}
}

func (stuck) ID() string               { return "stuck" }
func (stuck) Place(name string) string { return name }

func (s stuck) Open(context.Context, string, string) (io.ReadCloser, error) {
	<-s.release
	return nil, errors.New("released")
}

// TestCloseWaitsForStalledRead closes a reconciler at the moment when it learns that a read takes long.
func TestCloseWaitsForStalledRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := stuck{release: make(chan struct{})}
		table, err := wasmtools.NewRouteTable()
		if err != nil {
			t.Fatal(err)
		}
		r := newReconciler(ctx, Options{Sources: []Sourced{{Source: s}}}, table, 1<<30)
		f := r.at(r.feeds[0], "x.wasm")
		f.listed = Entry{ID: "x.wasm", Version: "1", Size: 1}
		r.queueLoad(f)
		r.queues.start(ctx, r.do)
		<-time.After(2 * r.intervals.stall) // in the time of the synctest bubble
		synctest.Wait()
		cancel()
		closed := false
		go func() {
			r.close()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("it was closed while a file was being read")
		}
		close(s.release)
		synctest.Wait()
		if !closed || f.loading != nil {
			t.Errorf("after the read: closed %t, loading %v", closed, f.loading)
		}
	})
}
