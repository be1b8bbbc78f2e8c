package secret

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/redact"
)

// A Store has the secrets of a service, and replaces all of them at once. It is safe for concurrent use. Who uses a secret asks for it
// each time, and so has the new one once it was replaced.
type Store struct{ current atomic.Pointer[generation] }

// A generation is the secrets between two changes. It does not change, but for what it remembers.
type generation struct {
	values map[string]string
	former map[string][]string // what calls that run may have used, the last one first

	mu        sync.Mutex
	redactors map[string]*redact.Redactor // by names
}

// maxFormer is how many former values of a secret are looked for.
const maxFormer = 3

// NewStore returns a store with these values; nil: none.
func NewStore(v *Values) *Store {
	s := &Store{}
	s.current.Store(&generation{})
	s.Replace(v)
	return s
}

// Replace replaces all secrets by others. The former values are no longer given out, but still taken out of what a server answers or a
// guest says, as calls that run may have them.
func (s *Store) Replace(v *Values) {
	if v == nil {
		v = &Values{}
	}
	for {
		old := s.current.Load()
		next := &generation{values: v.named, former: maps.Clone(old.former), redactors: map[string]*redact.Redactor{}}
		for name, value := range old.values {
			if v.named[name] == value {
				continue
			}
			if next.former == nil {
				next.former = map[string][]string{}
			}
			known := append([]string{value}, next.former[name]...)
			next.former[name] = known[:min(len(known), maxFormer)]
		}
		if s.current.CompareAndSwap(old, next) {
			return
		}
	}
}

// Secret returns the secret with that name. The error says which one there is not.
func (s *Store) Secret(name string) (string, error) {
	value, ok := s.current.Load().values[name]
	if !ok {
		return "", fmt.Errorf("there is no secret %q: add it to a source in [secrets]", name)
	}
	return value, nil
}

// Has reports whether there is a secret with that name.
func (s *Store) Has(name string) bool {
	_, ok := s.current.Load().values[name]
	return ok
}

// Names returns the names of all secrets, sorted.
func (s *Store) Names() []string { return slices.Sorted(maps.Keys(s.current.Load().values)) }

// Redactor returns what finds the secrets with those names, and what they were before.
func (s *Store) Redactor(names ...string) *redact.Redactor {
	if len(names) == 0 {
		return nil
	}
	g := s.current.Load()
	names = slices.Clone(names)
	slices.Sort(names)
	return g.redactor(strings.Join(slices.Compact(names), " "), func() []string { return names })
}

// Everything returns what finds all secrets, and what they were before.
func (s *Store) Everything() *redact.Redactor {
	g := s.current.Load()
	if len(g.values) == 0 && len(g.former) == 0 {
		return nil
	}
	return g.redactor("*", func() []string {
		return slices.AppendSeq(slices.Collect(maps.Keys(g.values)), maps.Keys(g.former))
	})
}

// redactor returns the redactor that is known by key. There are few keys: those of the grants.
func (g *generation) redactor(key string, names func() []string) *redact.Redactor {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.redactors[key]
	if !ok {
		var secrets []string
		for _, name := range names() {
			if value, ok := g.values[name]; ok {
				secrets = append(secrets, value)
			}
			secrets = append(secrets, g.former[name]...)
		}
		r = redact.New(secrets...)
		g.redactors[key] = r
	}
	return r
}
