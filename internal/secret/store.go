// Package secret keeps the secrets of a service: it reads them from their sources, knows which ones each grant has, and removes them from everything
// that the service puts out.
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

// The bounds of former values that redactors look for.
const (
	// keepFormer is how long a value is looked for after it was last in force: twice the longest time that a call can take.
	keepFormer = 2 * time.Hour
	// maxFormer is how many former values there may be, and maxFormerBytes how many bytes they may have together. The redactor of a value takes some
	// 10 KB.
	maxFormer      = 4000
	maxFormerBytes = 4 << 20
)

// A Store knows the secrets of a service, to keep them out of its output: those of the configuration, and for a while those of earlier
// configurations, which running calls may have used. It is safe for concurrent use.
type Store struct {
	published func() *Values

	mu      sync.Mutex // guards what follows, and changes of current and index
	number  uint64     // the number of the Values that were added last
	last    *Values
	current atomic.Pointer[generation]

	family  redact.Family
	brought []broughtValue // values that callers have set
	values  *brought       // the Values in force; nil if there are none yet
	index   atomic.Pointer[broughtIndex]
}

// A generation has the secrets between two changes. It never changes, except for the redactors that it remembers.
type generation struct {
	known map[string][]known       // secrets by their names, including callers' own
	own   map[personal.ID][]string // the secrets that the operator has set for callers

	mu        sync.Mutex
	redactors map[string]*redact.Redactor // remembered redactors by the names of their secrets
	ownFound  map[personal.ID]*redact.Redactor
}

// A known is a present or former value of a secret.
type known struct {
	value string
	seen  time.Time // when it was last in force, or about to be
}

// NewStore returns a store without secrets. published returns the Values of the configuration in force, which must have been added, or nil while
// there is none. It is called concurrently. If published is nil, the Values that were added last are in force.
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

// Add makes the store know the secrets of a configuration that is about to be published. From now on they are kept out of answers and of the output
// of guests. So are the values of earlier configurations, for as long as a call can take. v must not be in another store. If there are too many
// values to look for, those that were replaced longest ago are forgotten: a reload must never fail because of them. The warning says so, and is empty
// otherwise.
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
			case v.named[name] == k.value: // v itself is added below
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

// A formerValue is a value that a secret had before.
type formerValue struct {
	name string
	known
}

// latest returns the values that were replaced last, as many as can be looked for, and the remaining ones. In both, the latest comes first.
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

// Names are names of secrets for which a redactor is needed. The zero Names is empty.
type Names struct {
	shared []string // sorted
	key    string   // made of them
	own    bool     // callers' own are among them
}

// NamesOf returns Names with these names. A name with the suffix OfPrincipal stands for a caller's own secret.
func NamesOf(names ...string) (n Names) {
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, OfPrincipal):
			n.own = true
		case !strings.Contains(name, "@"): // a name with an @ would belong to one caller
			n.shared = append(n.shared, name)
		}
	}
	slices.Sort(n.shared)
	n.shared = slices.Compact(n.shared)
	n.key = strings.Join(n.shared, " ")
	return n
}

// Redactor returns a redactor of the current and former values of the secrets with those names, except callers' own.
func (s *Store) Redactor(n Names) *redact.Redactor {
	if len(n.shared) == 0 {
		return nil
	}
	return s.current.Load().redactor(n.key, n.shared)
}

// Everything returns a redactor of the current and former values of all secrets, except callers' own. Since callers choose their own secrets, they
// could have anything removed from what others see; so these are only looked for in the input and output of their own calls.
func (s *Store) Everything() *redact.Redactor {
	g := s.current.Load()
	if len(g.known) == 0 {
		return nil
	}
	return g.redactor("*", nil)
}

// redactor returns the redactor of some names, or of all if names is nil. It is remembered by key. There are few keys: one for each set of names in
// grants.
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

// ownRedactor returns a redactor of all secrets that the operator has set for one caller, or nil.
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
