package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// maxComponent bounds the part of a component's name that comes from the schema.
const maxComponent = 100

// Document returns the schema in the form of OpenAPI 3.1: in draft 2020-12, whatever draft it was written in, and with every reference changed to
// "#/components/schemas/<prefix>.<name>". definitions has the components with these names, in the same form, but only those that are referred to.
// Names match ^[a-zA-Z0-9._-]+$ and are all different. An array whose items may be anything has "items": {}, since some client generators
// otherwise leave the array out. The root is always an inline object with its properties at the top, even if the author wrote it as a reference. A
// reference never has siblings: it is alone, or in an allOf. The result is the same every time.
func (s *Schema) Document(prefix string) (root json.RawMessage, definitions map[string]json.RawMessage) {
	d := newDocumenter(s.source(), "#/components/schemas/", component(prefix))
	d.filled = !d.uses("unevaluatedItems") // since items that "items": {} allows would count as evaluated
	root = d.root(s.argument)
	definitions = map[string]json.RawMessage{}
	for _, f := range d.definitions() {
		definitions[f.key] = compact(f.value)
	}
	return root, definitions
}

// A documenter writes one schema as a document and its components.
type documenter struct {
	*source
	place   string           // what references begin with: the place of the definitions
	prefix  string           // what the names of the definitions begin with
	filled  bool             // arrays without the keyword items get it
	sparing bool             // unevaluatedItems may still apply to items that contains has matched, unlike in 2020-12
	targets map[int32]bool   // targets of references: they become components if they are needed
	names   map[int32]string // names of the components that are needed
	taken   map[string]bool
	counts  map[string]int
	queue   []int32 // components that are not written yet
}

func newDocumenter(s *source, place, prefix string) *documenter {
	d := &documenter{source: s, place: place, prefix: prefix, targets: map[int32]bool{}, names: map[int32]string{}, taken: map[string]bool{}, counts: map[string]int{}}
	for _, to := range s.targets {
		d.targets[to] = true
	}
	d.sparing = d.draft == draft2019 && d.uses("unevaluatedItems")
	return d
}

// uses reports whether a member with this name is anywhere in the schema.
func (d *documenter) uses(key string) bool {
	return slices.ContainsFunc(d.tree.Values, func(v jsontree.Value) bool { return v.Key == key })
}

// keyword returns the value of a keyword of the schema at i, or 0 if it is missing or the draft doesn't know it.
func (d *documenter) keyword(i int32, name string) int32 {
	if !d.draft.known(name) {
		return 0
	}
	return d.tree.Member(i, name)
}

// definitions writes everything that was referred to, directly or not.
func (d *documenter) definitions() (fields []field) {
	for len(d.queue) > 0 {
		i := d.queue[0]
		d.queue = d.queue[1:]
		fields = append(fields, field{d.names[i], d.schema(i)})
	}
	return fields
}

// A field is a member of a schema in the document.
type field struct {
	key   string
	value []byte
}

// annotations are the keywords that keep their meaning beside a reference in every draft.
var annotations = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}

// dropped are the keywords that a document doesn't have, since its schemas are found by their components' names.
var dropped = []string{
	"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions",
	"$ref", "$recursiveRef", "$dynamicRef",
}

func (d *documenter) root(argument bool) json.RawMessage {
	if d.tree.Values[0].Kind != jsontree.Object {
		return json.RawMessage(d.tree.Values[0].Text)
	}
	fields, refs := d.fields(0)
	for len(refs) == 1 && !slices.ContainsFunc(fields, func(f field) bool { return !slices.Contains(annotations, f.key) }) {
		// The author's root is a reference: the members of its target replace it.
		target := refs[0]
		if d.tree.Values[target].Kind != jsontree.Object {
			break
		}
		var more []field
		more, refs = d.fields(target)
		for _, f := range more {
			if !slices.ContainsFunc(fields, func(g field) bool { return g.key == f.key }) {
				fields = append(fields, f)
			}
		}
	}
	if argument && !slices.ContainsFunc(fields, func(f field) bool { return f.key == "type" }) {
		fields = slices.Insert(fields, 0, field{"type", []byte(`"object"`)})
	}
	return compact(d.object(fields, refs))
}

