// Package secret keeps the secrets of a service: it reads them from their sources, knows which ones each grant has, and takes them out of what
// a service says.
package secret

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/redact"
)

// The bounds of what is looked for besides the secrets of the last configuration.
const (
	// keepFormer is how long a value is looked for after it was in force last: twice the longest time that a call can take.
	keepFormer = 2 * time.Hour
	// maxFormer is how many such values there may be, and maxFormerBytes how many bytes they may have together. To look for one takes some
	// 10 KB.
	maxFormer      = 4000
	maxFormerBytes = 4 << 20
)

// A Store knows the secrets of a service, to keep them out of what it says: those of its configuration, and for a while those of earlier
// configurations, which running calls may have used. It is safe for concurrent use.
type Store struct {
	published func() *Values

	mu      sync.Mutex // guards what follows, and changes of current and index
	number  uint64     // of the Values that were added last
	last    *Values
	current atomic.Pointer[generation]

	family  redact.Family
	brought []broughtValue // by callers
	values  *brought       // those in force; if nil, none yet
	index   atomic.Pointer[broughtIndex]
}

// A generation is the secrets between two changes. It does not change, but for what it remembers.
type generation struct {
	known map[string][]known       // by names, with callers' own
	own   map[personal.ID][]string // what callers have been given

	mu        sync.Mutex
	redactors map[string]*redact.Redactor // by names
	ownFound  map[personal.ID]*redact.Redactor
}

// A known is a value that a secret has or had.
type known struct {
	value string
	seen  time.Time // when it was in force last, or about to be
}

// NewStore returns a store without secrets. published returns the secrets of the configuration in force, which were added before, or nil
// while there is none. It is called concurrently. A nil published stands for what was added last.
func NewStore(published func() *Values) *Store {
	s := &Store{published: published, family: redact.NewFamily()}
	if published == nil {
		s.published = func() *Values {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.last
		}
	}
	s.current.Store(&generation{})
	return s
}

// Add makes the store know the secrets of a configuration that is about to be published. From now on they are kept out of what a server
// answers or a guest says. So are those that others had before, for as long as a call can take. v must not be in another store. If there
// are too many values to look for, those that were replaced longest ago are forgotten: a reload must never fail because of them. The warning says
// so, and is empty otherwise.
func (s *Store) Add(v *Values) (warning string) {
	inForce := s.published()
	if inForce != nil {
		inForce.wasInForce.Store(true)
		v.after = inForce.number
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	next := &generation{known: map[string][]known{}, redactors: map[string]*redact.Redactor{}}
	var former []formerValue
	for name, all := range s.current.Load().known {
		for _, k := range all {
			switch {
			case v.named[name] == k.value: // it is added below
				continue
			case inForce != nil && inForce.named[name] == k.value, s.last != nil && s.last.named[name] == k.value:
				k.seen = now
			case now.Sub(k.seen) > keepFormer:
				continue
			}
			former = append(former, formerValue{name, k})
		}
	}
	kept, forgotten := latest(former)
	for _, f := range kept {
		next.known[f.name] = append(next.known[f.name], f.known)
	}
	for name, value := range v.named {
		next.known[name] = append(next.known[name], known{value, now})
	}
	next.own = map[personal.ID][]string{}
	for name, all := range next.known {
		if _, id, own := strings.Cut(name, "@"); own {
			for _, k := range all {
				next.own[personal.ID(id)] = append(next.own[personal.ID(id)], k.value)
			}
		}
	}
	s.number++
	v.number, s.last = s.number, v
	v.brought.Store(s.values)
	s.current.Store(next)
	if len(forgotten) == 0 {
		return ""
	}
	return fmt.Sprintf("secrets change often: %d former values, used until %s, are no longer looked for in answers and log lines, although older calls may still show one; at most %d former values with %d MiB are kept, for %v",
		len(forgotten), forgotten[0].seen.UTC().Format(time.RFC3339), maxFormer, maxFormerBytes>>20, keepFormer)
}

// A formerValue is one that a secret had before.
type formerValue struct {
	name string
	known
}

// latest returns as many values as can be looked for, those that were replaced last, and the others. Both begin with the latest.
func latest(all []formerValue) (kept, others []formerValue) {
	slices.SortFunc(all, func(a, b formerValue) int {
		return cmp.Or(b.seen.Compare(a.seen), strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	bytes := 0
	for i, f := range all {
		if bytes += len(f.value); i == maxFormer || bytes > maxFormerBytes {
			return all[:i], all[i:]
		}
	}
	return all, nil
}

// Names are names of secrets, by which a redactor is asked for. The zero Names has none.
type Names struct {
	shared []string // sorted
	key    string   // made of them
	own    bool     // callers' own are among them
}

// NamesOf returns Names with these. With OfPrincipal behind it, one stands for what a caller has of its own.
func NamesOf(names ...string) (n Names) {
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, OfPrincipal):
			n.own = true
		case !strings.Contains(name, "@"): // that would be one caller's
			n.shared = append(n.shared, name)
		}
	}
	slices.Sort(n.shared)
	n.shared = slices.Compact(n.shared)
	n.key = strings.Join(n.shared, " ")
	return n
}

// Redactor returns a redactor that finds the current and former values of the secrets with those names that are nobody's own.
func (s *Store) Redactor(n Names) *redact.Redactor {
	if len(n.shared) == 0 {
		return nil
	}
	return s.current.Load().redactor(n.key, n.shared)
}

// Everything returns what finds all secrets that are nobody's own, and what they were before. Callers choose their own, and could have anything
// taken out of what is told of others: those are looked for in what their own calls say and are told, and nowhere else.
func (s *Store) Everything() *redact.Redactor {
	g := s.current.Load()
	if len(g.known) == 0 {
		return nil
	}
	return g.redactor("*", nil)
}

// redactor returns the redactor of some names, or of all for nil. It is known by key, of which there are few: those of the grants.
func (g *generation) redactor(key string, names []string) *redact.Redactor {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.redactors[key]
	if ok {
		return r
	}
	var secrets []string
	add := func(all []known) {
		for _, k := range all {
			secrets = append(secrets, k.value)
		}
	}
	for _, name := range names {
		add(g.known[name])
	}
	if names == nil {
		for name, all := range g.known {
			if !strings.Contains(name, "@") {
				add(all)
			}
		}
	}
	r = redact.New(secrets...)
	if g.redactors == nil {
		g.redactors = map[string]*redact.Redactor{}
	}
	g.redactors[key] = r
	return r
}

// ownRedactor returns what finds all that one caller has been given, or nil.
func (g *generation) ownRedactor(of personal.ID) *redact.Redactor {
	secrets := g.own[of]
	if secrets == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.ownFound[of]
	if !ok {
		r = redact.New(secrets...)
		if g.ownFound == nil {
			g.ownFound = map[personal.ID]*redact.Redactor{}
		}
		g.ownFound[of] = r
	}
	return r
}
