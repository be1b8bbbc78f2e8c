package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// maxNeeds bounds how many schemas, and names in them, are looked at to find out which members a schema requires.
const maxNeeds = 10_000

// maxRepeated is how many members may lead to a part that could not be joined, since that part is checked once for each of them in a value.
const maxRepeated = 64

// inPlace are the keywords that check the whole value against another schema or against values. Many readers of a tool's schema refuse them at its
// root.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const"}

// naming are the keywords that give schemas addresses. Readers that collect the schemas of several tools in one place confuse these addresses, and
// some readers don't know the keywords.
var naming = []string{"$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}

// Standalone returns the schema as a plain object: its "type" is "object", and every reference leads to its
// "$defs". A schema that already has this form, and is not in draft 4, is returned as it was written. Otherwise the result is in draft 2020-12.
// Standalone returns nil if the schema allows values that are not objects.
func (s *Schema) Standalone() json.RawMessage {
	if !s.root.objectsOnly() {
		return nil
	}
	from := s.source()
	if from.isStandalone() {
		return s.text
	}
	d := newDocumenter(from, "#/$defs/", "")
	root := d.root(true)
	for _, f := range membersOf([]field{{"", root}}, "") {
		switch {
		case f.key != "type" || string(f.value) == `"object"`:
		case !bytes.Contains(f.value, []byte(`"object"`)): // a string, but not "object"
			return json.RawMessage(`{"type":"object","not":{}}`)
		default: // a list of types
			root = bytes.Replace(root, slices.Concat([]byte(`"type":`), f.value), []byte(`"type":"object"`), 1)
		}
	}
	return compact(append(root[:len(root)-1:len(root)-1], d.end()...))
}

// Flat returns a schema of objects as Standalone does, but without keywords at the root that apply other schemas to the whole value (such as "allOf"
// and "if") or list whole values. text allows the same values, unless rest is not nil. Then rest is a schema with the rules that could not be
// expressed in this way. It applies to the same values, and its references lead into the "$defs" of text. text is nil if the schema allows values
// that are not objects.
func (s *Schema) Flat() (text, rest json.RawMessage) {
	if !s.root.objectsOnly() {
		return nil, nil
	}
	from := s.source()
	if from.isFlat() && from.isStandalone() {
		return s.text, nil
	}
	f := &flattener{documenter: newDocumenter(from, "#/$defs/", ""), seen: map[int32]bool{}, isRequired: map[string]bool{}, needsLeft: maxNeeds}
	f.add(0, true)
	return f.write()
}

// isFlat reports whether the root has properties, and no keyword that Flat removes or changes.
func (s *source) isFlat() bool {
	properties := false
	for m := s.tree.Values[0].First; m != 0; m = s.tree.Values[m].Next {
		key := s.tree.Values[m].Key
		if slices.Contains(inPlace, key) || key == "dependencies" {
			return false
		}
		properties = properties || key == "properties"
	}
	return properties && s.draft == draft2020
}

// isStandalone reports whether the root has the form that Standalone promises.
func (s *source) isStandalone() bool {
	typ := s.tree.Member(0, "type")
	if s.draft == draft4 || typ == 0 || s.tree.Values[typ].Text != `"object"` || s.tree.Member(0, "$ref") != 0 {
		return false
	}
	for i := range s.tree.Values {
		if key := s.tree.Values[i].Key; strings.HasPrefix(key, "$") && slices.Contains(naming, key) {
			return false
		}
	}
	return true
}

// end writes the definitions and the end of a root object that is not empty.
func (d *documenter) end() []byte {
	if definitions := d.definitions(); len(definitions) > 0 {
		return append(append([]byte(`,"$defs":`), object(definitions)...), '}')
	}
	return []byte("}")
}

// A flattener joins the schemas that apply to the whole value into one.
type flattener struct {
	*documenter
	seen       map[int32]bool
	fields     []field // fields of the root, except those that the other fields here hold
	properties []property
	required   []string
	isRequired map[string]bool // the names in required, as a set
	patterns   []field
	dependents []field // dependentSchemas
	rest       []constraint
	needsLeft  int
}

// A property is a property with all schemas that apply to it.
type property struct {
	name    string
	schemas [][]byte
}

// A constraint is a schema that could not be joined.
type constraint struct {
	schema []byte
	needs  []string // members that the schema requires in any case
	offers []int32  // the alternatives, of which one or more must apply
}

// add adds the schema at i, which applies to the whole value.
func (f *flattener) add(i int32, root bool) {
	if f.seen[i] {
		return
	}
	f.seen[i] = true
	if f.tree.Values[i].Kind != jsontree.Object {
		if f.tree.Values[i].Text == "false" {
			f.rest = append(f.rest, constraint{schema: []byte("false")})
		}
		return
	}
	fields, refs, extra := f.parts(i)
	if n := slices.IndexFunc(fields, func(g field) bool { return g.key == "type" }); n >= 0 && !bytes.Contains(fields[n].value, []byte(`"object"`)) {
		f.rest = append(f.rest, constraint{schema: []byte("false")})
		return
	}
	var own []field
	for _, g := range fields {
		if !slices.Contains(inPlace, g.key) {
			own = append(own, g)
		}
	}
	for _, more := range extra {
		if slices.ContainsFunc(more, func(g field) bool { return g.key == "not" || has(own, g.key) }) {
			f.rest = append(f.rest, constraint{schema: object(more)})
		} else {
			own = append(own, more...)
		}
	}
	if !root && !f.fits(own) {
		f.rest = append(f.rest, constraint{schema: f.schema(i), needs: f.needs(i, 0)})
		return
	}
	f.join(own)
	for _, to := range refs {
		f.add(to, false)
	}
	if f.draft <= draft7 && len(refs) > 0 {
		return // in these drafts, the siblings of a reference mean nothing
	}
	for _, item := range f.list(i, "allOf") {
		f.add(item, false)
	}
	var condition []field
	for _, g := range fields {
		switch g.key {
		case "anyOf", "oneOf":
			items := f.list(i, g.key)
			f.rest = append(f.rest, constraint{object([]field{g}), f.common(items, 0), items})
		case "not", "enum", "const":
			f.rest = append(f.rest, constraint{schema: object([]field{g})})
		case "if", "then", "else":
			condition = append(condition, g)
		}
	}
	if has(condition, "if") { // even without then and else, an if decides which members are evaluated
		f.rest = append(f.rest, constraint{schema: object(condition), needs: f.branches(i, 0)})
	}
}

// fits reports whether the members of a schema can be joined with the existing ones without changing their meaning.
func (f *flattener) fits(own []field) bool {
	if has(own, "unevaluatedProperties") {
		return false // unevaluatedProperties looks only at its own schema
	}
	added := membersOf(own, "properties")
	isKnown := func(a field) bool { return f.property(a.key) >= 0 }
	isAdded := func(p property) bool { return has(added, p.name) }
	// "additionalProperties" applies to the properties that the same schema does not name.
	if has(f.fields, "additionalProperties") && (!all(added, isKnown) || has(own, "patternProperties")) {
		return false
	}
	if has(own, "additionalProperties") && (has(f.fields, "additionalProperties") || !all(f.properties, isAdded) || len(f.patterns) > 0) {
		return false
	}
	for _, key := range []string{"minProperties", "maxProperties", "propertyNames", "dependentRequired"} {
		if has(own, key) && has(f.fields, key) {
			return false
		}
	}
	clash := func(a, b []field) bool {
		return slices.ContainsFunc(a, func(g field) bool { return has(b, g.key) })
	}
	return !clash(membersOf(own, "patternProperties"), f.patterns) && !clash(membersOf(own, "dependentSchemas"), f.dependents)
}

// join adds the members of a schema. If two members don't affect validity, the first one stays.
func (f *flattener) join(own []field) {
	for _, g := range own {
		switch g.key {
		case "type":
		case "properties":
			for _, p := range membersOf(own, g.key) {
				if n := f.property(p.key); n >= 0 {
					f.properties[n].schemas = append(f.properties[n].schemas, p.value)
				} else {
					f.properties = append(f.properties, property{p.key, [][]byte{p.value}})
				}
			}
		case "required":
			for _, name := range stringsOf(g.value) {
				f.require(name)
			}
		case "patternProperties":
			f.patterns = append(f.patterns, membersOf(own, g.key)...)
		case "dependentSchemas":
			f.dependents = append(f.dependents, membersOf(own, g.key)...)
		default:
			if !has(f.fields, g.key) {
				f.fields = append(f.fields, g)
			}
		}
	}
}

// property returns the index of a property, or -1.
func (f *flattener) property(name string) int {
	return slices.IndexFunc(f.properties, func(p property) bool { return p.name == name })
}

func (f *flattener) require(name string) {
	if !f.isRequired[name] {
		f.isRequired[name] = true
		f.required = append(f.required, name)
	}
}

// write returns the whole schema. What could not be joined is put below a member that is always present, so that it always applies.
func (f *flattener) write() (text, rest json.RawMessage) {
	for _, c := range f.rest {
		for _, name := range c.needs {
			f.require(name)
		}
	}
	f.offer()
	var left [][]byte
	for _, c := range f.rest {
		left = append(left, c.schema)
	}
	whole := both(left)
	definitions := f.definitions()
	closed := slices.ContainsFunc(f.fields, func(g field) bool { return g.key == "additionalProperties" && string(g.value) == "false" }) && len(f.patterns) == 0
	switch {
	case whole == nil:
	case len(f.required) > 0:
		f.depend(f.required[0], whole)
	case closed && len(f.properties) <= maxRepeated && f.judgeEmpty(whole, definitions): // an object has at least one of the properties, or is empty
		if len(f.properties) == 0 {
			break
		}
		name := f.unused("whole")
		definitions = append(definitions, field{name, whole})
		for _, p := range f.properties {
			f.depend(p.name, []byte(`{"$ref":"#/$defs/`+name+`"}`))
		}
	default:
		rest = compact(whole)
	}
	return compact(object(f.members(definitions))), rest
}

// members returns the members of the whole schema.
func (f *flattener) members(definitions []field) []field {
	var all []field
	if f.tree.Member(0, "$schema") != 0 {
		all = append(all, field{"$schema", []byte(jsontree.Quote(draft2020.uri()))})
	}
	all = append(all, field{"type", []byte(`"object"`)})
	for _, key := range []string{"title", "description"} {
		if n := slices.IndexFunc(f.fields, func(g field) bool { return g.key == key }); n >= 0 {
			all = append(all, f.fields[n])
			f.fields = slices.Delete(f.fields, n, n+1)
		}
	}
	var properties []field
	for _, p := range f.properties {
		properties = append(properties, field{p.name, both(p.schemas)})
	}
	all = append(all, field{"properties", object(properties)})
	if len(f.required) > 0 {
		var list [][]byte
		for _, name := range f.required {
			list = append(list, []byte(jsontree.Quote(name)))
		}
		all = append(all, field{"required", array(list)})
	}
	if len(f.patterns) > 0 {
		all = append(all, field{"patternProperties", object(f.patterns)})
	}
	all = append(all, f.fields...)
	if len(f.dependents) > 0 {
		all = append(all, field{"dependentSchemas", object(f.dependents)})
	}
	if len(definitions) > 0 {
		all = append(all, field{"$defs", object(definitions)})
	}
	return all
}

// depend makes a schema apply to the whole value if the value has a member with this name.
func (f *flattener) depend(name string, schema []byte) {
	if n := slices.IndexFunc(f.dependents, func(g field) bool { return g.key == name }); n >= 0 {
		f.dependents[n].value = both([][]byte{f.dependents[n].value, schema})
		return
	}
	f.dependents = append(f.dependents, field{name, schema})
}

// judgeEmpty refuses the empty object if a schema refuses it. It returns false if that can't be found out.
func (f *flattener) judgeEmpty(whole []byte, definitions []field) bool {
	s, err := Compile(object([]field{{"allOf", array([][]byte{whole})}, {"$defs", object(definitions)}}))
	if err != nil || s.Check([]byte("{}")) == nil {
		return err == nil
	}
	n := slices.IndexFunc(f.fields, func(g field) bool { return g.key == "minProperties" })
	if n < 0 {
		f.fields = append(f.fields, field{"minProperties", []byte("1")})
	} else if d := jsontree.ParseDecimal(string(f.fields[n].value)); d.Int(1) == 0 {
		f.fields[n].value = []byte("1")
	}
	return true
}

// offer adds to the root the members that only alternatives name, since some readers look only at the root. It allows any value for these members,
// since the root does not know which alternative applies.
func (f *flattener) offer() {
	if has(f.fields, "additionalProperties") || has(f.fields, "unevaluatedProperties") || len(f.patterns) > 0 {
		return
	}
	for _, c := range f.rest {
		for _, i := range c.offers {
			for p := f.first(i, "properties"); p != 0; p = f.tree.Values[p].Next {
				name := f.tree.Values[p].Key
				if f.property(name) >= 0 {
					continue
				}
				value := []byte("{}")
				if d := f.tree.Member(p, "description"); d != 0 && f.tree.Values[d].Kind == jsontree.String {
					value = object([]field{{"description", []byte(f.tree.Values[d].Text)}})
				}
				f.properties = append(f.properties, property{name, [][]byte{value}})
			}
		}
	}
}

// needs returns members that the schema at i requires in any case. It may not find all of them.
func (f *flattener) needs(i int32, depth int) (all []string) {
	if f.needsLeft--; f.needsLeft < 0 || depth > jsontree.MaxDepth || f.tree.Values[i].Kind != jsontree.Object {
		return nil
	}
	for _, name := range []string{"$ref", "$recursiveRef", "$dynamicRef"} {
		if to, ok := f.source.targets[f.keyword(i, name)]; ok {
			if all = append(all, f.needs(to, depth+1)...); f.draft <= draft7 {
				return all
			}
		}
	}
	if m := f.keyword(i, "required"); m != 0 {
		if f.needsLeft -= int(f.tree.Values[m].Count); f.needsLeft < 0 {
			return nil
		}
		all = append(all, stringsOf([]byte(f.tree.Values[m].Text))...)
	}
	for _, item := range f.list(i, "allOf") {
		all = append(all, f.needs(item, depth+1)...)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		all = append(all, f.common(f.list(i, key), depth)...)
	}
	return append(all, f.branches(i, depth)...)
}

// branches returns the members that both "then" and "else" require.
func (f *flattener) branches(i int32, depth int) []string {
	then, otherwise := f.keyword(i, "then"), f.keyword(i, "else")
	if f.keyword(i, "if") == 0 || then == 0 || otherwise == 0 {
		return nil
	}
	return f.common([]int32{then, otherwise}, depth)
}

// common returns the members that all of these schemas require.
func (f *flattener) common(schemas []int32, depth int) (all []string) {
	for n, i := range schemas {
		needs := f.needs(i, depth+1)
		if n == 0 {
			all = needs
		} else {
			all = slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(needs, name) })
		}
	}
	return all
}

