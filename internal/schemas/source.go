package schemas

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// maxSchemas bounds the schemas inside one schema. Real tools have some hundreds at most.
	maxSchemas = 5000
	// maxWalk bounds the values that are looked at to find these schemas.
	maxWalk = 1 << 20
	// maxNumber and maxNumberExponent bound a number in a schema, so that the metaschema's check can afford it.
	maxNumber         = 100
	maxNumberExponent = 400
	// maxAddress bounds the address of a schema, which every reference below it is resolved against.
	maxAddress = 2 << 10
)

// home is the address of a schema without an address of its own. Nothing is ever fetched from an address.
const home = "https://schema.invalid/"

// A source is the text of a schema, with an index of all schemas in it.
type source struct {
	tree      jsontree.Tree
	draft     draft
	base      map[int32]string           // the schemas, each with the address that its references are relative to
	order     []int32                    // the same schemas, in the order in which they were found
	named     map[string]int32           // maps an address, or address#anchor, to its schema
	index     map[int32]map[string]int32 // members of large objects by name
	targets   map[int32]int32            // the schemas to which references lead, by the reference's keyword
	walk      int                        // how many values may still be looked at
	dynamic   map[string]int             // how many schemas have a $dynamicAnchor with this name
	resources int                        // number of schemas with an address of their own, including the root
}

// readSource reads a schema, finds all schemas in it, and checks it against its draft's metaschema.
func readSource(text string) (*source, error) {
	s, err := findSchemas(text)
	if err != nil {
		return nil, err
	}
	if err := s.checkMeta(0); err != nil {
		return nil, err
	}
	return s, nil
}

// findSchemas is readSource without the check against the metaschema.
func findSchemas(text string) (*source, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("the schema has %d bytes; at most %d are allowed: shorten it", len(text), MaxSize)
	}
	s := &source{
		draft: draft2020, base: map[int32]string{}, named: map[string]int32{}, index: map[int32]map[string]int32{},
		targets: map[int32]int32{}, walk: maxWalk, dynamic: map[string]int{}, resources: 1,
	}
	if err := s.tree.Read(text); err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	if err := s.checkNumbers(); err != nil {
		return nil, err
	}
	if i := s.member(0, "$schema"); i != 0 && s.tree.Values[i].Kind == jsontree.String {
		var err error
		if s.draft, err = findDraft(s.tree.Values[i].Decoded()); err != nil {
			return nil, at(s.pointer(i), err)
		}
	}
	s.named[home] = 0
	if err := s.find(0, home); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *source) checkNumbers() error {
	for i := range s.tree.Values {
		v := &s.tree.Values[i]
		if v.Kind != jsontree.Number {
			continue
		}
		exp := 0
		if e := strings.IndexAny(v.Text, "eE"); e >= 0 && len(v.Text) <= maxNumber {
			exp, _ = strconv.Atoi(v.Text[e+1:])
		}
		if len(v.Text) > maxNumber || exp > maxNumberExponent || exp < -maxNumberExponent {
			return at(s.pointer(int32(i)), fmt.Errorf("a number in a schema has at most %d characters and an exponent up to %d: write a shorter one", maxNumber, maxNumberExponent))
		}
	}
	return nil
}

