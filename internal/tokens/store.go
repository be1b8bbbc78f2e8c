// Package tokens keeps bearer tokens that have a name, scopes, an end and networks: those of the state, which are made, rotated and
// revoked while requests run, and those that the configuration declares.
//
// The state has a token's digest only. A change is in force when the method that made it has returned: requests look into an index that
// never changes, and find it by one atomic pointer.
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
	// Mark is a file that is made with the first token. While it is there, nobody is let in without a token, also where the state is gone. Where the
	// state can't be read, it tells whether there may be tokens in it. If empty, there may be.
	Mark string
	// Unmarked has tokens be made also where the mark can't be: the state is elsewhere, and the directory of the mark may be read-only.
	Unmarked bool
	// Logger is told of records that can't be read. Nil discards.
	Logger *slog.Logger
}

// A Store is the tokens of a state. It is safe for concurrent use.
type Store struct {
	space   state.Space // nil: nothing can be kept
	log     *slog.Logger
	mark    string // or empty
	without bool   // whether tokens are made without it
	key     [32]byte
	index   atomic.Pointer[index]
	wake    chan struct{} // has a value after a publication, and where other tokens are declared
	turn    chan struct{} // holds a value while somebody makes a token: see Reserve
	end     context.CancelFunc
	running sync.WaitGroup

	unmarked  *trouble.Trouble         // there is no mark
	declaring atomic.Pointer[Verifier] // of the configuration in force; if nil, none is known

	mu     sync.Mutex // guards what follows, and publications
	known  map[string]*known
	under  map[string]map[string]bool // the names of those that others have made, by what they begin with
	since  difference                 // the last publication
	uses   map[string]*atomic.Int64   // by id
	issued bool                       // a token was made once, so that nobody is let in without one any more
	noted  bool                       // the state says so, too, whether or not it has a token
	synced bool                       // all were read once
	lost   error                      // why they were not
	edits  uint64                     // counts what was done to known

	telling     sync.Mutex // held while subscribers are told
	subscribers []*func()
}

// Open returns the tokens of a store, once they are read. Where they can't be, nobody is let in by one until they can, and without one only
// where none was ever made. Open does not fail: whoever uses them is told. A nil store has none, and keeps none. The caller closes the Store, and then the state.
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
	s.running.Go(func() { s.tend(ctx) }) // without a state, too: tokens that are declared expire
	return s
}

// marked reports whether a mark is there, or may be.
func marked(mark string) bool {
	if mark == "" {
		return false
	}
	_, err := os.Lstat(mark)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// putMark makes the mark, in a directory that is there.
func (s *Store) putMark() error {
	if s.mark == "" || marked(s.mark) {
		return nil
	}
	const text = "Tokens were made here, so nobody is let in without one, even if state.db is lost. To let everybody in again, remove both.\n"
	return os.WriteFile(s.mark, []byte(text), 0o600)
}

// Close ends what the Store does by itself, and notes when tokens were used last. It returns nil, and can be called twice.
func (s *Store) Close() error {
	s.end()
	s.running.Wait()
	return nil
}

// watch follows the state. It closes read when it has read all, or could not.
func (s *Store) watch(ctx context.Context, read chan<- struct{}) {
	tried := sync.OnceFunc(func() { close(read) })
	defer tried()
	unread := trouble.New(s.log, slog.LevelError, "the tokens in the state can't be read, so new ones are refused, and changes go unnoticed", "the tokens in the state can be read again")
	whole := false // all that there is was read
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

// take takes up a change, whoever has made it.
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

// refuseStrangers has nobody let in without a token any more, since one was made, here or by another process. s.mu is held.
func (s *Store) refuseStrangers() {
	s.issued = true
	s.unmarked.Set(s.putMark())
}

// load takes up an entry before all are read.
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

// sync publishes all that was read, without the tokens that are gone since an earlier time. keys are those of the state.
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

// lose notes that the tokens can't be read. Those that were read go on.
func (s *Store) lose(err error) {
	s.mu.Lock()
	if !s.synced {
		s.lost = err
		s.publish()
	}
	s.mu.Unlock()
	s.tell()
}

// refresh takes up what the state has of a token at this moment. All changes go this way, whoever made them: what was read before another
// change was noted is read again, so that nothing old comes back.
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

// Refresh takes up what other processes have made of a token by now, and of those that have made it. The token is named as it is to Show.
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

// refreshAll takes up all that the state has.
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

// put notes an entry of the state. s.mu is held.
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

// drop forgets a token and the tokens that it made. s.mu is held.
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

// tell tells everybody of a publication.
func (s *Store) tell() {
	s.telling.Lock()
	defer s.telling.Unlock()
	for _, f := range s.subscribers {
		(*f)()
	}
}

// Subscribe has f called after each change, also where a token has expired, before the method that made the change returns. Calls come one at a time; f
// must not change tokens or subscriptions. The returned function ends that: once it has returned, f is not called any more.
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
