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

// OfPrincipal is the suffix of the name of a secret that differs for each caller, as in "github@principal". It can't be the ID of a caller.
const OfPrincipal = "@principal"

// ownName returns the unique name of a caller's own secret. No other secret has an @ in its name.
func ownName(name string, of personal.ID) string { return name + "@" + string(of) }

// The bounds of the secrets that callers set.
const (
	maxBrought       = 4000 // values of all callers, including those replaced in the last two hours
	maxBroughtCaller = 32   // values of one caller, including those of the tokens that it has made
	shortestBrought  = 16   // bytes
	longestBrought   = 4 << 10
	// The bytes of all callers' values, and of one caller's: at a start, making the redactor of a long value takes some 5 ms for each KiB.
	maxBroughtBytes       = 512 << 10
	maxBroughtBytesCaller = 16 << 10
)

// Errors about secrets that a caller sets. After such an error, nothing was changed.
var (
	// ErrTooMany is returned if there is no room for one more secret.
	ErrTooMany = errors.New("too many")
	// ErrUnfit is returned if a value can't be a caller's secret. The error does not show it.
	ErrUnfit = errors.New("not acceptable as a secret")
)

// A brought has the secrets that callers have set for themselves, by caller and name. It never changes.
type brought map[personal.ID]map[string]string

// A broughtValue is a present or former value of a caller's secret.
type broughtValue struct {
	id, root personal.ID
	name     string
	value    string
	found    *redact.Redactor
	until    time.Time // when another value replaced it; zero if it is in force
}

// A broughtIndex has the redactors of present and former values by caller. It never changes.
type broughtIndex map[personal.ID]*redact.Redactor

// CheckBrought returns an error that wraps ErrUnfit if a caller can't set a value. The value will be removed from the input and output of the
// caller's calls. So it must look like a credential rather than a word of an answer, and have no character that is part of the syntax of JSON or
// HTML.
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

// Admit returns an error that wraps ErrTooMany if there is no room for one more value of that many bytes. root is the caller whose quota it uses.
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

// Bring sets a caller's own secret, or removes it if value is empty. The change is in force when Bring returns, for running calls as well, unless
// their grant is no longer in force. root is the caller that answers for this one. Before any call can get the value, redactors look for it.
func (s *Store) Bring(id, root personal.ID, name, value string) {
	s.bring(broughtValue{id: id, root: root, name: name, value: value})
}

// BringAll is Bring for several new values at once.
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

// RedactorsOf returns redactors of the current and former values of the secrets with those names, for a call of one caller. If callers' own
// secrets are among the names, the redactors find all of this caller's own secrets, and nobody else's: secrets that others choose must not be
// removed from this caller's answers. RedactorsOf allocates nothing if it was called with the same arguments before.
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

// Own returns a caller's own secret, which the operator or the caller has set, and false if there is none. It never returns another caller's.
func (v *Values) Own(name string, of personal.ID) (value string, ok bool) {
	if value, ok = v.named[ownName(name, of)]; ok {
		return value, true
	}
	if b := v.brought.Load(); b != nil {
		value, ok = (*b)[of][name]
	}
	return value, ok
}

// Given reports whether the operator has set that secret for a caller.
func (v *Values) Given(name string, of personal.ID) bool { return v.Has(ownName(name, of)) }

// Callers returns the callers for whom the operator has set secrets, with the names of these secrets.
func (v *Values) Callers() map[personal.ID][]string {
	all := map[personal.ID][]string{}
	for _, named := range v.Names() {
		if name, id, own := strings.Cut(named, "@"); own {
			all[personal.ID(id)] = append(all[personal.ID(id)], name)
		}
	}
	return all
}