// list returns the items of a keyword whose value is a list of schemas.
func (f *flattener) list(i int32, name string) (items []int32) {
	for c := f.first(i, name); c != 0; c = f.tree.Values[c].Next {
		items = append(items, c)
	}
	return items
}

// first returns the first item or member of a keyword's value, or 0.
func (f *flattener) first(i int32, name string) int32 {
	if m := f.keyword(i, name); m != 0 {
		return f.tree.Values[m].First
	}
	return 0
}

func has(fields []field, key string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.key == key })
}

func all[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !is(v) })
}

// both returns a schema that requires all of these schemas, or nil if there are none.
func both(schemas [][]byte) []byte {
	switch len(schemas) {
	case 0:
		return nil
	case 1:
		return schemas[0]
	}
	return object([]field{{"allOf", array(schemas)}})
}

// membersOf returns the members of an object that is the value of a key.
func membersOf(fields []field, key string) (all []field) {
	n := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	var tree jsontree.Tree
	if n < 0 || tree.Read(string(fields[n].value)) != nil {
		return nil
	}
	for c := tree.Values[0].First; c != 0; c = tree.Values[c].Next {
		all = append(all, field{tree.Values[c].Key, []byte(tree.Values[c].Text)})
	}
	return all
}

// stringsOf returns the strings of an array.
func stringsOf(text []byte) (all []string) {
	var tree jsontree.Tree
	if tree.Read(string(text)) != nil {
		return nil
	}
	for c := tree.Values[0].First; c != 0; c = tree.Values[c].Next {
		if tree.Values[c].Kind == jsontree.String {
			all = append(all, tree.Values[c].Decoded())
		}
	}
	return all
}
