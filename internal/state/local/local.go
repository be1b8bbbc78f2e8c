// Package local keeps state in one file on the local disk, state.db, which a single process uses.
//
// A write is on disk when it returns. Writes that arrive while one is under way are made durable together, by one flush of the file. A read never
// waits for a lock whose holder waits for the disk.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/internal/watch"
)

var (
	_ state.Store     = (*Store)(nil)
	_ state.Immediate = (*space)(nil)
)

// These are the errors of Open. Later, an error that wraps state.ErrUnavailable can also wrap ErrDamaged.
var (
	// ErrLocked is returned for a directory that is already in use, by another process or by this one.
	ErrLocked = errors.New("in use")
	// ErrDamaged is returned for a file whose content is not what was written.
	ErrDamaged = errors.New("damaged")
	// ErrForeign is returned for a file of another program, or of a newer version of toolsrv.
	ErrForeign = errors.New("not a state that this version can read")
)

// A Store is a state in a directory. It is safe for concurrent use.
type Store struct {
	db               *mapped
	log              *slog.Logger
	hub              watch.Hub
	queue            queue
	close            sync.Once
	closed           error
	reading, writing health
	told             sync.Once     // logs once that the file was given up
	ended            chan struct{} // closed when the writer has ended
	written          durations.Histogram
	failed           atomic.Uint64

	// Used only by the writer.
	due     map[string]int64   // for each space with entries that expire, a time before which none of them expires
	tight   bool               // the last batch failed, maybe because the disk is full
	refused map[string]refusal // the spaces whose writes failed even in a transaction of their own
}

// Options are options of Open. The zero value is ready for use.
type Options struct {
	// Log is used when reading or writing begins to fail, and when writing works again. If nil, nothing is logged.
	Log *slog.Logger
	// Forms are the newest forms of records that the program knows, by the names of their spaces (see [state.Encode]). A file with newer forms is
	// refused, since this program would misread them. Spaces that are not listed have values without forms.
	Forms map[string]byte
}

// Open opens the state in a directory, which it makes, for this user alone, if it is missing. It reads the whole file to see whether it is
// damaged, which takes one or two seconds for 1 GiB. Its errors say what to do. If another process uses the file, Open fails at once instead of
// waiting.
func Open(dir string, o Options) (*Store, error) {
	s, err := prepare(dir, o)
	if err != nil {
		return nil, fmt.Errorf("open the state: %w", err)
	}
	go s.write()
	return s, nil
}

// Lost returns a store for use where Open has failed: each use of it fails with that error.
func Lost(err error, o Options) *Store {
	s := newStore(o)
	s.db = &mapped{gone: make(chan struct{})}
	s.db.why.Store(&err)
	close(s.db.gone)
	s.report(&s.writing, "written", err)
	go s.write()
	return s
}

// prepare returns a store whose writer has not been started.
func prepare(dir string, o Options) (s *Store, err error) {
	s = newStore(o)
	s.db, s.due, err = openFile(dir, o.Forms)
	return s, err
}

func newStore(o Options) *Store {
	s := &Store{log: o.Log, ended: make(chan struct{}), queue: queue{wake: make(chan struct{}, 1)}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Close implements state.Store. If the store is broken, Close does not wait, and returns the reason.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.queue.close()
		<-s.ended
		s.hub.Close()
		s.closed = s.db.close()
	})
	return s.closed
}

// Broken returns nil, or why nothing can be kept or read until the file is opened again: the file was removed, replaced, truncated or changed by
// another program, or its disk fails.
func (s *Store) Broken() error { return s.db.examine(0) }

// Figures are what a store has written since it was opened.
type Figures struct {
	// Written says how long callers have waited until a change was on disk. Failed is how many changes could not be written.
	Written durations.Sum
	Failed  uint64
	// Bytes is the size of the file.
	Bytes int64
}

// Figures tells what was written so far.
func (s *Store) Figures() Figures {
	f := Figures{Written: s.written.Sum(), Failed: s.failed.Load()}
	if info, err := os.Lstat(s.db.path); err == nil { // otherwise Broken says why
		f.Bytes = info.Size()
	}
	return f
}

// Space implements state.Store.
func (s *Store) Space(name string) state.Space {
	return &space{store: s, name: name, values: valuesOf(name)}
}

