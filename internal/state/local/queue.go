package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A write is a change that a caller waits for.
type write struct {
	space, key string
	record     []byte // nil: delete
	expires    int64
	expect     int64
	quota      state.Usage
	done       chan outcome // has room for one value
}

// An outcome says how a write ended.
type outcome struct {
	version uint64
	deleted bool
	later   bool // not done yet: it needs another batch
	err     error
}

// submit passes a change to the writer, and waits until it is on disk.
func (s *Store) submit(ctx context.Context, w *write) (outcome, error) {
	w.done = make(chan outcome, 1)
	begun := time.Now()
	if !s.queue.push(w) {
		return outcome{}, fmt.Errorf("%w: it is closed", state.ErrUnavailable)
	}
	select {
	case o := <-w.done:
		if errors.Is(o.err, state.ErrUnavailable) {
			s.failed.Add(1)
		} else {
			s.written.Add(time.Since(begun))
		}
		return o, o.err
	case <-ctx.Done():
		s.queue.withdraw(w)
		return outcome{}, context.Cause(ctx)
	}
}

// Bounds on what is written together. They keep one space's writes from delaying other spaces for long.
const (
	maxBatch      = 1000
	maxBatchBytes = 4 << 20
)

// A queue holds the writes that wait for the writer. Spaces take turns, so that a space with many writes does not keep others waiting. The queue
// needs memory only for callers that wait: a caller that gives up withdraws its write.
type queue struct {
	wake chan struct{} // has room for one value, sent when a write is waiting or the queue is closed

	mu      sync.Mutex
	closed  bool
	waiting map[string][]*write // by space
	turns   []string            // the spaces of waiting
}

// push adds a write. It returns false if the queue is closed.
func (q *queue) push(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.waiting == nil {
		q.waiting = map[string][]*write{}
	}
	if len(q.waiting[w.space]) == 0 {
		q.turns = append(q.turns, w.space)
	}
	q.waiting[w.space] = append(q.waiting[w.space], w)
	q.notify()
	return true
}

// withdraw removes a write, unless the writer has taken it.
func (q *queue) withdraw(w *write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[w.space]
	i := slices.Index(waiting, w)
	if i < 0 {
		return
	}
	if waiting = slices.Delete(waiting, i, i+1); len(waiting) > 0 {
		q.waiting[w.space] = waiting
		return
	}
	delete(q.waiting, w.space)
	q.turns = slices.DeleteFunc(q.turns, func(space string) bool { return space == w.space })
}

// take returns the writes of the next batch, one of each space in turn. closed is true once the queue is closed and empty.
func (q *queue) take() (batch []*write, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := 0
	for len(q.turns) > 0 && len(batch) < maxBatch && size < maxBatchBytes {
		space := q.turns[0]
		q.turns = q.turns[1:]
		w, rest := q.waiting[space][0], q.waiting[space][1:]
		if batch, size = append(batch, w), size+len(w.key)+len(w.record); len(rest) == 0 {
			delete(q.waiting, space)
			continue
		}
		q.waiting[space] = rest
		q.turns = append(q.turns, space)
	}
	if len(q.turns) > 0 {
		q.notify()
	}
	return batch, q.closed && len(batch) == 0
}

// putBack puts writes back at the front of the queue, in their order, after take has removed them.
func (q *queue) putBack(writes []*write) {
	if len(writes) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var first []string
	again := map[string][]*write{}
	for _, w := range writes {
		if len(again[w.space]) == 0 {
			first = append(first, w.space)
		}
		again[w.space] = append(again[w.space], w)
	}
	for _, space := range q.turns {
		if len(again[space]) == 0 {
			first = append(first, space)
		}
	}
	q.turns = first
	for space, writes := range again {
		q.waiting[space] = append(writes, q.waiting[space]...)
	}
	q.notify()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.notify()
}

func (q *queue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
