package local

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
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
		s.queue.putBack(s.commit(writes, max(budget, 2*len(writes))))
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

// commit makes changes, and tells those who wait for them when all are on disk. It deletes some of what has expired as well. It
// returns those for which another batch is needed.
func (s *Store) commit(writes []*write, budget int) (rest []*write) {
	if s.tight {
		budget = min(budget, 1)
	}
	rest, err := s.attempt(writes, budget)
	if errors.Is(err, errUnchanged) {
		return rest
	}
	s.report(&s.writing, "written", err)
	if s.tight = err != nil; s.tight {
		return s.apart(writes, budget > 0, err)
	}
	return rest
}

// apart makes changes space by space that could not be made together, as on a full disk: then only that space fails that fills it. again
// is set where those of a single space may succeed without a sweep.
func (s *Store) apart(writes []*write, again bool, failed error) (rest []*write) {
	some, others := halves(writes)
	if len(others) == 0 && !again || s.db.broken() != nil {
		for _, w := range writes {
			w.done <- outcome{err: failed}
		}
		return nil
	}
	for _, part := range [][]*write{some, others} {
		left, err := s.attempt(part, 0)
		if err != nil && !errors.Is(err, errUnchanged) {
			left = s.apart(part, false, err)
		}
		rest = append(rest, left...)
	}
	return rest
}

// halves parts the writes of several spaces: others is empty where they are all of one space.
func halves(writes []*write) (some, others []*write) {
	var spaces []string
	for _, w := range writes {
		if !slices.Contains(spaces, w.space) {
			spaces = append(spaces, w.space)
		}
	}
	for _, w := range writes {
		if slices.Index(spaces, w.space) < (len(spaces)+1)/2 {
			some = append(some, w)
		} else {
			others = append(others, w)
		}
	}
	return some, others
}

// attempt makes changes in one transaction, as many as a batch may have. Where there is an error, none was made, and nobody was told.
func (s *Store) attempt(writes []*write, budget int) (rest []*write, err error) {
	b := newBatch(s.due)
	var outcomes []outcome
	var unfinished string // the space of a write that has used the batch up, and needs another
	err = s.update(func(tx *bbolt.Tx) error {
		b.tx = tx
		for _, w := range writes {
			if b.full(0) {
				break
			}
			o, err := b.apply(w)
			if err != nil {
				return err
			}
			if o.later {
				unfinished = w.space
				break
			}
			outcomes = append(outcomes, o)
		}
		if err := b.sweep(budget); err != nil {
			return err
		}
		return b.flush()
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return nil, err
	}
	for i, o := range outcomes {
		writes[i].done <- o
	}
	for space, at := range b.next {
		if s.due[space] = at; at == 0 {
			delete(s.due, space)
		}
	}
	for _, c := range b.changes {
		s.hub.Changed(c.space, c.key)
	}
	rest = writes[len(outcomes):]
	if unfinished == "" {
		return rest, err
	}
	var own []*write // has had its turn
	others := slices.DeleteFunc(rest, func(w *write) bool {
		if w.space == unfinished {
			own = append(own, w)
		}
		return w.space == unfinished
	})
	return append(others, own...), err
}

// update runs a transaction, of which nothing may be used where the file was given up: it may still be running.
func (s *Store) update(f func(*bbolt.Tx) error) error {
	err := s.db.update(f)
	if !errors.Is(err, errUnchanged) {
		unavailable(&err)
	}
	return err
}

// report logs how reading or writing goes. That the file was given up is told once.
func (s *Store) report(h *health, what string, err error) {
	broken := s.db.broken()
	if broken == nil {
		h.report(s.log, what, err)
		return
	}
	s.told.Do(func() { s.log.Error("state is lost for this process, so tools get errors", slog.Any("error", broken)) })
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