// A space is only a name: its entries are in the file.
type space struct {
	store  *Store
	name   string
	values []byte // the name of the bucket
}

// Immediate implements state.Immediate.
func (s *space) Immediate() {}

// Set implements state.Space.
func (s *space) Set(ctx context.Context, key string, value []byte, expect int64, o state.SetOptions) (uint64, error) {
	if err := state.CheckSet(key, value, expect, o.TTL); err != nil {
		return 0, err
	}
	w := &write{space: s.name, key: key, expect: expect, quota: o.Quota}
	if o.TTL != 0 {
		w.expires = time.Now().Add(o.TTL).UnixMilli()
	}
	w.record = newRecord(value, w.expires)
	done, err := s.store.submit(ctx, w)
	return done.version, err
}

// Delete implements state.Space.
func (s *space) Delete(ctx context.Context, key string, expect int64) (bool, error) {
	if err := errors.Join(state.CheckKey(key), state.CheckExpect(expect)); err != nil {
		return false, err
	}
	done, err := s.store.submit(ctx, &write{space: s.name, key: key, expect: expect})
	return done.deleted, err
}

// Get implements state.Space.
func (s *space) Get(_ context.Context, key string, most int) (e state.Entry, ok bool, err error) {
	if err := state.CheckKey(key); err != nil {
		return e, false, err
	}
	var tooLarge error
	err = s.read(func(tx *bbolt.Tx) error {
		values := tx.Bucket(s.values)
		if values == nil {
			return nil
		}
		record := values.Get([]byte(key))
		if record == nil || len(record) >= recordLen && expired(expiryOf(record), time.Now().UnixMilli()) {
			return nil
		}
		if tooLarge = state.CheckSize(len(record)-recordLen, most); tooLarge != nil {
			return nil
		}
		s.store.db.warm(record)
		if err := check(record, key); err != nil {
			return err
		}
		e, ok = entryOf(key, record), true
		return nil
	})
	return e, ok, errors.Join(err, tooLarge)
}

// maxSkipped is how many expired entries List skips in one call, which takes some milliseconds.
const maxSkipped = 20_000

// List implements state.Space.
func (s *space) List(_ context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	if limit < 1 || limit > state.MaxPage {
		limit = state.MaxPage
	}
	var tooMany error
	err = s.read(func(tx *bbolt.Tx) error {
		values := tx.Bucket(s.values)
		if values == nil {
			return nil
		}
		now, begins, from, skipped := time.Now().UnixMilli(), []byte(prefix), []byte(max(prefix, after)), 0
		c := values.Cursor()
		for k, record := c.Seek(from); bytes.HasPrefix(k, begins) && k != nil; k, record = c.Next() {
			switch {
			case string(k) == after:
			case len(record) >= recordLen && expired(expiryOf(record), now):
				if skipped++; skipped < maxSkipped {
					continue
				}
				if more = true; len(keys) == 0 {
					tooMany = fmt.Errorf("%w: %d entries have just expired: try again in some seconds", state.ErrUnavailable, skipped)
				}
				return nil
			case len(keys) == limit:
				more = true
				return nil
			default:
				keys = append(keys, string(k))
			}
		}
		return nil
	})
	return keys, more, errors.Join(err, tooMany)
}

// Usage implements state.Space.
func (s *space) Usage(context.Context) (u state.Usage, err error) {
	err = s.read(func(tx *bbolt.Tx) error {
		t, err := decodeTally(tx.Bucket(talliesName).Get([]byte(s.name)))
		u = t.Usage
		return err
	})
	return u, err
}

// Watch implements state.Space.
func (s *space) Watch(ctx context.Context, prefix string) iter.Seq2[state.Event, error] {
	return s.store.hub.Watch(ctx, s, s.name, prefix)
}

// read calls f with the file as it is now. Byte slices that f reads are the file's own memory, valid only until f returns.
func (s *space) read(f func(tx *bbolt.Tx) error) error {
	err := s.store.db.view(f)
	if err != nil && !errors.Is(err, berrors.ErrDatabaseNotOpen) {
		s.store.report(&s.store.reading, "read", err)
	}
	unavailable(&err)
	return err
}

// unavailable makes err wrap state.ErrUnavailable.
func unavailable(err *error) {
	if *err != nil {
		*err = fmt.Errorf("%w: %w", state.ErrUnavailable, *err)
	}
}