// find registers the schema at i, whose references are relative to base, and all schemas in it.
func (s *source) find(i int32, base string) error {
	if s.walk--; s.walk < 0 || len(s.order) == maxSchemas {
		return fmt.Errorf("the schema has more than %d schemas in it: make it smaller", maxSchemas)
	}
	if _, again := s.base[i]; !again {
		s.order = append(s.order, i)
	}
	s.base[i] = base
	if s.tree.Values[i].Kind != jsontree.Object {
		return nil
	}
	base, err := s.name(i, base)
	if err != nil {
		return err
	}
	s.base[i] = base
	for m := s.tree.Values[i].First; m != 0; m = s.tree.Values[m].Next {
		s.walk--
		v := &s.tree.Values[m]
		how := s.draft.subschemas(v.Key)
		switch {
		case how&one != 0 && (v.Kind == jsontree.Object || v.Kind == jsontree.Bool):
			if err := s.find(m, base); err != nil {
				return err
			}
		case how&list != 0 && v.Kind == jsontree.Array, how&members != 0 && v.Kind == jsontree.Object:
			for c := v.First; c != 0; c = s.tree.Values[c].Next {
				if v.Key == "dependencies" && s.tree.Values[c].Kind == jsontree.Array {
					continue
				}
				if err := s.find(c, base); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// name registers the address and the anchors of the schema at i, and returns the address that its references are relative to.
func (s *source) name(i int32, base string) (string, error) {
	if m := s.member(i, "$schema"); m != 0 && i != 0 {
		if d, err := findDraft(s.str(m)); err != nil || d != s.draft {
			return "", at(s.pointer(m), errors.New("a second $schema differs from the first: a file must use one draft"))
		}
	}
	if s.draft <= draft7 && s.member(i, "$ref") != 0 {
		return base, nil // other keywords next to $ref are ignored
	}
	if m := s.member(i, s.draft.id()); m != 0 {
		id := s.str(m)
		address, anchor, _ := strings.Cut(id, "#")
		if address != "" {
			resolved, ok := resolve(base, address)
			if !ok {
				return "", at(s.pointer(m), fmt.Errorf("%s is not a valid address: write a URI of at most %d bytes", quoted(id), maxAddress))
			}
			if err := s.register(m, resolved, i); err != nil {
				return "", err
			}
			if i != 0 {
				s.resources++
			}
			base = resolved
		}
		if anchor != "" {
			if err := s.register(m, base+"#"+anchor, i); err != nil {
				return "", err
			}
		}
	}
	for _, word := range []string{"$anchor", "$dynamicAnchor"} {
		m := s.member(i, word)
		if m == 0 || !s.draft.known(word) {
			continue
		}
		if word == "$dynamicAnchor" {
			s.dynamic[s.str(m)]++
		}
		if err := s.register(m, base+"#"+s.str(m), i); err != nil {
			return "", err
		}
	}
	return base, nil
}

func (s *source) register(m int32, name string, i int32) error {
	if first, ok := s.named[name]; ok && first != i {
		return at(s.pointer(m), fmt.Errorf("%s names two schemas, the other being at %s: rename one", quoted(s.str(m)), s.pointer(first)))
	}
	s.named[name] = i
	return nil
}

// target returns the schema that the reference at m, a member of the schema at i, leads to.
func (s *source) target(i, m int32) (int32, error) {
	ref := s.str(m)
	address, fragment, _ := strings.Cut(ref, "#")
	base, ok := s.base[i], true
	if address != "" {
		if base, ok = resolve(base, address); !ok {
			return 0, at(s.pointer(m), fmt.Errorf("%s is not a valid reference: write a URI of at most %d bytes", quoted(ref), maxAddress))
		}
	}
	root, ok := s.named[base]
	if !ok {
		return 0, at(s.pointer(m), fmt.Errorf(`%s points outside the file, and nothing is fetched: copy its target into "$defs", and refer to "#/$defs/..."`, quoted(ref)))
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return 0, at(s.pointer(m), fmt.Errorf("%s is not a valid reference: %w", quoted(ref), err))
	}
	to := root
	switch {
	case fragment == "" || fragment == "/":
	case fragment[0] == '/':
		for token := range strings.SplitSeq(fragment[1:], "/") {
			if to, ok = s.child(to, token); !ok {
				break
			}
		}
	default:
		to, ok = s.named[base+"#"+fragment]
	}
	if s.walk < 0 {
		return 0, at(s.pointer(m), errors.New("too many references point far into lists: move their targets into \"$defs\""))
	}
	if !ok {
		return 0, at(s.pointer(m), fmt.Errorf("%s points to nothing: correct it, or add its target", quoted(ref)))
	}
	if _, known := s.base[to]; !known {
		if err := s.adopt(to); err != nil {
			return 0, at(s.pointer(m), fmt.Errorf("%s doesn't point to a schema: %w", quoted(ref), err))
		}
	}
	s.targets[m] = to
	return to, nil
}

// adopt registers a value as a schema because a reference leads to it, although the draft expects no schema in that place.
func (s *source) adopt(i int32) error {
	base := home
	for p := i; p >= 0; p = s.tree.Values[p].Parent {
		if b, ok := s.base[p]; ok {
			base = b
			break
		}
	}
	if kind := s.tree.Values[i].Kind; kind != jsontree.Object && kind != jsontree.Bool {
		return errors.New("it is neither an object nor a boolean")
	}
	if err := s.find(i, base); err != nil {
		return err
	}
	// The check against the metaschema also looks at values that are not schemas.
	if s.walk -= len(s.tree.Values[i].Text) / 2; s.walk < 0 {
		return errors.New("too many references point to such places: move their targets into \"$defs\"")
	}
	return s.checkMeta(i)
}

// child returns the item or member of a value for one token of a JSON pointer.
func (s *source) child(i int32, token string) (int32, bool) {
	token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	v := &s.tree.Values[i]
	switch v.Kind {
	case jsontree.Object:
		m := s.member(i, token)
		return m, m != 0
	case jsontree.Array:
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || n >= int(v.Count) || strconv.Itoa(n) != token {
			return 0, false
		}
		c := v.First
		s.walk -= n
		for range n {
			c = s.tree.Values[c].Next
		}
		return c, true
	}
	return 0, false
}

// member returns the member of the value at i with a name, or 0.
func (s *source) member(i int32, name string) int32 {
	if s.tree.Values[i].Count < 16 {
		return s.tree.Member(i, name)
	}
	if s.tree.Values[i].Kind != jsontree.Object {
		return 0
	}
	index, ok := s.index[i]
	if !ok {
		index = make(map[string]int32, s.tree.Values[i].Count)
		for m := s.tree.Values[i].First; m != 0; m = s.tree.Values[m].Next {
			index[s.tree.Values[m].Key] = m
		}
		s.index[i] = index
	}
	return index[name]
}

// str returns the content of a string value, or "" for any other value.
func (s *source) str(i int32) string {
	if s.tree.Values[i].Kind != jsontree.String {
		return ""
	}
	return s.tree.Values[i].Decoded()
}

// pointer returns the JSON pointer to the value at i, shortened if it is long.
func (s *source) pointer(i int32) string {
	var tokens []string
	for ; i > 0; i = s.tree.Values[i].Parent {
		v := &s.tree.Values[i]
		token := v.Key
		if s.tree.Values[v.Parent].Kind == jsontree.Array {
			token = strconv.Itoa(int(v.Index))
		}
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(text.Clip(token, 64), "~", "~0"), "/", "~1"))
	}
	var out strings.Builder
	for n := len(tokens) - 1; n >= 0; n-- {
		out.WriteString("/" + tokens[n])
	}
	return out.String()
}

// resolve resolves an address relative to base. It returns false if the address is not valid or too long.
func resolve(base, address string) (string, bool) {
	b, err := url.Parse(base)
	if err != nil || len(address) > maxAddress {
		return "", false
	}
	a, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	resolved := b.ResolveReference(a).String()
	return resolved, len(resolved) <= maxAddress
}
