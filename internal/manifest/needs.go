package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Form says how a manifest can need a capability: as a list if Word is set, as an object if Object is set, and otherwise as true or false.
type Form struct {
	// Name is the name of the capability.
	Name string
	// Word checks an entry of the list.
	Word func(string) error
	// Object checks the object, which a manifest has for all of its tools.
	Object func(json.RawMessage) error
}

// ForeignNeed is the prefix of the capabilities that a program adds to the server that it embeds. A manifest may need any name with this prefix: only
// the server that the tool runs in knows whether it has that capability, and what form the need can have.
const ForeignNeed = "x-"

// The bounds of needs. Every tool of a module has the module's needs, so whatever is made from them may be made a thousand times.
const (
	maxNeeds = 100 // entries of a list, and capabilities of other programs
	maxWord  = 300 // bytes of an entry of a capability that is not known here
)

// needs reads what a manifest or one of its tools needs.
func (p part) needs(forms []Form) (wasmtools.Needs, error) {
	if !p.has("needs") {
		return nil, nil
	}
	object, err := p.required("needs", jsontree.Object, "leave it out if nothing is needed")
	if err != nil {
		return nil, err
	}
	var known, foreign []string
	for _, form := range forms {
		known = append(known, form.Name)
	}
	for i := object.value().First; i != 0; i = p.tree.Values[i].Next {
		if name := p.tree.Values[i].Key; strings.HasPrefix(name, ForeignNeed) && wasmtools.CheckName(name) == nil {
			foreign = append(foreign, strings.Clone(name))
		}
	}
	if len(foreign) > maxNeeds {
		return nil, fmt.Errorf("%s: %d capabilities are too many; at most %d are allowed", object.place, len(foreign), maxNeeds)
	}
	if err := object.only(append(known, foreign...)); err != nil {
		return nil, err
	}
	needs := wasmtools.Needs{}
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
	if len(needs) == 0 {
		return nil, nil
	}
	return needs, nil
}

// need adds the need of one capability. An empty list and false are left out.
func (p part) need(form Form, to wasmtools.Needs) error {
	if !p.has(form.Name) {
		return nil
	}
	switch {
	case form.Word != nil:
		words, err := p.words(form.Name, form.Word)
		if err == nil && len(words) > 0 {
			to[form.Name] = wasmtools.Need{Words: words}
		}
		return err
	case form.Object != nil:
		object, err := p.required(form.Name, jsontree.Object, "write a JSON Schema")
		if err != nil {
			return err
		}
		if p.place != "needs" {
			return fmt.Errorf("%s: a single tool can't have it: move it to the manifest's own needs", p.at(form.Name))
		}
		raw := object.raw()
		if err := form.Object(raw); err != nil {
			return fmt.Errorf("%s: %w", p.at(form.Name), err)
		}
		to[form.Name] = wasmtools.Need{Object: raw}
		return nil
	}
	needed, err := p.boolean(form.Name)
	if err == nil && needed != nil && *needed {
		to[form.Name] = wasmtools.Need{}
	}
	return err
}

// foreignNeed adds the need of a capability that is not known here.
func (p part) foreignNeed(name string, to wasmtools.Needs) error {
	form := Form{Name: name}
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

// words returns the strings of the array member of that name, or nil if there is none.
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

// Joined returns what two tools need together, or a module and one of its tools. The result shares memory with both.
func Joined(needs, more wasmtools.Needs) wasmtools.Needs {
	if len(more) == 0 {
		return needs
	}
	if len(needs) == 0 {
		return more
	}
	all := maps.Clone(needs)
	for name, need := range more {
		if own, ok := all[name]; ok {
			need = wasmtools.Need{Words: union(own.Words, need.Words), Object: own.Object}
		}
		all[name] = need
	}
	return all
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
