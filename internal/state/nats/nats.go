// Package nats keeps state in a bucket of NATS JetStream, which several processes share.
//
// Each process has a copy of all keys, and of small values. The copy takes over the stream's messages in their order, up to a position. So a reader
// never sees half of a change, and never waits. A write goes to the stream's leader, and returns once the copy has it. It is one atomic batch, which
// the leader accepts only if the space has not changed since the copy's position. So expected versions and quotas hold across all processes.
//
// A process that is cut off goes on reading what it has, and writes nothing.
package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/internal/watch"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

var (
	_ state.Store = (*Store)(nil)
	_ state.Space = (*space)(nil)

	_ state.Shared = (*space)(nil)
	_ state.Formed = (*space)(nil)
)

// A Store is a state in a bucket. It is safe for concurrent use.
type Store struct {
	peers
	options Options
	conn    *client.Conn
	js      jetstream.JetStream
	bucket  bucket
	hub     watch.Hub
	running sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context // done when the store is closed
	ended   chan struct{}   // closed when Close begins
	once    sync.Once
	kicked  chan struct{} // receive a value when the stream is to be followed again, or looked at
	looking chan struct{}
	ready   chan struct{} // closed when the copy is complete for the first time, or never will be
	places  chan struct{} // holds a value for each batch under way

	mu   sync.RWMutex
	copy replica

	clock   clock
	rights  rights
	room    room
	forms   forms
	health  health
	writers writers
	written durations.Histogram
	lost    atomic.Uint64 // writes that failed

	// Others may write anything into the bucket, as often as they like, so these log only some of it.
	foreign, damaged, formless *trouble.Recurring
}

// Options are options of Open.
type Options struct {
	// URL names the servers, as in "nats://a,b:4223,c", or "tls://a".
	URL string
	// Credentials is a file with a user's JWT and seed, or "".
	Credentials string
	// CA is a file with the certificates that sign the servers' certificates; "" means those of the system. Certificate and Key are files by which the
	// servers recognize this client, or "".
	CA, Certificate, Key string
	// Prefix is the name of the bucket.
	Prefix string
	// Log is used when the state is cut off, and when it is complete again. If nil, nothing is logged.
	Log *slog.Logger
	// Forms are the newest forms of records that the program knows, by the names of their spaces (see [state.Encode]).
	Forms map[string]byte
	// FormsFor is how long a version counts after it has used the state; 0 means a day. Newer forms are written once all versions that count know them.
	FormsFor time.Duration
	// Now returns the time by which entries expire. If nil, it is the servers' time, so that processes agree whatever their clocks say.
	Now func() time.Time
	// Limit is how long a write may take; 0 means 4 s.
	Limit time.Duration
	// Dial connects the client without a network. If nil, it uses TCP.
	Dial client.InProcessConnProvider
}

// Bounds of the copy, so that the bucket can't fill this process's memory.
const (
	// inlineBytes is the size of the largest value that the copy holds. Larger ones are read from the servers.
	inlineBytes = 16 << 10
	// maxValues is how many bytes of values the copy holds.
	maxValues = 256 << 20
	// maxEntries is how many keys and spaces toolsrv writes at most, and maxNames how many bytes their names may have together. If other programs
	// add a third to that, the store gives up.
	maxEntries = 1_500_000
	maxNames   = 384 << 20
)

// limitDefault is how long a write may take: less than the default limit of a tool's call, so that the call's error can say what it waited for.
const limitDefault = 4 * time.Second

// Open connects to the servers, and makes the bucket if it is missing. It returns once the copy is complete, or with an error when ctx ends.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := Begin(o)
	if err := s.Wait(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Begin returns a store that connects to the servers in the background, and makes the bucket if it is missing. All uses fail with ErrUnavailable
// until the copy is complete. Until then it logs every ten seconds what it waits for.
func Begin(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Limit == 0 {
		o.Limit = limitDefault
	}
	if o.FormsFor == 0 {
		o.FormsFor = countsFor
	}
	s := &Store{
		options: o, bucket: bucket(o.Prefix), ended: make(chan struct{}),
		kicked: make(chan struct{}, 1), looking: make(chan struct{}, 1), ready: make(chan struct{}), places: make(chan struct{}, mostBatches),
		copy: newReplica(), writers: writers{of: map[string]*writer{}},
	}
	begins := func(what string) *trouble.Recurring { return trouble.NewRecurring(o.Log, slog.LevelWarn, what, "") }
	s.foreign = begins("a message in the bucket of the state is ignored, since toolsrv does not write such messages")
	s.damaged = begins("an entry in the bucket of the state can't be read, and counts as deleted")
	s.formless = begins("the state's information about the forms of records is ignored")
	s.peers = peers{s}
	s.forms = forms{store: s, known: o.Forms, counts: o.FormsFor, whole: make(chan struct{})}
	if s.options.Now == nil {
		s.options.Now = s.clock.now
	}
	s.health.cut = &Cut{time.Now(), errors.New("NATS has not been reached yet")}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.running.Go(func() {
		if err := s.connect(s.ctx); err != nil {
			if s.ctx.Err() == nil {
				s.lose(err)
			}
			return
		}
		s.running.Go(s.follow)
		s.running.Go(s.forms.agree)
		s.running.Go(s.look)
		s.running.Go(func() { s.room.measure(s) })
		s.running.Go(s.sweep)
	})
	return s
}

// Wait returns once the copy is complete. Its errors say what to do. If it returns because ctx has ended, the store goes on trying.
func (s *Store) Wait(ctx context.Context) error {
	var err error
	select {
	case <-s.ready:
		err = s.Broken()
	case <-ctx.Done():
		cut := s.CutOff()
		if cut == nil { // the copy has just become complete
			return s.Broken()
		}
		err = fmt.Errorf("%w: it was not read in time (%w); the last error was: %w", state.ErrUnavailable, context.Cause(ctx), cut.Why)
	}
	if err != nil {
		return fmt.Errorf("open the state at %s: %w", s.options.URL, err)
	}
	return nil
}

// Close implements state.Store.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.ended)
		s.writers.wait()
		s.stop()
		s.running.Wait()
		s.hub.Close()
		if s.conn != nil {
			s.conn.Close()
		}
	})
	return nil
}

