package tokens

import (
	"context"
	"maps"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

const (
	// flushEvery is how often the last uses are written. Uses that were not written when a process is killed are lost.
	flushEvery = time.Minute
	// flushLimit is how long the write at the end may take.
	flushLimit = 5 * time.Second
)

// tend publishes an index when a token has expired, so that subscribers learn of it, and writes when tokens were last used.
func (s *Store) tend(ctx context.Context) {
	written := map[string]int64{} // the written uses by id
	s.mu.Lock()
	for id, use := range s.uses {
		written[id] = use.Load()
	}
	s.mu.Unlock()
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	told := time.Now() // subscribers know of all tokens that had expired by then
	for {
		// If the clock was set, that is noticed at the next flush.
		expiry, next := time.NewTimer(flushEvery), s.nextEnd(told)
		if !next.IsZero() {
			expiry.Reset(min(flushEvery, max(time.Until(next), 0)))
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
			s.flush(last, written)
			cancel()
			expiry.Stop()
			return
		case <-s.wake:
		case <-expiry.C:
			if now := time.Now(); !next.IsZero() && !next.After(now) {
				told = now
				s.mu.Lock()
				s.publishAll()
				s.mu.Unlock()
				s.tell()
			}
		case <-flush.C:
			s.flush(ctx, written)
		}
		expiry.Stop()
	}
}

// nextEnd returns when the next token expires, whether it is in the state or declared. It returns zero if none expires. Only declared tokens that
// expire after the given time count.
func (s *Store) nextEnd(after time.Time) time.Time {
	next := s.index.Load().next
	if v := s.declaring.Load(); v != nil {
		for _, e := range v.declared {
			if ends := time.Unix(0, e.ends); e.ends != 0 && ends.After(after) && (next.IsZero() || ends.Before(next)) {
				next = ends
			}
		}
	}
	return next
}

// flush writes the last uses that are not written yet: one entry for all tokens whose ids begin with the same letter, so that many uses become few
// writes. If it fails, the next flush tries again.
func (s *Store) flush(ctx context.Context, written map[string]int64) {
	parts := map[string]used{}
	s.mu.Lock()
	maps.DeleteFunc(written, func(id string, _ int64) bool { return s.uses[id] == nil })
	for id, use := range s.uses {
		if minute := use.Load(); minute > written[id] {
			letter := id[:1]
			if parts[letter] == nil {
				parts[letter] = used{}
			}
			parts[letter][id] = minute
		}
	}
	s.mu.Unlock()
	for letter, part := range parts {
		if s.write(ctx, keyUsed+letter, part) == nil {
			maps.Copy(written, part)
		}
	}
}

// write adds uses to an entry, and drops those of tokens that are gone.
func (s *Store) write(ctx context.Context, key string, part used) error {
	e, ok, err := s.space.Get(ctx, key, state.MaxValue)
	if err != nil {
		return err
	}
	all := used{}
	if ok {
		if err := state.Decode(e.Value, Form, &all); err != nil {
			return err
		}
	}
	for id, minute := range part {
		all[id] = max(all[id], minute)
	}
	s.mu.Lock()
	maps.DeleteFunc(all, func(id string, _ int64) bool { return s.uses[id] == nil })
	s.mu.Unlock()
	value, err := state.Encode(Form, all)
	if err != nil {
		return err
	}
	_, err = s.space.Set(ctx, key, value, int64(e.Version), state.SetOptions{})
	return err
}
