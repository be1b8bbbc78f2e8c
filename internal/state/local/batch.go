package local

import (
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/state"
)

// A batch is the changes of one transaction.
type batch struct {
	tx      *bbolt.Tx
	now     int64 // Unix milliseconds
	due     map[string]int64
	next    map[string]int64 // the new values of due, set once the batch is on disk; 0 means nothing expires
	spaces  map[string]*opened
	changes []change
	// rewrites is roughly the size in bytes of the pages that the batch replaces.
	rewrites int
	sets     bool // some changes set an entry
}

// A page of the file holds several entries, and is written again as a whole if one of them changes. A leaf of bbolt has up to four entries of any
// size, and more if they fit into a page. Until a batch is written, all of its pages are in memory, where no account counts them, and other writes
// wait. So a batch is bounded by the size of its pages, not only by its entries: a byte that is set beside large values costs megabytes.
const (
	maxRewrites = 8 << 20
	leafEntries = 4
	leafBytes   = 4 << 10
)

// full reports whether the batch has rewritten as many bytes as it may, not counting the number of bytes in before.
func (b *batch) full(before int) bool { return b.rewrites-before >= maxRewrites }

// rewrite counts the bytes that are written again when the entry of a key is added or removed: all that may be in its leaf.
func (b *batch) rewrite(s *opened, key string) {
	c := s.values.Cursor()
	found, record := c.Seek([]byte(key))
	if string(found) == key {
		found, record = c.Next()
	}
	after := beside(found, record, c.Next)
	c.Seek([]byte(key))
	found, record = c.Prev()
	b.rewrites += max(after, beside(found, record, c.Prev))
}

// beside returns the size of the following entries that may be in the same leaf.
func beside(key, record []byte, next func() (key, value []byte)) (bytes int) {
	for small, large := 0, 0; key != nil && small < leafBytes && large < leafEntries; key, record = next() {
		size := len(key) + len(record)
		if bytes += size; size < leafBytes/2 {
			small += size
		} else {
			large++
		}
	}
	return bytes
}

// A change names a key whose entry has changed.
type change struct{ space, key string }

// opened is a space in a transaction.
type opened struct {
	values, due *bbolt.Bucket // nil: never written to
	tally       tally
	changed     bool
}

func newBatch(due map[string]int64) *batch {
	return &batch{now: time.Now().UnixMilli(), due: due, next: map[string]int64{}, spaces: map[string]*opened{}}
}

// apply makes a change, or returns an outcome that says why it can't be made. After an error, nothing of the batch may be committed.
func (b *batch) apply(w *write) (outcome, error) {
	s, err := b.open(w.space, w.record != nil)
	if err != nil {
		return outcome{}, err
	}
	if s.values == nil {
		return outcome{err: state.Conflict(0, w.expect)}, nil
	}
	old := s.values.Get([]byte(w.key))
	if old != nil && expired(expiryOf(old), b.now) {
		if err := b.remove(w.space, s, w.key, old); err != nil {
			return outcome{}, err
		}
		old = nil
	}
	var version uint64
	if old != nil {
		version = versionOf(old)
	}
	if err := state.Conflict(version, w.expect); err != nil {
		return outcome{err: err}, nil
	}
	switch {
	case w.record != nil:
		return b.set(s, w, old)
	case old != nil:
		return outcome{deleted: true}, b.remove(w.space, s, w.key, old)
	}
	return outcome{}, nil
}

// open returns a space. If the space was never written to, open creates it only if create is true.
func (b *batch) open(name string, create bool) (*opened, error) {
	s := b.spaces[name]
	if s == nil {
		s = &opened{values: b.tx.Bucket(valuesOf(name)), due: b.tx.Bucket(dueOf(name))}
		var err error
		if s.tally, err = decodeTally(b.tx.Bucket(talliesName).Get([]byte(name))); err != nil {
			return nil, err
		}
		b.spaces[name] = s
	}
	if s.values != nil || !create {
		return s, nil
	}
	var err error
	if s.values, err = b.tx.CreateBucket(valuesOf(name)); err != nil {
		return nil, err
	}
	s.due, err = b.tx.CreateBucket(dueOf(name))
	return s, err
}