// usable returns why nothing can be read or written, or nil.
func (s *Store) usable() error {
	select {
	case <-s.ended:
		return fmt.Errorf("%w: it is closed", state.ErrUnavailable)
	default:
	}
	select {
	case <-s.ready:
		return s.Broken()
	default:
		return fmt.Errorf("%w: it has not been read yet", state.ErrUnavailable)
	}
}

// Figures are what a store has written since it was opened.
type Figures struct {
	// Written says how long callers have waited until a change was made. Failed is how many changes could not be written.
	Written durations.Sum
	Failed  uint64
}

// Figures tells what was written so far.
func (s *Store) Figures() Figures { return Figures{s.written.Sum(), s.lost.Load()} }

// Objects returns the object bucket of a name, which may have only letters, digits, - and _.
func (s *Store) Objects(name string) *Objects { return &Objects{s, s.options.Prefix + "_" + name} }

// Space implements state.Store.
func (s *Store) Space(name string) state.Space { return &space{s, name} }

// A space is only a name: its entries are in the copy.
type space struct {
	store *Store
	name  string
}

// Get implements state.Space.
func (s *space) Get(ctx context.Context, key string, most int) (state.Entry, bool, error) {
	if err := errors.Join(state.CheckKey(key), s.store.usable()); err != nil {
		return state.Entry{}, false, err
	}
	for try := 0; ; try++ {
		s.store.mu.RLock()
		e := s.store.copy.get(s.name, key, s.store.now())
		s.store.mu.RUnlock()
		switch {
		case e == nil:
			return state.Entry{}, false, nil
		case e.size > most:
			return state.Entry{}, false, state.CheckSize(e.size, most)
		case e.held:
			return e.entry(append([]byte{}, e.value...)), true, nil
		}
		value, err := s.store.fetch(ctx, s.name, e)
		if err == nil {
			return e.entry(value), true, nil
		}
		if !errors.Is(err, errGone) || try == 2 {
			return state.Entry{}, false, causeOf(ctx, err)
		}
		// Somebody has just written the key: wait for the new entry.
		if err := s.store.barrier(ctx, s.name); err != nil {
			return state.Entry{}, false, causeOf(ctx, err)
		}
	}
}

// Set implements state.Space.
func (s *space) Set(ctx context.Context, key string, value []byte, expect int64, o state.SetOptions) (uint64, error) {
	if err := errors.Join(state.CheckSet(key, value, expect, o.TTL), s.store.forms.check(s.name, value)); err != nil {
		return 0, err
	}
	w := &write{key: key, value: append([]byte{}, value...), expect: expect, quota: o.Quota}
	if o.TTL != 0 {
		w.expires = s.store.options.Now().Add(o.TTL).UnixMilli()
	}
	done, err := s.store.submit(ctx, s.name, w)
	return done.version, err
}

// Delete implements state.Space.
func (s *space) Delete(ctx context.Context, key string, expect int64) (bool, error) {
	if err := errors.Join(state.CheckKey(key), state.CheckExpect(expect)); err != nil {
		return false, err
	}
	done, err := s.store.submit(ctx, s.name, &write{key: key, expect: expect, deletes: true})
	return done.deleted, err
}

// Refresh implements state.Shared.
func (s *space) Refresh(ctx context.Context) error {
	if err := s.store.writable(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.store.options.Limit)
	defer cancel()
	if err := s.store.barrier(limited, s.name); err != nil {
		return causeOf(ctx, err)
	}
	return nil
}

// List implements state.Space.
func (s *space) List(_ context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	if err := s.store.usable(); err != nil {
		return nil, false, err
	}
	if limit < 1 || limit > state.MaxPage {
		limit = state.MaxPage
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	return s.store.copy.list(s.name, prefix, after, limit, s.store.now())
}

// Usage implements state.Space.
func (s *space) Usage(context.Context) (u state.Usage, err error) {
	if err := s.store.usable(); err != nil {
		return u, err
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	if c := s.store.copy.spaces[s.name]; c != nil {
		u = c.usage
	}
	return u, nil
}

// Watch implements state.Space. After a process was cut off, it yields the changes that were made meanwhile.
func (s *space) Watch(ctx context.Context, prefix string) iter.Seq2[state.Event, error] {
	return s.store.hub.Watch(ctx, s, s.name, prefix)
}

// now is the time in Unix milliseconds.
func (s *Store) now() int64 { return s.options.Now().UnixMilli() }

// within is [context.WithTimeout] with a cause that wraps state.ErrUnavailable: it is not the caller's own time that has run out.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: NATS did not answer within %v", state.ErrUnavailable, limit))
}

// causeOf returns the cause of ctx if ctx is done. Otherwise it makes err wrap state.ErrUnavailable.
func causeOf(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, state.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", state.ErrUnavailable, err)
}
