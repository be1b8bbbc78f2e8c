package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// These are the rules by which processes of several versions agree on the forms of records. Each process writes into the state which forms its
// version knows. Such an entry lasts a day, and is renewed each hour. A newer form is written once all versions that have used the state within a day
// know it. So a process that is cut off, hangs or was stopped still counts, and its older version can be started again within that time.
//
// The forms that may be written are stored in an entry of the same space. A process changes that entry only if the space has not changed since
// the process looked. So no process that does not know the form can have come meanwhile. The allowed form never decreases. A process that does
// not know an allowed form gives the state up before it reads such a record.
const (
	formsSpace = "forms"
	// keyKnown is the prefix of the keys that say what a version knows. keyWritten is the key that says what may be written.
	keyKnown, keyWritten = "known/", "written"
	// keyBefore stands for the versions before this agreement, which know form 1 of each record.
	keyBefore = keyKnown + "before"
	// formsForm is the form of the entries in this space.
	formsForm = 1
	// mostVersions is how many versions are taken into account. If there are more, no newer form is allowed.
	mostVersions = 1000
)

// countsFor is how long a version counts after it has used the state.
const countsFor = 24 * time.Hour

// forms is what a store knows of the forms that may be written.
type forms struct {
	store   *Store
	known   map[string]byte                 // what this version knows, by space
	counts  time.Duration                   // how long a version counts
	written atomic.Pointer[map[string]byte] // what may be written, by space; form 1 if missing
	whole   chan struct{}                   // closed when the copy is complete for the first time
	empty   bool                            // the state was empty then
}

// Form implements state.Formed.
func (s *space) Form() byte { return s.store.forms.of(s.name) }

// of returns the newest form that may be written in a space.
func (f *forms) of(space string) byte {
	if written := f.written.Load(); written != nil {
		return max(1, (*written)[space])
	}
	return 1
}

