// Package registry is a source of a catalog that takes one module from an OCI registry.
//
// A source that names a tag, or a range of versions, regularly asks the registry what that refers to. A digest never changes, so once its module has
// been pulled, the registry is not asked again. What was pulled is kept in a [Cache]. It is served from there while the registry is unreachable, even
// at a start, and verified again each time that it is read.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/oci"
)

// Options say where to get a module. Repository, Which and Cache are required.
type Options struct {
	// Repository is the repository, without a tag or a digest.
	Repository oci.Reference
	// Mirrors are repositories that have copies of its artifacts. An artifact whose digest is known is pulled from them first. They are reached as
	// Registry says, but always over TLS unless they are on loopback.
	Mirrors []oci.Reference
	// Patience is how long a mirror may keep silent; 0 means 10 seconds.
	Patience time.Duration
	// Which is a tag, a range of versions such as "~1.2", or a digest.
	Which string
	// Locked is the digest that the tag or the range had when it was locked. If empty, the registry decides.
	Locked string
	// Registry says how the registry is reached, and whose signatures are accepted. If Which is a digest, or Locked is set, no signature is required:
	// the operator who wrote the digest has decided what is served.
	Registry oci.Options
	// Cache keeps what was pulled.
	Cache *Cache
	// Logger gets a line when something new is served. Nil discards.
	Logger *slog.Logger
	// Poll is the time between two requests to the registry; 0 means a minute.
	Poll time.Duration
}

const (
	defaultPoll = time.Minute
	firstRetry  = time.Second
	maxRetry    = 5 * time.Minute
	lookTimeout = 15 * time.Minute // how long a look may take, including a pull if one is necessary
	listWithin  = 40 * time.Second // less than a catalog waits, so that the catalog gets the actual error
)

// A Source is a source with one module of a registry. Close it after the Catalog that uses it.
type Source struct {
	options Options // Locked, Mirrors and Registry keep their first values
	asks    atomic.Pointer[asked]

	changes chan struct{}
	tried   chan struct{} // closed once the registry was asked, or the cache had a record
	once    sync.Once     // closes it
	stopped sync.WaitGroup

	control sync.Mutex // guards stop, done and closed
	stop    context.CancelFunc
	done    <-chan struct{} // closed once the goroutine that follows has ended
	closed  bool

	mu     sync.Mutex
	held   *held
	failed error // why the last look failed, or nil
}

// held is what is served.
type held struct {
	record
	kept bool // the module was put into the cache, which may have lost it since
}

var _ catalog.Source = (*Source)(nil)

// Open starts to follow a module. It does not wait for the registry.
func Open(o Options) (*Source, error) {
	s := &Source{options: o, changes: make(chan struct{}, 1), tried: make(chan struct{})}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	s.options.Poll = cmp.Or(o.Poll, defaultPoll)
	asks, err := s.open(o)
	if err != nil {
		return nil, err
	}
	s.asks.Store(asks)
	if r, ok := o.Cache.last(s.ID()); ok && r.Policy == asks.policy() && (asks.pin == "" || r.Manifest == asks.pin) {
		s.held = &held{record: r, kept: true}
		o.Cache.use(s, r.Module)
		s.once.Do(func() { close(s.tried) })
	}
	s.begin()
	return s, nil
}

// ID returns the reference, with the tag, range or digest from the configuration.
func (s *Source) ID() string {
	if strings.HasPrefix(s.options.Which, "sha256:") {
		return oci.Scheme + s.options.Repository.String() + "@" + s.options.Which
	}
	return oci.Scheme + s.options.Repository.String() + ":" + s.options.Which
}

// Place returns the reference, since the source has only one file.
func (s *Source) Place(string) string { return s.ID() }

// Changes sends a value when another module is to be served, or when a problem arises or ends.
func (s *Source) Changes() <-chan struct{} { return s.changes }

// Close ends it.
func (s *Source) Close() error {
	s.control.Lock()
	s.closed = true
	s.stop()
	s.control.Unlock()
	s.stopped.Wait()
	s.asks.Load().peers.Close()
	s.options.Cache.release(s)
	return nil
}

