package tokens

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An index is what requests need of all tokens. It never changes once it is published. It is in parts, of which a change makes only those anew that
// have what has changed: with 100,000 tokens, all of it would take a tenth of a second.
type index struct {
	version uint64 // grows with each
	parts   [256]map[digest]*entry
	open    bool      // no token was ever made
	lost    error     // why the tokens are not known; if nil, they are
	next    time.Time // when the next entry ends; zero means none does
}

// find returns the entry of what a digest is found by, or nil.
func (ix *index) find(key digest) *entry { return ix.parts[key[0]][key] }

// A difference is what has changed since an index was published.
type difference struct {
	gone []digest        // what is found no more, or leads elsewhere
	now  map[*known]bool // the tokens that may be found
}

// An entry is one secret.
type entry struct {
	principal *wasmtools.Principal
	ends      int64 // in nanoseconds since 1970; 0 means never
	networks  []netip.Prefix
	used      *atomic.Int64 // the minute of the last use; shared with later indexes
}

// A known is a token of the state with the rights that are in effect: no more than those of the token that made it.
type known struct {
	name    string
	version uint64 // of the entry in the state
	record  record
	wrong   error // why it is not taken, although it has not expired

	asked, of scope.Set // what it was given, and what the one had that made it when scopes was made of both
	scopes    scope.Set
	rate      wasmtools.Rate // its own, which is not all: its calls count for the one that made it, too
	networks  []netip.Prefix
	expires   time.Time // zero: never
	principal *wasmtools.Principal
	used      *atomic.Int64

	key, former digest // what its secret and the one before are found by
}

// parentOf returns the name of the token that made a narrower one, or "".
func parentOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// settle finds out what is in effect of a token. s.mu is held.
func (s *Store) settle(t *known) {
	s.leave(t)
	s.since.now[t] = true
	if t.record.ID == "" { // the record can't be read
		return
	}
	before := t.scopes
	t.used = s.useOf(t.record.ID)
	t.networks, t.expires, t.wrong = t.record.Networks, t.record.Expires, nil
	var within *wasmtools.Principal
	if parentOf(t.name) == "" {
		t.scopes = t.asked
	} else if t.wrong = s.narrow(t); t.wrong != nil {
		return
	} else {
		within = s.known[parentOf(t.name)].principal
	}
	if t.principal != nil && t.scopes.Equal(before) && t.principal.Rate() == t.rate && t.principal.Within() == within {
		return
	}
	if t.principal, t.wrong = t.scopes.Principal(t.name, personal.OriginIssued); t.wrong == nil {
		t.principal = t.principal.WithRate(t.rate, within).WithCredential(t.record.ID)
	}
}

// narrow leaves of a token what the one has, too, that made it, or says why that is nothing.
func (s *Store) narrow(t *known) (err error) {
	parent := s.known[parentOf(t.name)]
	if parent == nil || parent.record.ID != t.record.Parent || parent.wrong != nil {
		return errors.New("the token that it was made from is gone")
	}
	if !t.of.Equal(parent.scopes) || t.principal == nil {
		t.of, t.scopes = parent.scopes, t.asked.Clip(parent.scopes)
	}
	if !parent.expires.IsZero() && (t.expires.IsZero() || t.expires.After(parent.expires)) {
		t.expires = parent.expires
	}
	t.networks, err = common(t.networks, parent.networks)
	return err
}

// common returns the addresses that are in both lists. An empty list has every address; where none are in both, nobody may use the token.
func common(own, of []netip.Prefix) (both []netip.Prefix, err error) {
	if len(own) == 0 || len(of) == 0 {
		return append(slices.Clone(own), of...), nil
	}
	for _, a := range own {
		for _, b := range of {
			if a.Overlaps(b) {
				narrower := a
				if b.Bits() > a.Bits() {
					narrower = b
				}
				both = append(both, narrower)
			}
		}
	}
	if len(both) == 0 {
		return nil, errors.New("the token that it was made from is allowed in none of its networks")
	}
	return both, nil
}

