package wasmtools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
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

// A NeedForm is what manifests may say of one capability: a list where there is a Word, an object where there is an Object, and otherwise
// true or false.
type NeedForm struct {
	// Name is the name of the capability.
	Name string
	// Word checks an entry of the list.
	Word func(string) error
	// Object checks the object, which a manifest has for all of its tools.
	Object func(json.RawMessage) error
}

// ForeignNeed is how the names of capabilities begin that a program brings along which embeds the server. A manifest may need any such
// name: whether there is one, and what may be said of it, the server knows that the tool runs in.
const ForeignNeed = "x-"

// What needs may hold. All tools of a module have the module's needs, so what is made of them is made a thousand times.
const (
	maxNeeds = 100 // entries of each list, and names
	maxWord  = 300 // bytes of an entry of what is not known here
)

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

// A Missing is an entry of a tool's needs that it was not granted, or that can't be used although it was.
type Missing struct {
	// Capability is the name of the capability.
	Capability string
	// Entry is the entry of its list, such as a URL. It is empty where the need is not a list, and where the entry doesn't matter.
	Entry string
	// Reason says why it can't be used although it was granted, or is empty.
	Reason string
	// Secret tells that it is a secret that is missing: no source of secrets has it. Its name is Entry, or is not told.
	Secret bool
}

// String says it in a few words, such as "http https://api.example.com".
func (m Missing) String() string {
	s := m.Capability
	if m.Entry != "" {
		s += " " + m.Entry
	}
	if m.Reason != "" {
		s += " (" + m.Reason + ")"
	}
	return s
}

// maxLacks is how much a text says of what a tool lacks, in bytes: a manifest may ask for much.
const maxLacks = 1 << 10

// Lacks returns what is missing, in one line for people; "" if nothing is.
func (t *Tool) Lacks() string {
	words := make([]string, len(t.Missing))
	for i, m := range t.Missing {
		words[i] = m.String()
	}
	return text.Clip(strings.Join(words, ", "), maxLacks)
}

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

// needs reads what a manifest or one of its tools needs.
func (p part) needs(forms []NeedForm) (Needs, error) {
	if !p.has("needs") {
		return nil, nil
	}
	object, err := p.required("needs", jsontree.Object, "leave it out where nothing is needed")
	if err != nil {
		return nil, err
	}
	var known, foreign []string
	for _, form := range forms {
		known = append(known, form.Name)
	}
	for i := object.value().First; i != 0; i = p.tree.Values[i].Next {
		if name := p.tree.Values[i].Key; strings.HasPrefix(name, ForeignNeed) && CheckName(name) == nil {
			foreign = append(foreign, strings.Clone(name))
		}
	}
	if len(foreign) > maxNeeds {
		return nil, fmt.Errorf("%s: %d capabilities are too many; at most %d are allowed", object.place, len(foreign), maxNeeds)
	}
	if err := object.only(append(known, foreign...)); err != nil {
		return nil, err
	}
	needs := Needs{}
	for _, form := range forms {
		if err := object.need(form, needs); err != nil {
			return nil, err
		}
	}
	for _, name := range foreign {
		if err := object.foreignNeed(name, needs); err != nil {
			return nil, err
		}
	}
	if needs.IsZero() {
		return nil, nil
	}
	return needs, nil
}

// need adds what is said of one capability. A list of nothing, and false, are left out.
func (p part) need(form NeedForm, to Needs) error {
	if !p.has(form.Name) {
		return nil
	}
	switch {
	case form.Word != nil:
		words, err := p.words(form.Name, form.Word)
		if err == nil && len(words) > 0 {
			to[form.Name] = Need{Words: words}
		}
		return err
	case form.Object != nil:
		object, err := p.required(form.Name, jsontree.Object, "write a JSON Schema")
		if err != nil {
			return err
		}
		if p.place != "needs" {
			return fmt.Errorf("%s: a tool has none of its own: move it to the manifest's own needs", p.at(form.Name))
		}
		raw := object.raw()
		if err := form.Object(raw); err != nil {
			return fmt.Errorf("%s: %w", p.at(form.Name), err)
		}
		to[form.Name] = Need{Object: raw}
		return nil
	}
	needed, err := p.boolean(form.Name)
	if err == nil && needed != nil && *needed {
		to[form.Name] = Need{}
	}
	return err
}

// foreignNeed adds what is said of a capability that is not known here.
func (p part) foreignNeed(name string, to Needs) error {
	form := NeedForm{Name: name}
	switch member, _ := p.member(name); member.kind() {
	case jsontree.Array:
		form.Word = func(word string) error {
			if len(word) > maxWord {
				return fmt.Errorf("%q has %d bytes; the limit is %d", text.Short(word), len(word), maxWord)
			}
			return nil
		}
	case jsontree.Object:
		form.Object = func(json.RawMessage) error { return nil }
	case jsontree.Bool:
	default:
		return fmt.Errorf("%s must be true, a list of strings or an object, not %s", p.at(name), kindNames[member.kind()])
	}
	return p.need(form, to)
}

// words returns the strings of the array of that name, nil where there is none.
func (p part) words(name string, check func(string) error) ([]string, error) {
	if !p.has(name) {
		return nil, nil
	}
	array, err := p.array(name)
	if err != nil {
		return nil, err
	}
	if n := array.value().Count; n > maxNeeds {
		return nil, fmt.Errorf("%s: %d are too many; at most %d are allowed", array.place, n, maxNeeds)
	}
	words := make([]string, 0, array.value().Count)
	for i := array.value().First; i != 0; i = p.tree.Values[i].Next {
		item := part{p.tree, i, fmt.Sprintf("%s[%d]", array.place, len(words))}
		if kind := item.kind(); kind != jsontree.String {
			return nil, fmt.Errorf("%s must be a string, not %s", item.place, kindNames[kind])
		}
		word := strings.Clone(item.value().Decoded())
		if err := check(word); err != nil {
			return nil, fmt.Errorf("%s: %w", item.place, err)
		}
		if slices.Contains(words, word) {
			return nil, fmt.Errorf("%s: %q appears twice: remove one", item.place, text.Short(word))
		}
		words = append(words, word)
	}
	return words, nil
}

// CheckSecretName reports what is wrong with the name of a secret, or nil: it is 1 to 64 of the characters A-Z a-z 0-9 . _ and -, and
// does not begin with a dot.
func CheckSecretName(s string) error {
	if CheckName(strings.ReplaceAll(s, ".", "_")) != nil || s[0] == '.' {
		return fmt.Errorf("%q is not a valid name: use 1 to 64 of the characters A-Z a-z 0-9 . _ and -, without a dot at the beginning", text.Short(s))
	}
	return nil
}
