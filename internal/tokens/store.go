// Package tokens keeps bearer tokens with a name, scopes, an expiry and networks: those in the state, which are made, rotated and revoked while
// requests run, and those that the configuration declares.
//
// The state has only the digest of a token. A change is in force when the method that made it returns: requests use an index that never changes,
// which they find through an atomic pointer.
package tokens

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/trouble"
)

// Options are the settings of a Store. The zero value is usable.
type Options struct {
	// Mark is the path of a file that is made with the first token. While it exists, nobody is let in without a token, even if the state is lost. If
	// the state can't be read, the file tells whether it may contain tokens. If Mark is empty, it always may.
	Mark string
	// Unmarked lets tokens be made even if the mark can't be: the state is elsewhere, and the directory of the mark may be read-only.
	Unmarked bool
	// Logger gets a line for each record that can't be read. It may be nil.
	Logger *slog.Logger
}

// A Store has the tokens of a state. It is safe for concurrent use.
type Store struct {
	space   state.Space // nil if no token can be stored
	log     *slog.Logger
	mark    string // the path of the mark, or empty
	without bool   // whether tokens are made even without the mark
	key     [32]byte
	index   atomic.Pointer[index]
	wake    chan struct{} // holds a value after an index is published, and after other tokens are declared
	turn    chan struct{} // holds a value while somebody makes a token: see Reserve
	end     context.CancelFunc
	running sync.WaitGroup

	unmarked  *trouble.Trouble         // the mark does not exist
	declaring atomic.Pointer[Verifier] // the verifier of the configuration in force; nil if none is known

	mu     sync.Mutex // guards what follows, and publishing an index
	known  map[string]*known
	under  map[string]map[string]bool // the names of narrower tokens by their makers' names
	since  difference                 // the last publication
	uses   map[string]*atomic.Int64   // the last uses by id
	issued bool                       // a token has been made once, so nobody is let in without one
	noted  bool                       // the state says so, too, even if it has no token
	synced bool                       // all tokens have been read once
	lost   error                      // why they could not be read
	edits  uint64                     // counts the changes of known

	telling     sync.Mutex // held while subscribers are called
	subscribers []*func()
}

