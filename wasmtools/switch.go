package wasmtools

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A Policy says which tools start enabled. The zero Policy enables all.
type Policy struct {
	// With Allowlist, only tools that Enabled names start enabled. Otherwise all tools do, except those that Disabled names. Entries are
	// namespaces (with those below) or tools, such as "web" or "math/div"; "/" means all, and an empty entry names nothing.
	Allowlist bool
	Enabled   []string
	Disabled  []string
	// Reasons says why entries of Disabled are disabled. Callers of a tool get the reason of the most specific entry.
	Reasons map[string]string
}

// switches say which tools are enabled.
type switches struct {
	initial initial
	changes map[string]change // by scope; each change is newer than all changes that cover its scope
}

// initial is a Policy in a form that is fast to look up.
type initial struct {
	allowlist bool
	scopes    map[string]struct{} // the enabled scopes of an allowlist, or the disabled ones otherwise
	reasons   map[string]string   // the reasons why scopes are disabled
}

// change is what Enable or Disable has said about a scope.
type change struct {
	enabled bool
	reason  string
	since   time.Time
	by      string
}

func newInitial(p Policy) initial {
	entries := p.Disabled
	if p.Allowlist {
		entries = p.Enabled
	}
	scopes := make(map[string]struct{}, len(entries))
	for _, entry := range entries {
		scopes[scopeOf(entry)] = struct{}{}
	}
	if p.Allowlist {
		return initial{allowlist: true, scopes: scopes}
	}
	reasons := make(map[string]string, len(p.Reasons))
	for entry, reason := range p.Reasons {
		reasons[scopeOf(entry)] = reason
	}
	return initial{scopes: scopes, reasons: reasons}
}

// set makes c the newest change. It replaces the changes that it covers, so that the change nearest to a tool is always the newest.
func (s *switches) set(scope string, c change) {
	if s.changes == nil {
		s.changes = map[string]change{}
	}
	maps.DeleteFunc(s.changes, func(old string, _ change) bool { return covers(scope, old) })
	s.changes[scope] = c
}

// reset removes the changes of a scope and of the scopes that it covers.
func (s *switches) reset(scope string) {
	maps.DeleteFunc(s.changes, func(old string, _ change) bool { return covers(scope, old) })
}

// list returns the changes sorted by scope.
func (s *switches) list() []Switch {
	var list []Switch
	for _, scope := range slices.Sorted(maps.Keys(s.changes)) {
		c := s.changes[scope]
		list = append(list, Switch{scope, c.enabled, c.reason, c.since, c.by})
	}
	return list
}

// state returns the switch of the tool at path: the newest change that covers it, or else the policy. It takes one look-up for each part of the path,
// however many switches and entries there are.
func (s *switches) state(path string) (enabled bool, reason string) {
	named := false
	for scope := path; ; scope = scope[:max(1, strings.LastIndexByte(scope, '/'))] {
		if c, ok := s.changes[scope]; ok {
			return c.enabled, c.reason
		}
		if _, ok := s.initial.scopes[scope]; ok {
			named = true
			if reason == "" {
				reason = s.initial.reasons[scope]
			}
		}
		if scope == "/" {
			return named == s.initial.allowlist, reason
		}
	}
}

// scopeOf returns the scope of a name that an operator has written: "/web" for "web", "/web" or "/web/". The scope of "" covers nothing.
func scopeOf(entry string) string {
	if entry == "" {
		return ""
	}
	return "/" + strings.Trim(entry, "/")
}

// covers reports whether the tool or namespace at scope is the one at path, or contains it.
func covers(scope, path string) bool {
	if scope == "" {
		return false
	}
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (rest == "" || rest[0] == '/' || scope == "/")
}