// inner writes a schema inside another one: in full, or as a reference if it is a component anyway.
func (d *documenter) inner(i int32) []byte {
	if d.targets[i] {
		return d.reference(i)
	}
	return d.schema(i)
}

func (d *documenter) schema(i int32) []byte {
	if d.tree.Values[i].Kind != jsontree.Object {
		return []byte(d.tree.Values[i].Text)
	}
	return d.object(d.fields(i))
}

// object writes a schema of fields and of references.
func (d *documenter) object(fields []field, refs []int32) []byte {
	if len(refs) == 1 && len(fields) == 0 {
		return d.reference(refs[0])
	}
	if len(refs) > 0 {
		var list [][]byte
		for _, to := range refs {
			list = append(list, d.reference(to))
		}
		fields = withAll(fields, list)
	}
	return object(fields)
}

func object(fields []field) []byte {
	out := []byte{'{'}
	for n, f := range fields {
		if n > 0 {
			out = append(out, ',')
		}
		out = append(append(out, jsontree.Quote(f.key)...), ':')
		out = append(out, f.value...)
	}
	return append(out, '}')
}

func array(items [][]byte) []byte {
	return slices.Concat([]byte{'['}, bytes.Join(items, []byte{','}), []byte{']'})
}

// withAll returns fields with schemas added at the beginning of their allOf: the first of several defaults wins, and a reference's defaults come
// before those of allOf.
func withAll(fields []field, schemas [][]byte) []field {
	for n := range fields {
		if fields[n].key == "allOf" {
			all := array(schemas)
			fields[n].value = slices.Concat(all[:len(all)-1], []byte{','}, fields[n].value[1:])
			return fields
		}
	}
	return append(fields, field{"allOf", array(schemas)})
}

func (d *documenter) reference(i int32) []byte {
	name, ok := d.names[i]
	if !ok {
		name = d.choose(i)
		d.names[i] = name
		d.queue = append(d.queue, i)
	}
	return []byte(`{"$ref":"` + d.place + name + `"}`)
}

// choose returns a new name for the component of the schema at i.
func (d *documenter) choose(i int32) string {
	tokens := strings.Split(strings.TrimPrefix(d.pointer(i), "/"), "/")
	if n := len(tokens); n > 1 && (tokens[n-2] == "$defs" || tokens[n-2] == "definitions") {
		tokens = tokens[n-1:]
	}
	if i == 0 {
		tokens = []string{"root"}
	}
	base := component(strings.Join(tokens, "."))
	if d.prefix != "" {
		base = d.prefix + "." + base
	}
	return d.unused(base)
}

// unused returns a name that no definition has yet.
func (d *documenter) unused(base string) string {
	name := base
	for d.taken[name] {
		d.counts[base]++
		name = base + "-" + strconv.Itoa(d.counts[base]+1)
	}
	d.taken[name] = true
	return name
}

// component turns text into a valid component name of OpenAPI.
func component(text string) string {
	text = strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '_'
	}, text)
	return text[:min(len(text), maxComponent)]
}

// fields returns the members of the schema at i in draft 2020-12, in the author's order, and the schemas it refers to.
func (d *documenter) fields(i int32) (fields []field, refs []int32) {
	fields, refs, extra := d.parts(i)
	var all [][]byte
	for _, more := range extra {
		all = append(all, object(more))
	}
	if len(all) > 0 {
		fields = withAll(fields, all)
	}
	return fields, refs
}