// Open reads the tokens in a store. If that fails, nobody is let in with a token until they can be read, and nobody without one if one may have been
// made. Open does not fail: methods of the Store return the error. If st is nil, there are no tokens and none can be made. The caller closes the
// Store, and then the state.
func Open(store state.Store, o Options) *Store {
	s := &Store{log: o.Logger, mark: o.Mark, without: o.Unmarked, issued: marked(o.Mark), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), known: map[string]*known{}, under: map[string]map[string]bool{}, uses: map[string]*atomic.Int64{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.unmarked = trouble.New(s.log.With("file", s.mark), slog.LevelWarn, "the file that records that tokens were made can't be written", "the file that records that tokens were made has been written")
	rand.Read(s.key[:]) // never fails: crypto/rand ends the program instead
	s.publish()
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	if store != nil {
		s.space = store.Space(Space)
		read := make(chan struct{})
		s.running.Go(func() { s.watch(ctx, read) })
		<-read
	}
	s.running.Go(func() { s.tend(ctx) }) // even without a state, since declared tokens expire
	return s
}

// marked reports whether the mark exists, or may exist.
func marked(mark string) bool {
	if mark == "" {
		return false
	}
	_, err := os.Lstat(mark)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// putMark makes the mark; its directory must exist.
func (s *Store) putMark() error {
	if s.mark == "" || marked(s.mark) {
		return nil
	}
	const text = "Tokens were made here, so nobody is let in without one, even if state.db is lost. To let everybody in again, remove both.\n"
	return os.WriteFile(s.mark, []byte(text), 0o600)
}

// Close stops the goroutines of the Store, and stores when tokens were last used. It returns nil, and can be called twice.
func (s *Store) Close() error {
	s.end()
	s.running.Wait()
	return nil
}

// watch follows the state. It closes read when it has read everything, or has failed to.
func (s *Store) watch(ctx context.Context, read chan<- struct{}) {
	tried := sync.OnceFunc(func() { close(read) })
	defer tried()
	unread := trouble.New(s.log, slog.LevelError, "the tokens in the state can't be read, so new ones are refused, and changes go unnoticed", "the tokens in the state can be read again")
	whole := false // all entries have been read
	state.Follow(ctx, s.space, "", state.Follower{
		Take: func(e state.Event) error {
			if !whole && !e.Deleted {
				s.load(e.Entry)
				return nil
			}
			return s.take(ctx, e)
		},
		Whole: func(keys map[string]bool) error { return s.sync(ctx, keys) },
		Failed: func(err error) {
			whole = err == nil
			if unread.Set(err) && err != nil {
				s.lose(err)
			}
			tried()
		},
	})
}

// take puts a change of the state in force, whoever has made it.
func (s *Store) take(ctx context.Context, e state.Event) error {
	if name, isName := strings.CutPrefix(e.Key, keyName); isName {
		return s.refresh(ctx, name)
	}
	if e.Key == keyIssued && !e.Deleted {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.noted = true
		s.refuseStrangers()
	}
	return nil
}

// refuseStrangers makes sure that nobody is let in without a token, since this or another process has made one. s.mu is held.
func (s *Store) refuseStrangers() {
	s.issued = true
	s.unmarked.Set(s.putMark())
}

// load reads an entry while others are still unread.
func (s *Store) load(e state.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := strings.CutPrefix(e.Key, keyName); ok {
		s.put(name, e)
		return
	}
	var last used
	switch {
	case e.Key == keyIssued:
		s.issued, s.noted = true, true
	case strings.HasPrefix(e.Key, keyUsed) && state.Decode(e.Value, Form, &last) == nil:
		for id, minute := range last {
			if use := s.useOf(id); use.Load() < minute {
				use.Store(minute)
			}
		}
	}
}

// sync publishes all that was read, without tokens that have disappeared from the state since. keys are the keys in the state.
func (s *Store) sync(ctx context.Context, keys map[string]bool) error {
	s.mu.Lock()
	if s.issued || len(s.known) > 0 {
		s.refuseStrangers()
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(s.known)), func(name string) bool { return keys[keyName+name] })
	s.synced, s.lost = true, nil
	s.settleAll("")
	s.publishAll()
	s.mu.Unlock()
	for _, name := range gone {
		if err := s.refresh(ctx, name); err != nil {
			return err
		}
	}
	s.tell()
	return nil
}

// lose records that the tokens can't be read. Tokens that have been read stay valid.
func (s *Store) lose(err error) {
	s.mu.Lock()
	if !s.synced {
		s.lost = err
		s.publish()
	}
	s.mu.Unlock()
	s.tell()
}

// refresh puts the current record of a token in force. All changes go through it, whoever made them: if another change was recorded during the read,
// it reads again, so that no old record comes back.
func (s *Store) refresh(ctx context.Context, name string) error {
	for {
		s.mu.Lock()
		before := s.edits
		s.mu.Unlock()
		e, ok, err := s.space.Get(ctx, keyName+name, maxRecord)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.edits != before {
			s.mu.Unlock()
			continue
		}
		changed := false
		switch t := s.known[name]; {
		case ok && (t == nil || t.version != e.Version):
			if !s.issued {
				s.refuseStrangers()
			}
			s.put(name, e)
			s.settleAll(name)
			changed = true
		case !ok && t != nil:
			s.drop(name)
			changed = true
		}
		if changed {
			s.publish()
		}
		s.mu.Unlock()
		if changed {
			s.tell()
		}
		return nil
	}
}

// Refresh puts in force what other processes have changed by now in a token and in its makers. name is as in Show.
func (s *Store) Refresh(ctx context.Context, name string) error {
	shared, ok := s.space.(state.Shared)
	if !ok {
		return nil
	}
	if err := shared.Refresh(ctx); err != nil {
		return err
	}
	if t, err := s.find(name); err == nil {
		name = t.name
	} else if _, isID := idWithin(name); isID {
		return s.refreshAll(ctx)
	}
	for at := 0; at < len(name); at++ {
		if name[at] == '/' {
			if err := s.refresh(ctx, name[:at]); err != nil {
				return err
			}
		}
	}
	return s.refresh(ctx, name)
}

// refreshAll puts all records of the state in force.
func (s *Store) refreshAll(ctx context.Context) error {
	for after, more := keyName, true; more; {
		var keys []string
		var err error
		if keys, more, err = s.space.List(ctx, keyName, after, 0); err != nil {
			return err
		}
		for _, key := range keys {
			after = key
			if err := s.refresh(ctx, strings.TrimPrefix(key, keyName)); err != nil {
				return err
			}
		}
	}
	return nil
}

// put records an entry of the state. s.mu is held.
func (s *Store) put(name string, e state.Entry) {
	s.edits++
	before := s.known[name]
	if before != nil {
		s.leave(before)
	} else if top := topOf(name); top != name {
		if s.under[top] == nil {
			s.under[top] = map[string]bool{}
		}
		s.under[top][name] = true
	}
	t := &known{name: name, version: e.Version}
	s.known[name] = t
	err := state.Decode(e.Value, Form, &t.record)
	if err == nil {
		t.asked, err = scope.Parse(t.record.Scopes)
	}
	if err == nil {
		t.rate, err = t.record.Rate.Parse()
	}
	if err == nil && len(t.record.ID) != idLen {
		err = errors.New("it has no id")
	}
	t.key = s.keyed(t.record.Digest)
	if f := t.record.Former; f != nil {
		t.former = s.keyed(f.Digest)
	}
	if err != nil {
		t.record, t.wrong = record{}, err
		s.log.Error("a token in the state can't be read, and is refused", "token", name, "error", err)
	} else if before != nil && before.record.ID == t.record.ID && t.asked.Equal(before.asked) {
		t.of, t.scopes, t.principal = before.of, before.scopes, before.principal
	}
}

// drop forgets a token and the tokens that it has made. s.mu is held.
func (s *Store) drop(name string) {
	s.edits++
	s.leave(s.known[name])
	delete(s.uses, s.known[name].record.ID)
	delete(s.known, name)
	if top := topOf(name); top != name {
		if delete(s.under[top], name); len(s.under[top]) == 0 {
			delete(s.under, top)
		}
	}
	s.settleAll(name)
}

// tell calls all subscribers after an index is published.
func (s *Store) tell() {
	s.telling.Lock()
	defer s.telling.Unlock()
	for _, f := range s.subscribers {
		(*f)()
	}
}

// Subscribe makes the Store call f after each change, before the method that made the change returns, and also when a token has expired. Calls come
// one at a time; f must not change tokens or subscriptions. The returned function ends the subscription: after it has returned, f is no longer
// called.
func (s *Store) Subscribe(f func()) (unsubscribe func()) {
	s.telling.Lock()
	defer s.telling.Unlock()
	entry := &f
	s.subscribers = append(s.subscribers, entry)
	return func() {
		s.telling.Lock()
		defer s.telling.Unlock()
		s.subscribers = slices.DeleteFunc(s.subscribers, func(e *func()) bool { return e == entry })
	}
}
