// Package scope reads the scopes of a token: patterns of tools and names of roles.
package scope

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Max is how many scopes a token may have.
const Max = 64

// A Set says what a token may do. The zero Set allows nothing. It must not be changed.
type Set struct {
	Tools    []string // patterns
	Approved []string // paths of tools with their fingerprints
	Roles    []string // names of roles as they were written
}

// included returns the roles that the name of a role includes, or nil for another word.
func included(word string) []string {
	switch word {
	case wasmtools.RoleAdmin:
		return []string{wasmtools.RoleAdmin, wasmtools.RoleAdminRead, wasmtools.RoleMetrics}
	case wasmtools.RoleAdminRead, wasmtools.RoleMetrics:
		return []string{word}
	}
	return nil
}

// Parse reads scopes. "*" means every tool, but no role. An error names a scope by its number only, since the scope may be a secret in the wrong
// place.
func Parse(scopes []string) (s Set, err error) {
	if len(scopes) > Max {
		return s, fmt.Errorf("there are %d scopes; at most %d are allowed: use patterns such as \"math/*\"", len(scopes), Max)
	}
	for i, text := range scopes {
		if err := Check(text); err != nil {
			return Set{}, fmt.Errorf("scope %d of %d: %w", i+1, len(scopes), err)
		}
		list := &s.Tools
		if included(text) != nil {
			list = &s.Roles
		} else if approval, ok, _ := pattern.ParseApproval(text); ok {
			list, text = &s.Approved, written(approval)
		}
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	if err := s.checkApproved(scopes); err != nil {
		return Set{}, err
	}
	return s, nil
}

// written returns an approval in the form that all sets use, so that sets can be compared.
func written(a pattern.Approval) string { return a.Path[1:] + "@" + a.Fingerprint }

// checkApproved refuses a fingerprint that has no effect, because another scope allows the tool with any fingerprint: whoever wrote the fingerprint
// relies on it.
func (s Set) checkApproved(scopes []string) error {
	for i, text := range scopes {
		if a, ok, err := pattern.ParseApproval(text); ok && err == nil && s.matches(a.Path) {
			return fmt.Errorf("scope %d of %d has a fingerprint, but another scope names the same tool without one: remove one of them", i+1, len(scopes))
		}
	}
	return nil
}

// matches reports whether a pattern of the set matches the tool at a path.
func (s Set) matches(path string) bool {
	return slices.ContainsFunc(s.Tools, func(p string) bool { return pattern.Match(p, path) })
}

// allows reports whether the set allows a tool with a fingerprint, in the form of an element of Approved.
func (s Set) allows(approved string) bool {
	path, _, _ := strings.Cut(approved, "@")
	return slices.Contains(s.Approved, approved) || s.matches("/"+path)
}

// Check returns what is wrong with a scope, or nil. The error does not show the scope.
func Check(text string) error {
	if included(text) != nil {
		return nil
	}
	if _, ok, err := pattern.ParseApproval(text); ok {
		return unquoted(err)
	}
	if strings.Contains(text, ":") {
		return errors.New(`there is no such role: use admin, admin:read or metrics, or a pattern of tools such as "math/*"`)
	}
	return unquoted(pattern.Check(text))
}

// unquoted returns an error without the text at its beginning.
func unquoted(err error) error {
	if err == nil {
		return nil
	}
	message := err.Error()
	if quoted, err := strconv.QuotedPrefix(message); err == nil {
		message = "it " + strings.TrimSpace(message[len(quoted):])
	}
	return errors.New(message)
}

// Scopes returns the set in the form that Parse reads.
func (s Set) Scopes() []string { return slices.Concat(s.Tools, s.Approved, s.Roles) }

// Equal reports whether two sets have the same scopes.
func (s Set) Equal(other Set) bool {
	return slices.Equal(s.Tools, other.Tools) && slices.Equal(s.Approved, other.Approved) && slices.Equal(s.Roles, other.Roles)
}

// Add adds the scopes of another set.
func (s *Set) Add(other Set) {
	s.Tools = append(s.Tools, other.Tools...)
	s.Approved = append(s.Approved, other.Approved...)
	s.Roles = append(s.Roles, other.Roles...)
}

// Within returns nil if the other set allows everything that this set allows. Otherwise the error names a scope of this set that the other set does
// not allow. Patterns are compared by what they match.
func (s Set) Within(all Set) error {
	for _, role := range s.Roles {
		if !all.has(role) {
			return fmt.Errorf("the scope %q is more than the token has", role)
		}
	}
	for _, a := range s.Approved {
		if !all.allows(a) {
			return fmt.Errorf("the scope %q is more than the token has", a)
		}
	}
	for _, p := range s.Tools {
		if uncovered, ok := pattern.Cover(all.Tools, p); uncovered != "" {
			return fmt.Errorf("the scope %q is more than the token has: it also matches %s", p, uncovered)
		} else if !ok {
			return fmt.Errorf("the scope %q has too many asterisks to be compared with the token's: use simpler ones", p)
		}
	}
	return nil
}

// Clip returns the scopes of the set that another set allows, too: each scope as a whole, or not at all.
func (s Set) Clip(all Set) (clipped Set) {
	for _, role := range s.Roles {
		if all.has(role) {
			clipped.Roles = append(clipped.Roles, role)
		}
	}
	for _, a := range s.Approved {
		if all.allows(a) {
			clipped.Approved = append(clipped.Approved, a)
		}
	}
	for _, p := range s.Tools {
		if _, ok := pattern.Cover(all.Tools, p); ok {
			clipped.Tools = append(clipped.Tools, p)
		}
	}
	return clipped
}

func (s Set) has(role string) bool {
	return slices.ContainsFunc(s.Roles, func(own string) bool { return slices.Contains(included(own), role) })
}

// Principal returns a principal with the permissions of the set.
func (s Set) Principal(name, origin string) (*wasmtools.Principal, error) {
	p, err := wasmtools.NewPrincipal(name, origin, slices.Concat(s.Tools, s.Approved)...)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, role := range s.Roles {
		for _, one := range included(role) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return p.WithRoles(all...)
}