// settleAll does so for a token and those that it made; for all, if name is empty. s.mu is held.
func (s *Store) settleAll(name string) {
	var names []string
	if name == "" {
		names = slices.Collect(maps.Keys(s.known))
	} else if names = s.below(name); s.known[name] != nil {
		names = append(names, name)
	}
	slices.Sort(names) // those that made others come first
	for _, name := range names {
		s.settle(s.known[name])
	}
}

// below returns the names of the narrower tokens that one has made, and those have. s.mu is held.
func (s *Store) below(name string) (names []string) {
	for other := range s.under[topOf(name)] {
		if strings.HasPrefix(other, name+"/") {
			names = append(names, other)
		}
	}
	return names
}

// topOf returns the name of the token that is not a narrower one.
func topOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// leave has a token not be found any more in the next index. s.mu is held.
func (s *Store) leave(t *known) {
	s.since.gone = append(s.since.gone, t.key)
	if t.record.Former != nil {
		s.since.gone = append(s.since.gone, t.former)
	}
}

// publish makes the index of this moment: of all tokens, or of those that have changed. s.mu is held.
func (s *Store) publish() {
	before := s.index.Load()
	next := &index{open: !s.issued && len(s.known) == 0 && (s.lost == nil || s.mark != ""), lost: s.lost}
	if before != nil {
		next.version = before.version + 1
	}
	made := [len(next.parts)]bool{}
	part := func(of byte) map[digest]*entry {
		if !made[of] {
			made[of] = true
			if next.parts[of] = maps.Clone(next.parts[of]); next.parts[of] == nil {
				next.parts[of] = map[digest]*entry{}
			}
		}
		return next.parts[of]
	}
	now := time.Now()
	add := func(t *known, key digest, ends time.Time) {
		e := &entry{principal: t.principal, networks: t.networks, used: t.used}
		if !ends.IsZero() {
			e.ends = ends.UnixNano()
			if ends.After(now) && (next.next.IsZero() || ends.Before(next.next)) {
				next.next = ends
			}
		}
		part(key[0])[key] = e
	}
	list := func(t *known) {
		if t.record.ID == "" || t.wrong != nil {
			return
		}
		add(t, t.key, t.expires)
		if f := t.record.Former; f != nil && f.Until.After(now) {
			add(t, t.former, earlier(f.Until, t.expires))
		}
	}
	if before == nil || s.since.now == nil {
		for _, t := range s.known {
			list(t)
		}
	} else {
		next.parts, next.next = before.parts, before.next // a token that is gone may be what would end next: then all is looked at for nothing
		for _, key := range s.since.gone {
			delete(part(key[0]), key)
		}
		for t := range s.since.now {
			if s.known[t.name] == t {
				list(t)
			}
		}
	}
	s.since = difference{now: map[*known]bool{}}
	s.index.Store(next)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// publishAll is publish of all tokens, also of those of which only the time has changed something. s.mu is held.
func (s *Store) publishAll() {
	s.since.now = nil
	s.publish()
}

// earlier returns the earlier of two times. The second may be never.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// keyed returns what a digest is found by. With a key that nobody knows, how long a lookup takes tells nothing of the digests that there are.
func (s *Store) keyed(d digest) digest {
	var buf [2 * sha256.Size]byte
	copy(buf[:], s.key[:])
	copy(buf[sha256.Size:], d[:])
	return sha256.Sum256(buf[:])
}

// useOf returns where the last use of a token is noted. s.mu is held.
func (s *Store) useOf(id string) *atomic.Int64 {
	use := s.uses[id]
	if use == nil {
		use = new(atomic.Int64)
		s.uses[id] = use
	}
	return use
}

// sorted returns the tokens by name. s.mu is held.
func (s *Store) sorted() []*known {
	return slices.SortedFunc(maps.Values(s.known), func(a, b *known) int { return cmp.Compare(a.name, b.name) })
}
