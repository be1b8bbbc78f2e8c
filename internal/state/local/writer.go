package local

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// Expired entries are no longer visible, so deleting them is not urgent. Each batch deletes some of them, which needs no flush of its own. If
// there are no other batches, the writer makes batches only for expired entries, with a pause between them.
const (
	sweepAlong = 256
	sweepAlone = 1000
	sweepPause = 100 * time.Millisecond
)

// write is the goroutine that makes all changes, one batch after another. While it waits for the disk, the next batch gathers.
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
		// Twice as many as the batch may add, so that the number of expired entries falls.
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

// errUnchanged rolls back a transaction that has changed nothing.
var errUnchanged = errors.New("unchanged")

// commit makes changes, and tells the waiting callers when all are on disk. It also deletes some expired entries. It returns the writes that need
// another batch.
func (s *Store) commit(writes []*write, budget int) (rest []*write) {
	if s.tight {
		return s.squeeze(writes, budget)
	}
	rest, err := s.attempt(writes, budget)
	if errors.Is(err, errUnchanged) {
		return rest
	}
	s.report(&s.writing, "written", err)
	if s.tight = err != nil; s.tight {
		return s.squeeze(writes, budget)
	}
	return rest
}

// refusedFor is how long writes of a space are refused at once after one has failed: each attempt takes time that other spaces wait for.
const refusedFor = 100 * time.Millisecond

// A refusal is the error of a space's last attempt, and how long it holds.
type refusal struct {
	err   error
	until time.Time
}

// squeeze makes changes after a batch has failed, as on a full disk. Deletions go first, since space is reserved for them. Writes of spaces that have
// just failed are refused, so that the others don't wait for them.
func (s *Store) squeeze(writes []*write, budget int) (rest []*write) {
	var deletes, sets, doubtful []*write
	now := time.Now()
	for _, w := range writes {
		switch last, failed := s.refused[w.space]; {
		case w.record == nil:
			deletes = append(deletes, w)
		case !failed:
			sets = append(sets, w)
		default:
			if now.Before(last.until) && s.db.stillFull() {
				w.done <- outcome{err: last.err}
				continue
			}
			doubtful = append(doubtful, w)
		}
	}
	s.tight = false // until something fails again
	if next, due := s.nextDue(); len(deletes) > 0 || due && !now.Before(next) {
		rest = s.apart(deletes, budget)
	}
	if len(sets) > 0 {
		rest = append(rest, s.apart(sets, 0)...)
	}
	if len(doubtful) > 0 {
		rest = append(rest, s.apart(doubtful, 0)...)
	}
	if s.tight = s.tight || s.db.stillFull() || s.db.broken() != nil; !s.tight {
		s.refused = nil
		s.report(&s.writing, "written", nil)
	}
	return rest
}

// apart makes changes together or, if that fails, space by space. Then only the writes of the space that fills the disk fail.
func (s *Store) apart(writes []*write, budget int) (rest []*write) {
	rest, err := s.attempt(writes, budget)
	if err == nil || errors.Is(err, errUnchanged) {
		for _, w := range writes[:len(writes)-len(rest)] {
			delete(s.refused, w.space)
		}
		return rest
	}
	s.tight = true
	s.report(&s.writing, "written", err)
	some, others := halves(writes)
	switch {
	case s.db.broken() != nil || len(others) == 0 && budget == 0:
		for _, w := range writes {
			w.done <- outcome{err: err}
			if w.record != nil {
				if s.refused == nil {
					s.refused = map[string]refusal{}
				}
				s.refused[w.space] = refusal{err, time.Now().Add(refusedFor)}
			}
		}
		return nil
	case len(others) == 0:
		return s.apart(writes, 0) // without a sweep
	}
	return append(s.apart(some, 0), s.apart(others, 0)...)
}

// halves splits the writes by space. others is empty if all are of one space.
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

// attempt makes as many changes as a batch may have, in one transaction. If it returns an error, no change was made, and no caller was told.
func (s *Store) attempt(writes []*write, budget int) (rest []*write, err error) {
	b := newBatch(s.due)
	var outcomes []outcome
	var unfinished string // the space of a write that has filled the batch, and must go on in another one
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
		if err := b.flush(); err != nil {
			return err
		}
		s.db.makeRoom(tx, b)
		return nil
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
	var own []*write // writes of this space, which has had its turn
	others := slices.DeleteFunc(rest, func(w *write) bool {
		if w.space == unfinished {
			own = append(own, w)
		}
		return w.space == unfinished
	})
	return append(others, own...), err
}

// update runs a transaction. If the file was given up, the caller must not use what f was to set, since f may still be running.
func (s *Store) update(f func(*bbolt.Tx) error) error {
	err := s.db.update(f)
	if !errors.Is(err, errUnchanged) {
		unavailable(&err)
	}
	return err
}

// report logs that reading or writing fails, or works again. If the file was given up, it logs that only once.
func (s *Store) report(h *health, what string, err error) {
	broken := s.db.broken()
	if broken == nil {
		h.report(s.log, what, err)
		return
	}
	s.told.Do(func() { s.log.Error("this process has lost the state, so tools get errors", slog.Any("error", broken)) })
}

// health says what was last logged about reading or writing.
type health struct {
	mu     sync.Mutex
	failed time.Time // when a failure was logged; zero means it works
}

// reportPause is the least time between two log lines after a failure.
const reportPause = 10 * time.Second

// report logs a failure, or that something works again.
func (h *health) report(log *slog.Logger, what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && h.failed.IsZero() || time.Since(h.failed) <= reportPause:
	case err == nil:
		h.failed = time.Time{}
		log.Info("the state can be " + what + " again")
	default:
		h.failed = time.Now()
		log.Error("the state can't be "+what+", so tools get errors: look at the disk", slog.Any("error", err))
	}
}