// set writes w's record in place of old, which is nil if there is none.
func (b *batch) set(s *opened, w *write, old []byte) (outcome, error) {
	for {
		after := s.tally.Usage
		if after.Bytes += state.SizeOf(w.key, w.record[recordLen:]); old == nil {
			after.Entries++
		} else {
			after.Bytes -= state.SizeOf(w.key, old[recordLen:])
		}
		exceeds := w.quota.Exceeds(s.tally.Usage, after)
		if exceeds == nil {
			break
		}
		// Each round frees space, so the entries that are removed are together no larger than this one. If removing them costs more than a batch may, the
		// write waits for the next batch.
		if b.full(0) {
			return outcome{later: true}, nil
		}
		if swept, err := b.sweepSpace(w.space, s, 1, 0); err != nil {
			return outcome{}, err
		} else if swept == 0 {
			return outcome{err: exceeds}, nil
		}
	}
	if old != nil {
		if err := b.remove(w.space, s, w.key, old); err != nil {
			return outcome{}, err
		}
	}
	if old == nil {
		b.rewrite(s, w.key)
	}
	b.sets = true
	b.rewrites += len(w.record)
	s.tally.version++
	seal(w.record, w.key, s.tally.version)
	if err := s.values.Put([]byte(w.key), w.record); err != nil {
		return outcome{}, err
	}
	if w.expires != 0 {
		if err := s.due.Put(dueKey(w.expires, w.key), nil); err != nil {
			return outcome{}, err
		}
		if first := b.nextDue(w.space); first == 0 || w.expires < first {
			b.next[w.space] = w.expires
		}
	}
	s.tally.Entries++
	s.tally.Bytes += state.SizeOf(w.key, w.record[recordLen:])
	s.changed = true
	if old == nil { // otherwise remove has recorded it
		b.changes = append(b.changes, change{w.space, w.key})
	}
	return outcome{version: s.tally.version}, nil
}

// remove deletes record, the record of key.
func (b *batch) remove(space string, s *opened, key string, record []byte) error {
	size := state.SizeOf(key, record[recordLen:])
	if expires := expiryOf(record); expires != 0 {
		if err := s.due.Delete(dueKey(expires, key)); err != nil {
			return err
		}
	}
	if err := s.values.Delete([]byte(key)); err != nil {
		return err
	}
	b.rewrite(s, key)
	s.tally.Entries--
	s.tally.Bytes -= size
	s.changed = true
	b.changes = append(b.changes, change{space, key})
	return nil
}

// nextDue returns a time before which nothing in a space expires; 0 means nothing does.
func (b *batch) nextDue(space string) int64 {
	if at, ok := b.next[space]; ok {
		return at
	}
	return b.due[space]
}

// sweep deletes at most budget expired entries.
func (b *batch) sweep(budget int) error {
	before := b.rewrites
	for space, at := range b.due {
		if budget <= 0 || b.full(before) {
			return nil
		}
		if !expired(at, b.now) {
			continue
		}
		s, err := b.open(space, false)
		if err != nil {
			return err
		}
		swept, err := b.sweepSpace(space, s, budget, before)
		if budget -= swept; err != nil {
			return err
		}
	}
	return nil
}

// sweepSpace deletes at most budget expired entries of a space, and stops when the batch is full. It returns how many it has deleted.
func (b *batch) sweepSpace(space string, s *opened, budget, before int) (swept int, err error) {
	if first := b.nextDue(space); !expired(first, b.now) {
		return 0, nil
	}
	var found []string // deleting may move a cursor
	b.next[space] = 0
	c := s.due.Cursor()
	for due, _ := c.First(); due != nil; due, _ = c.Next() {
		if at := dueTime(due); len(found) == budget || !expired(at, b.now) {
			b.next[space] = at
			break
		}
		found = append(found, string(due))
	}
	for _, due := range found {
		if swept > 0 && b.full(before) {
			b.next[space] = dueTime([]byte(due))
			break
		}
		key := due[dueLen:]
		record := s.values.Get([]byte(key))
		if record == nil {
			return swept, fmt.Errorf("%w: the index of expiring entries has %.60q, which does not exist", ErrDamaged, key)
		}
		if err := b.remove(space, s, key, record); err != nil {
			return swept, err
		}
		swept++
	}
	return swept, nil
}

// flush writes the tallies of the spaces that have changed.
func (b *batch) flush() error {
	tallies, changed := b.tx.Bucket(talliesName), false
	for name, s := range b.spaces {
		if !s.changed {
			continue
		}
		changed = true
		if err := tallies.Put([]byte(name), s.tally.encode()); err != nil {
			return err
		}
	}
	if !changed {
		return errUnchanged
	}
	return nil
}