// List waits until it is known whether there is a module, and returns it.
func (s *Source) List(ctx context.Context) (*catalog.Listing, error) {
	select {
	case <-s.tried:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(listWithin):
		return nil, fmt.Errorf("it has not been pulled yet: it is being pulled, or is waiting for its turn, since %d at a time are pulled from a registry", maxPulls)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return nil, s.failed
	}
	l := &catalog.Listing{Entries: []catalog.Entry{{ID: s.name(), Version: s.held.Module, Size: s.held.Size}}}
	if s.failed != nil {
		l.Problems = []catalog.Problem{{Name: ".", Err: fmt.Errorf("%w; serving what was pulled before", s.failed)}}
	}
	return l, nil
}

// name returns the name of the file.
func (s *Source) name() string { return path.Base(s.options.Repository.Repository) + ".wasm" }

// Open returns the module, from the cache or else from the registry. It is verified while it is read.
func (s *Source) Open(ctx context.Context, name, version string) (io.ReadCloser, error) {
	s.mu.Lock()
	h := s.held
	s.mu.Unlock()
	if h == nil || name != s.name() || version != h.Module {
		return nil, catalog.ErrChanged
	}
	if !h.kept {
		return s.stream(ctx, h), nil
	}
	if f, err := s.options.Cache.open(h.record); err == nil {
		return f, nil
	}
	// Somebody has emptied or damaged the cache.
	again, err := s.pull(ctx, h.Manifest)
	switch {
	case err != nil:
		return nil, err
	case again.Module != version: // the cache's record of the artifact was changed, too
		s.hold(again, nil)
		return nil, catalog.ErrChanged
	case !again.kept:
		s.hold(again, nil)
		return s.stream(ctx, again), nil
	}
	return s.options.Cache.open(again.record)
}

// stream returns a module as it comes from the registry, because the cache can't keep it. The last Read fails unless it is the module that was
// verified before.
func (s *Source) stream(ctx context.Context, h *held) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	from, to := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := s.copy(ctx, h.Manifest, to)
		if err != nil {
			err = &catalog.PassingError{Err: err} // so that an unreachable registry is not asked again without a pause
		} else if r.Module != h.Module {
			err = catalog.ErrChanged
		}
		to.CloseWithError(err) // nil means EOF
	}()
	return &streamed{from, cancel, done}
}

// streamed is a module that is being transferred. Close stops the transfer and waits until it has ended.
type streamed struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   <-chan struct{}
}

func (s *streamed) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// follow asks the registry until ctx ends.
func (s *Source) follow(ctx context.Context) {
	wait := firstRetry
	for ctx.Err() == nil {
		next, err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			wait = firstRetry
		}
		s.hold(next, err)
		pause, least := s.options.Poll, time.Duration(0)
		if err != nil {
			pause, wait = wait, min(2*wait, maxRetry)
			if busy, ok := errors.AsType[*oci.BusyError](err); ok {
				least = busy.After
			}
		} else if s.asks.Load().pin != "" {
			return // a digest always means the same module
		}
		// The jitter spreads the requests of many servers over time. No request comes too early because of it.
		timer := time.NewTimer(max(least, pause*9/10) + rand.N(pause/5+1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look asks what is to be served now. It returns nil if that has not changed.
func (s *Source) look(ctx context.Context) (*held, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("it took longer than %v", lookTimeout))
	defer cancel()
	s.mu.Lock()
	now := s.held
	s.mu.Unlock()
	asks := s.asks.Load()
	digest := asks.pin
	if digest == "" {
		var err error
		if digest, _, err = asks.peers.Origin().Find(ctx, s.options.Repository, s.options.Which); err != nil {
			return nil, err
		}
	}
	if now != nil && now.Manifest == digest && now.Policy == asks.policy() && (!now.kept || s.options.Cache.has(now.record)) {
		return nil, nil
	}
	return s.pull(ctx, digest)
}

// hold stores what is to be served and notifies the catalog, if anything has changed.
func (s *Source) hold(next *held, err error) {
	s.mu.Lock()
	told := next != nil || (err == nil) != (s.failed == nil) || err != nil && err.Error() != s.failed.Error()
	if next != nil {
		if s.held == nil || s.held.Manifest != next.Manifest {
			s.options.Logger.Info("pulled from a registry", "reference", s.ID(), "digest", next.Manifest, "bytes", next.Size)
		}
		s.held = next
	}
	s.failed = err
	s.mu.Unlock()
	if next != nil && next.kept {
		s.options.Cache.useOnly(s, next.Module)
	}
	s.once.Do(func() { close(s.tried) })
	if told {
		select {
		case s.changes <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