// parts is like fields, but returns as extra the further schemas that apply, which the author did not write in that form.
func (d *documenter) parts(i int32) (fields []field, refs []int32, extra [][]field) {
	keyword := func(name string) int32 {
		if !d.draft.known(name) {
			return 0
		}
		return d.tree.Member(i, name)
	}
	for _, name := range []string{"$ref", "$recursiveRef", "$dynamicRef"} {
		if to, ok := d.source.targets[keyword(name)]; ok {
			refs = append(refs, to)
		}
	}
	alone := d.draft <= draft7 && len(refs) > 0
	items := keyword("items")
	tuple := items != 0 && d.tree.Values[items].Kind == jsontree.Array
	var counted []field
	for m := d.tree.Values[i].First; m != 0; m = d.tree.Values[m].Next {
		v := &d.tree.Values[m]
		key, value := v.Key, []byte(nil)
		switch {
		case slices.Contains(dropped, key), !d.draft.known(key) && key != "additionalItems",
			alone && !slices.Contains(annotations, key), d.draft == draft4 && key == "id":
			continue
		case (key == "exclusiveMinimum" || key == "exclusiveMaximum") && v.Kind == jsontree.Bool:
			limit := d.tree.Member(i, "m"+key[len("exclusiveM"):])
			if v.Text == "false" || limit == 0 {
				continue
			}
			value = []byte(d.tree.Values[limit].Text)
		case key == "minimum" && d.isTrue(i, "exclusiveMinimum"), key == "maximum" && d.isTrue(i, "exclusiveMaximum"):
			continue
		case key == "items" && tuple:
			key = "prefixItems"
			value = d.children(m, list)
		case key == "additionalItems":
			if !tuple || !d.draft.known(key) {
				continue
			}
			key = "items"
			value = d.inner(m)
		case key == "dependencies":
			extra = append(extra, d.dependencies(m))
			continue
		case d.sparing && slices.Contains([]string{"contains", "minContains", "maxContains"}, key):
			counted = append(counted, field{key, d.children(m, d.draft.subschemas(key))})
			continue
		default:
			value = d.children(m, d.draft.subschemas(key))
		}
		fields = append(fields, field{key, value})
	}
	if d.filled && !alone && d.mayBeArray(i) && !slices.ContainsFunc(fields, func(f field) bool { return f.key == "items" }) {
		fields = append(fields, field{"items", []byte("{}")})
	}
	if len(counted) > 0 { // evaluations inside "not" have no effect outside it, and a double "not" cancels out
		extra = append(extra, []field{{"not", object([]field{{"not", object(counted)}})}})
	}
	return fields, refs, extra
}

// mayBeArray reports whether the schema at i names arrays among its types.
func (d *documenter) mayBeArray(i int32) bool {
	kind := d.tree.Member(i, "type")
	if kind == 0 {
		return false
	}
	if v := &d.tree.Values[kind]; v.Kind != jsontree.Array {
		return v.Text == `"array"`
	}
	for c := d.tree.Values[kind].First; c != 0; c = d.tree.Values[c].Next {
		if d.tree.Values[c].Text == `"array"` {
			return true
		}
	}
	return false
}

// children writes the value of a keyword. how says in which ways it may hold schemas; any other value is copied.
func (d *documenter) children(m int32, how holds) []byte {
	v := &d.tree.Values[m]
	switch {
	case how&list != 0 && v.Kind == jsontree.Array:
		var items [][]byte
		for c := v.First; c != 0; c = d.tree.Values[c].Next {
			items = append(items, d.inner(c))
		}
		return array(items)
	case how&members != 0 && v.Kind == jsontree.Object:
		var fields []field
		for c := v.First; c != 0; c = d.tree.Values[c].Next {
			fields = append(fields, field{d.tree.Values[c].Key, d.inner(c)})
		}
		return object(fields)
	case how&one != 0:
		return d.inner(m)
	}
	return []byte(v.Text)
}

// dependencies returns the replacement for "dependencies" in draft 2020-12.
func (d *documenter) dependencies(m int32) (fields []field) {
	var required, schemas []field
	for c := d.tree.Values[m].First; c != 0; c = d.tree.Values[c].Next {
		v := &d.tree.Values[c]
		if v.Kind == jsontree.Array {
			required = append(required, field{v.Key, []byte(v.Text)})
		} else {
			schemas = append(schemas, field{v.Key, d.inner(c)})
		}
	}
	if required != nil {
		fields = append(fields, field{"dependentRequired", object(required)})
	}
	if schemas != nil {
		fields = append(fields, field{"dependentSchemas", object(schemas)})
	}
	return fields
}

// compact removes the author's white space.
func compact(text []byte) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return text // can't happen, since all parts have been parsed before
	}
	return out.Bytes()
}
