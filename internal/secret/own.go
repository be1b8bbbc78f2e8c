package secret

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/redact"
)

// OfPrincipal stands behind the name of a secret of which each caller has one of its own, as in "github@principal". It is no caller's ID.
const OfPrincipal = "@principal"

// ownName returns the name of a caller's own secret among all others. No other secret has an @ in its name.
func ownName(name string, of personal.ID) string { return name + "@" + string(of) }

// What callers may bring.
const (
	maxBrought       = 4000 // values of all callers, with those that they had in the last two hours
	maxBroughtCaller = 32   // of them of one caller, with the tokens that it has made
	shortestBrought  = 16   // bytes
	longestBrought   = 4 << 10
	// The bytes of all, and of one caller: at a start, what finds a long value takes some 5 ms a KiB to make.
	maxBroughtBytes       = 512 << 10
	maxBroughtBytesCaller = 16 << 10
)

// Errors about what a caller brings. Nothing was changed.
var (
	// ErrTooMany is returned if there is no room for it.
	ErrTooMany = errors.New("too many")
	// ErrUnfit is returned where a value can't be a caller's secret. The error does not show it.
	ErrUnfit = errors.New("not acceptable as a secret")
)

// A brought is the secrets that callers have set themselves, by caller and name. It does not change.
type brought map[personal.ID]map[string]string

// A broughtValue is one that a caller has or had.
type broughtValue struct {
	id, root personal.ID
	name     string
	value    string
	found    *redact.Redactor
	until    time.Time // when another took its place; zero means it is in force
}

// A broughtIndex is what finds those values, and former ones, by caller. It does not change.
type broughtIndex map[personal.ID]*redact.Redactor

// CheckBrought returns an error about ErrUnfit where a value can't be one that a caller sets. It is taken out of what the caller's calls say and are
// told. So it has to look like a credential, and not like a word that stands in answers, and has no character that JSON and HTML are made of.
func CheckBrought(value string) error {
	digit, letter, different := false, false, map[rune]bool{}
	for _, c := range value {
		digit, letter = digit || '0' <= c && c <= '9', letter || 'a' <= c|0x20 && c|0x20 <= 'z'
		if different[c] = true; c <= ' ' || c > '~' || strings.ContainsRune("\"'`\\{}[]()<>,;", c) {
			return fmt.Errorf("it is %w: use letters, digits and signs without blanks, quotes, brackets, commas, semicolons and backslashes", ErrUnfit)
		}
	}
	switch {
	case len(value) < shortestBrought || len(value) > longestBrought:
		return fmt.Errorf("it is %w: it has %d bytes; %d to %d are allowed", ErrUnfit, len(value), shortestBrought, longestBrought)
	case !digit || !letter || len(different) < shortestBrought/2 || !redact.Findable(value):
		return fmt.Errorf("it is %w: a secret that callers set themselves needs letters, digits, and at least %d different characters", ErrUnfit, shortestBrought/2)
	}
	return nil
}

// Admit returns an error about ErrTooMany if there is no room for one more value of that many bytes. root is the caller whose room counts.
func (s *Store) Admit(root personal.ID, bytes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, all, own := time.Now(), 0, 0
	allBytes, ownBytes := bytes, bytes
	for _, v := range s.brought {
		if v.lives(now) {
			all, allBytes = all+1, allBytes+len(v.value)
			if v.root == root {
				own, ownBytes = own+1, ownBytes+len(v.value)
			}
		}
	}
	switch {
	case own >= maxBroughtCaller:
		return fmt.Errorf("this caller has %w secrets: at most %d are kept, including former ones of the last %v", ErrTooMany, maxBroughtCaller, keepFormer)
	case ownBytes > maxBroughtBytesCaller:
		return fmt.Errorf("this caller has %w bytes of secrets: at most %d KiB are kept, including former ones of the last %v", ErrTooMany, maxBroughtBytesCaller>>10, keepFormer)
	case allBytes > maxBroughtBytes:
		return fmt.Errorf("callers have %w bytes of secrets: at most %d KiB are kept, including former ones of the last %v", ErrTooMany, maxBroughtBytes>>10, keepFormer)
	case all >= maxBrought:
		return fmt.Errorf("callers have %w secrets: at most %d are kept, including former ones of the last %v", ErrTooMany, maxBrought, keepFormer)
	}
	return nil
}

