package wasmtools

import (
	"encoding/json"
	"maps"
	"slices"
)

// Needs are what a tool wants to reach outside of its sandbox, by the names of capabilities such as "http". It can reach nothing that
// it does not declare, and nothing that its operator does not grant. They must not be changed.
type Needs map[string]Need

// A Need is what is needed of one capability: the words of a list, an object, or, with neither, the capability as such.
type Need struct {
	// Words are the entries of a list, such as the URLs of "http".
	Words []string
	// Object is a JSON object, such as the schema of settings, or nil.
	Object json.RawMessage
}

// MarshalJSON writes a list, an object, or true.
func (n Need) MarshalJSON() ([]byte, error) {
	switch {
	case n.Object != nil:
		return json.Marshal(n.Object)
	case n.Words != nil:
		return json.Marshal(n.Words)
	}
	return []byte("true"), nil
}

// Names returns the names of the capabilities, sorted.
func (n Needs) Names() []string { return slices.Sorted(maps.Keys(n)) }

// IsZero reports whether nothing is needed.
func (n Needs) IsZero() bool { return len(n) == 0 }

// All returns each entry as what a tool lacks that was granted nothing.
func (n Needs) All() (all []Missing) {
	for _, name := range n.Names() {
		if n[name].Words == nil {
			all = append(all, Missing{Capability: name})
		}
		for _, word := range n[name].Words {
			all = append(all, Missing{Capability: name, Entry: word})
		}
	}
	return all
}

// A Missing is something that a tool needs and can't use.
type Missing struct {
	// Capability is the name of the capability.
	Capability string
	// Entry is the entry of its list, such as a URL. It is empty where the need is not a list, and where the entry doesn't matter.
	Entry string
	// Cause is why the tool can't use it.
	Cause Cause
	// Detail says more about the cause, such as which setting is required, or is empty.
	Detail string
	// Match is the pattern of the grant that can't be used, or empty, and Line is where it begins in its file, or 0.
	Match string
	Line  int
}

// A Cause is why a tool can't use something that it needs.
type Cause uint8

const (
	// NotGranted means that no grant has it.
	NotGranted Cause = iota
	// NoCapability is that the service doesn't have the capability.
	NoCapability
	// NoSecret means that no source has a secret: the one that Entry names, or without Entry one that the grant names, which is not shown.
	NoSecret
	// NoState means that there is no place to keep things.
	NoState
	// Unusable is that the need or its grant can't be used, as Detail says.
	Unusable
)

// And returns what n and more need together, which shares memory with both.
func (n Needs) And(more Needs) Needs {
	if more.IsZero() {
		return n
	}
	if n.IsZero() {
		return more
	}
	u := maps.Clone(n)
	for name, need := range more {
		if own, ok := u[name]; ok {
			need = Need{Words: union(own.Words, need.Words), Object: own.Object}
		}
		u[name] = need
	}
	return u
}

// union returns the elements of a, and those that only b has.
func union(a, b []string) []string {
	u := slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(u, s) {
			u = append(u, s)
		}
	}
	return u
}
