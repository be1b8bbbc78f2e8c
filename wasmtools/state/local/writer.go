package local

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/wasmtools/state"
)

// Expired entries are no longer seen, so there is no hurry to delete them: each batch takes some along, for which the file is not
// flushed once more, and where there is none, one is made for them alone, with a pause before the next.
const (
	sweepAlong = 256
	sweepAlone = 1000
	sweepPause = 100 * time.Millisecond
)

// write is the goroutine that makes all changes, one batch after the other. While it waits for the disk, the next batch gathers.
func (s *Store) write() {
	defer close(s.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		budget := sweepAlong
		select {
		case <-s.queue.wake:
		case <-timer.C:
			budget = sweepAlone
		}
		writes, closed := s.queue.take()
		if closed {
			return
		}
		// Twice what may be added, so that expired entries become fewer.
		s.commit(writes, max(budget, 2*len(writes)))
		if next, ok := s.nextDue(); ok {
			timer.Reset(max(time.Until(next), sweepPause))
		}
	}
}

// nextDue returns when something may expire next.
func (s *Store) nextDue() (next time.Time, ok bool) {
	var first int64
	for _, at := range s.due {
		if first == 0 || at < first {
			first = at
		}
	}
	return time.UnixMilli(first), first != 0
}

// errUnchanged rolls a transaction back that has changed nothing.
var errUnchanged = errors.New("unchanged")

// commit makes changes, and tells those who wait for them when all are on disk. It deletes some of what has expired as well.
func (s *Store) commit(writes []*write, budget int) {
	b := newBatch(s.due)
	outcomes := make([]outcome, len(writes))
	err := s.update(func(tx *bbolt.Tx) error {
		b.tx = tx
		for i, w := range writes {
			var err error
			if outcomes[i], err = b.apply(w); err != nil {
				return err
			}
		}
		if err := b.sweep(budget); err != nil {
			return err
		}
		return b.flush()
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	} else {
		s.writing.report(s.log, "written", err)
	}
	for i, w := range writes {
		if err != nil {
			outcomes[i] = outcome{err: err} // what else it was is taken back with the rest
		}
		w.done <- outcomes[i]
	}
	if err != nil {
		return
	}
	for space, at := range b.next {
		if s.due[space] = at; at == 0 {
			delete(s.due, space)
		}
	}
	for _, c := range b.changes {
		s.hub.Changed(c.space, c.key)
	}
}

// update runs a transaction. An error means that it was taken back, or was not made durable. After a fault there are no more:
// the next one would wait for locks that nobody gives back.
func (s *Store) update(f func(*bbolt.Tx) error) error {
	if s.broken != nil {
		return s.broken
	}
	err := s.updateOnce(f)
	switch {
	case err == nil || errors.Is(err, errUnchanged):
		return err
	case errors.As(err, new(*fault)):
		s.broken = fmt.Errorf("%w: %w: put a backup in its place, and start again", state.ErrUnavailable, err)
		return s.broken
	}
	return fmt.Errorf("%w: %w", state.ErrUnavailable, err)
}

func (s *Store) updateOnce(f func(*bbolt.Tx) error) (err error) {
	defer caught(&err, debug.SetPanicOnFault(true))
	return s.db.Update(f)
}

// health is what was logged of how reading or writing goes.
type health struct {
	mu     sync.Mutex
	failed time.Time // when it was logged that it fails; zero: it works
}

// reportPause is how long after a failure was logged that the next may be, or that it works again.
const reportPause = 10 * time.Second

// report logs where something fails, and where it works again.
func (h *health) report(log *slog.Logger, what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && h.failed.IsZero() || time.Since(h.failed) <= reportPause:
	case err == nil:
		h.failed = time.Time{}
		log.Info("state can be " + what + " again")
	default:
		h.failed = time.Now()
		log.Error("state can't be "+what+", so tools get errors: look at the disk", slog.Any("error", err))
	}
}