func (v *broughtValue) lives(now time.Time) bool {
	return v.until.IsZero() || now.Sub(v.until) < keepFormer
}

// Bring gives a caller a secret of its own, or takes it away where value is empty. It is in force when Bring returns, for calls that run as well, unless
// their grant is not in force any more. root is who answers for the caller. Before anybody can be told of the value, it is looked for.
func (s *Store) Bring(id, root personal.ID, name, value string) {
	s.bring(broughtValue{id: id, root: root, name: name, value: value})
}

// BringAll is Bring of several new values at once.
func (s *Store) BringAll(each func(yield func(id, root personal.ID, name, value string))) {
	var all []broughtValue
	each(func(id, root personal.ID, name, value string) {
		all = append(all, broughtValue{id: id, root: root, name: name, value: value})
	})
	s.bring(all...)
}

func (s *Store) bring(changes ...broughtValue) {
	inForce := s.published()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.brought = slices.DeleteFunc(s.brought, func(v broughtValue) bool { return !v.lives(now) })
	values, index := brought{}, broughtIndex{}
	if before := s.values; before != nil {
		values = maps.Clone(*before)
	}
	if before := s.index.Load(); before != nil {
		index = maps.Clone(*before)
	}
	changed := map[personal.ID][]*redact.Redactor{}
	for _, v := range changes {
		for i := range s.brought {
			if old := &s.brought[i]; old.id == v.id && old.name == v.name && old.until.IsZero() {
				old.until = now
			}
		}
		own := maps.Clone(values[v.id])
		if own == nil {
			own = map[string]string{}
		}
		if delete(own, v.name); v.value != "" {
			own[v.name] = v.value
			v.found = s.family.New(v.value)
			s.brought = append(s.brought, v)
		}
		if values[v.id] = own; len(own) == 0 {
			delete(values, v.id)
		}
		changed[v.id] = nil
	}
	for i := range s.brought {
		v := &s.brought[i]
		if parts, ok := changed[v.id]; ok {
			changed[v.id] = append(parts, v.found)
		}
	}
	for id, parts := range changed {
		if index[id] = s.family.Join(parts...); parts == nil {
			delete(index, id)
		}
	}
	s.index.Store(&index)
	s.values = &values
	for _, v := range []*Values{inForce, s.last} {
		if v != nil {
			v.brought.Store(&values)
		}
	}
}

// RedactorsOf returns what finds the current and former values of the secrets with those names in a call of one caller. Where names of callers' own are
// among them, it finds all of this caller's, and nobody else's: what others choose must not be taken out of what this one is told. It allocates
// nothing once it was asked for the same before.
func (s *Store) RedactorsOf(id personal.ID, n Names) (all redact.Chain) {
	all[0] = s.Redactor(n)
	if n.own {
		all[1] = s.current.Load().ownRedactor(id)
		if index := s.index.Load(); index != nil {
			all[2] = (*index)[id]
		}
	}
	return all
}

// Own returns a caller's own secret, which it has from the operator or has brought, and false if there is none. It never is another's.
func (v *Values) Own(name string, of personal.ID) (value string, ok bool) {
	if value, ok = v.named[ownName(name, of)]; ok {
		return value, true
	}
	if b := v.brought.Load(); b != nil {
		value, ok = (*b)[of][name]
	}
	return value, ok
}

// Given reports whether the operator has given a caller that secret.
func (v *Values) Given(name string, of personal.ID) bool { return v.Has(ownName(name, of)) }

// Callers returns who has been given secrets by the operator, and their names.
func (v *Values) Callers() map[personal.ID][]string {
	all := map[personal.ID][]string{}
	for _, named := range v.Names() {
		if name, id, own := strings.Cut(named, "@"); own {
			all[personal.ID(id)] = append(all[personal.ID(id)], name)
		}
	}
	return all
}
