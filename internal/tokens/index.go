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

// An index has what requests need to know about all tokens. It never changes once it is published. It consists of parts, and a change replaces
// only the parts that it affects: with 100,000 tokens, making all of it would take a tenth of a second.
type index struct {
	version uint64 // grows with each
	parts   [256]map[digest]*entry
	open    bool      // no token has ever been made
	lost    error     // why the tokens are not known; nil if they are
	next    time.Time // when the next entry ends; zero if none does
}

// find returns the entry for a keyed digest, or nil.
func (ix *index) find(key digest) *entry { return ix.parts[key[0]][key] }

// A difference is what has changed since an index was published.
type difference struct {
	gone []digest        // keyed digests that were removed, or have another entry
	now  map[*known]bool // the tokens whose entries were added or changed
}

// An entry is for one secret of a token.
type entry struct {
	principal *wasmtools.Principal
	ends      int64 // when the token expires, in nanoseconds since 1970; 0 means never
	networks  []netip.Prefix
	used      *atomic.Int64 // the minute of the last use; shared with later indexes
}

// A known is a token of the state with the rights that are in effect, which are at most those of its maker.
type known struct {
	name    string
	version uint64 // the version of its entry in the state
	record  record
	wrong   error // why it is refused, although it has not expired

	asked, of scope.Set // the token's own scopes, and its maker's scopes when scopes was last computed from both
	scopes    scope.Set
	rate      wasmtools.Rate // its own rate; its calls count for its maker, too
	networks  []netip.Prefix
	expires   time.Time // zero: never
	principal *wasmtools.Principal
	used      *atomic.Int64

	key, former digest // the keyed digests of its secret and of the one before
}

// parentOf returns the name of the token that made a narrower one, or "".
func parentOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// settle computes the rights of a token that are in effect. s.mu is held.
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

// narrow reduces a token's rights to those that its maker has, too, or sets why it has none.
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

// common returns the addresses that are in both lists. An empty list stands for all addresses. ok is false if the lists have no address in common:
// then nobody may use the token.
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

// settleAll calls settle for a token and those that it has made, or for all tokens if name is empty. s.mu is held.
func (s *Store) settleAll(name string) {
	var names []string
	if name == "" {
		names = slices.Collect(maps.Keys(s.known))
	} else if names = s.below(name); s.known[name] != nil {
		names = append(names, name)
	}
	slices.Sort(names) // makers come before the tokens that they made
	for _, name := range names {
		s.settle(s.known[name])
	}
}

// below returns the names of the narrower tokens that a token has made, directly or not. s.mu is held.
func (s *Store) below(name string) (names []string) {
	for other := range s.under[topOf(name)] {
		if strings.HasPrefix(other, name+"/") {
			names = append(names, other)
		}
	}
	return names
}

// topOf returns the name of the outermost token, which is not a narrower one.
func topOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// leave removes a token from the next index. s.mu is held.
func (s *Store) leave(t *known) {
	s.since.gone = append(s.since.gone, t.key)
	if t.record.Former != nil {
		s.since.gone = append(s.since.gone, t.former)
	}
}

// publish publishes a new index, made from all tokens or only from those that have changed. s.mu is held.
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
		next.parts, next.next = before.parts, before.next // the next end may be that of a token that is gone; then all tokens are checked in vain
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

// publishAll publishes an index of all tokens, including those that have changed only because time has passed. s.mu is held.
func (s *Store) publishAll() {
	s.since.now = nil
	s.publish()
}

// earlier returns the earlier of two times. The second may be zero, which means never.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// keyed returns the keyed digest that an index uses. Since nobody knows the key, the time that a lookup takes says nothing about the digests in it.
func (s *Store) keyed(d digest) digest {
	var buf [2 * sha256.Size]byte
	copy(buf[:], s.key[:])
	copy(buf[sha256.Size:], d[:])
	return sha256.Sum256(buf[:])
}

// useOf returns where the last use of a token is stored. s.mu is held.
func (s *Store) useOf(id string) *atomic.Int64 {
	use := s.uses[id]
	if use == nil {
		use = new(atomic.Int64)
		s.uses[id] = use
	}
	return use
}

// sorted returns the tokens sorted by name. s.mu is held.
func (s *Store) sorted() []*known {
	return slices.SortedFunc(maps.Values(s.known), func(a, b *known) int { return cmp.Compare(a.name, b.name) })
}