// agree is the goroutine that writes which forms this version knows, and which may be written.
func (f *forms) agree() {
	s := f.store
	select {
	case <-f.whole:
	case <-s.ready: // it is lost
	case <-s.ctx.Done():
		return
	}
	if len(f.known) == 0 {
		s.arrived()
		return
	}
	tick := time.NewTicker(max(f.counts/1000, 10*time.Millisecond))
	defer tick.Stop()
	waits, failed := false, false
	for first := true; s.Broken() == nil; first = false {
		err := f.declare()
		if first && isFinal(err) {
			s.lose(err)
			return
		}
		s.arrived()
		var pending bool
		if err == nil {
			pending, err = f.raise()
		}
		if err != nil && !failed && s.ctx.Err() == nil && s.CutOff() == nil {
			s.options.Log.Warn("this version could not announce which forms of records it knows, so a newer version may write forms that it does not know", slog.Any("error", err))
		}
		if failed = err != nil; pending && !waits {
			s.options.Log.Info("newer forms of records are written once no older version of toolsrv has used the state for a while", slog.String("while", f.counts.String()))
		}
		waits = waits || pending
		for cut := true; cut; cut = s.CutOff() != nil {
			select {
			case <-s.ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// declare writes which forms this version knows, unless that was written a short while ago.
func (f *forms) declare() error {
	s := f.store
	value, err := state.Encode(formsForm, f.known)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(value)
	key := keyKnown + hex.EncodeToString(sum[:8])
	s.mu.RLock()
	c := s.copy.spaces[formsSpace]
	first := !f.empty && (c == nil || len(c.entries) == 0)
	said := c != nil && f.said(c, key)
	s.mu.RUnlock()
	if said {
		return nil
	}
	if first {
		before, err := state.Encode(formsForm, struct{}{})
		if err == nil {
			err = f.note(keyBefore, before)
		}
		if err != nil {
			return err
		}
	}
	return f.note(key, value)
}

// said reports whether an entry's age is less than a 24th of the time for which it counts: an hour of a day. The lock is held.
func (f *forms) said(c *content, key string) bool {
	e := c.entries[key]
	return e != nil && e.expires > f.store.now()+(f.counts-f.counts/24).Milliseconds()
}

// note writes an entry that lasts as long as a version counts, unless another process has just written it: if many start together, one of them does.
func (f *forms) note(key string, value []byte) error {
	s := f.store
	_, err := s.perform(s.ctx, formsSpace, &write{key: key, value: value, expect: state.Any, expires: s.now() + f.counts.Milliseconds(), only: func(c *content) error {
		if f.said(c, key) {
			return errOthers
		}
		return nil
	}})
	if errors.Is(err, errOthers) {
		return nil
	}
	return err
}

// errOthers is returned if another process was first, or one has come that does not know the forms that were to be written.
var errOthers = errors.New("another process was first")

// raise allows newer forms if all versions know them. pending reports whether this version knows newer ones that are not allowed yet.
func (f *forms) raise() (pending bool, err error) {
	s := f.store
	s.mu.RLock()
	next, changed := f.agreed(s.copy.spaces[formsSpace])
	s.mu.RUnlock()
	if changed {
		value, err := state.Encode(formsForm, next)
		if err != nil {
			return false, err
		}
		_, err = s.perform(s.ctx, formsSpace, &write{key: keyWritten, value: value, expect: state.Any, only: func(c *content) error {
			if now, more := f.agreed(c); !more || !maps.Equal(now, next) {
				return errOthers
			}
			return nil
		}})
		switch {
		case err == nil:
			s.options.Log.Info("newer forms of records are written from now on, so older versions of toolsrv can no longer use the state", slog.Any("forms", next))
		case !errors.Is(err, errOthers):
			return false, err
		}
	}
	for space, known := range f.known {
		pending = pending || known > f.of(space)
	}
	return pending, nil
}

// agreed returns the forms that may be written according to what the space contains, and whether any is newer than keyWritten says. The lock is held.
func (f *forms) agreed(c *content) (next map[string]byte, more bool) {
	if c == nil {
		return nil, false
	}
	next = map[string]byte{}
	if e := c.entries[keyWritten]; e != nil {
		if written, err := parseForms(e.value); err == nil {
			next = written
		}
	}
	least, versions, now := maps.Clone(f.known), 0, f.store.now()
	for key := range c.keys.from(keyKnown) {
		if !strings.HasPrefix(key, keyKnown) {
			break
		}
		e := c.entries[key]
		if e.expired(now) {
			continue
		}
		if versions++; versions > mostVersions {
			return next, false
		}
		known, _ := parseForms(e.value) // if an entry can't be read, its version counts as one that knows no forms
		for space, form := range least {
			least[space] = min(form, max(1, known[space]))
		}
	}
	for space, form := range least {
		if form > max(1, next[space]) {
			next[space], more = form, true
		}
	}
	return next, more
}

func parseForms(record []byte) (of map[string]byte, err error) {
	err = state.Decode(record, formsForm, &of)
	if err == nil && of == nil {
		of = map[string]byte{}
	}
	return of, err
}

// learn takes over which forms may be written. If this version does not know one of them, it gives the state up.
func (f *forms) learn(record []byte) {
	s := f.store
	of, err := parseForms(record)
	if err != nil {
		if errors.Is(err, state.ErrNewer) {
			s.lose(err)
			return
		}
		s.formless.Add(err)
		return
	}
	for space, known := range f.known {
		if of[space] > known {
			s.lose(fmt.Errorf("records of %q may be %w: their form is %d, but this version reads %d. Use that version, or a newer one", space, state.ErrNewer, of[space], known))
		}
		of[space] = max(of[space], f.of(space))
	}
	f.written.Store(&of)
}

// check returns an error if the form of a value may not be written yet.
func (f *forms) check(space string, value []byte) error {
	if _, has := f.known[space]; has && len(value) > 0 && value[0] > f.of(space) {
		return fmt.Errorf("a record of %q is %w: its form is %d, which some version using the state does not know; %d may be written", space, state.ErrInvalid, value[0], f.of(space))
	}
	return nil
}
