package schemas

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
)

// maxExpected is the number of values that a message lists.
const maxExpected = 20

// typeNames are the names of types in a schema.
var typeNames = map[string]types{
	"null": typeNull, "boolean": typeBoolean, "number": typeNumber, "string": typeString, "array": typeArray,
	"object": typeObject, "integer": typeInteger,
}

// oneType has, for each type, the list with only this type. All nodes share these lists.
var oneType = func() map[string][]string {
	lists := map[string][]string{}
	for name := range typeNames {
		lists[name] = []string{name}
	}
	return lists
}()

func (k *keywordsOf) types() (set types, list []string) {
	i := k.value("type")
	if i == 0 {
		return 0, nil
	}
	if k.c.tree.Values[i].Kind == jsontree.String {
		list = oneType[k.c.str(i)]
	}
	if k.c.tree.Values[i].Kind == jsontree.Array {
		for _, t := range k.children(i) {
			list = append(list, k.c.str(t))
		}
	}
	for _, name := range list {
		set |= typeNames[name]
	}
	return set, list
}

func (k *keywordsOf) constant() *choice {
	if i := k.value("const"); i != 0 {
		return k.choice([]int32{i})
	}
	return nil
}

func (k *keywordsOf) enum() *choice {
	if i := k.value("enum"); i != 0 {
		return k.choice(k.children(i))
	}
	return nil
}

func (k *keywordsOf) choice(list []int32) *choice {
	values := make([]string, 0, len(list))
	var expected []string
	for n, i := range list {
		values = append(values, k.c.tree.Canonical(i))
		if n < maxExpected {
			expected = append(expected, spelled(&k.c.tree.Values[i]))
		}
	}
	if more := len(list) - maxExpected; more > 0 {
		expected = append(expected, fmt.Sprintf("one of %d others", more))
	}
	return newChoice(values, joined(expected))
}

// spelled returns a value of the schema in the form of messages.
func spelled(v *jsontree.Value) string {
	if v.Kind == jsontree.String {
		return "'" + text.Clip(v.Decoded(), maxClip) + "'"
	}
	return text.Clip(v.Text, maxClip)
}

// joined returns "a, b or c".
func joined(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

func (k *keywordsOf) bound(name string) *bound {
	i := k.value(name)
	if i == 0 || k.c.tree.Values[i].Kind != jsontree.Number {
		return nil
	}
	text := k.c.tree.Values[i].Text
	return &bound{jsontree.ParseDecimal(text), text}
}

func (k *keywordsOf) number() *numberRules {
	r := numberRules{
		minimum: k.bound("minimum"), maximum: k.bound("maximum"), above: k.bound("exclusiveMinimum"),
		below: k.bound("exclusiveMaximum"), multipleOf: k.bound("multipleOf"),
	}
	// In draft 4 these keywords are booleans.
	if k.isTrue("exclusiveMinimum") {
		r.minimum, r.above = nil, r.minimum
	}
	if k.isTrue("exclusiveMaximum") {
		r.maximum, r.below = nil, r.maximum
	}
	if r.multipleOf != nil {
		if _, ok := r.multipleOf.value.Uint64(); !ok {
			k.err = at(k.c.pointer(k.c.member(k.at, "multipleOf")), errors.New("multipleOf has more than 19 digits: use a shorter number"))
		}
	}
	if r == (numberRules{}) {
		return nil
	}
	return &r
}

func (k *keywordsOf) text() *textRules {
	r := textRules{min: k.integer("minLength", 0), max: k.integer("maxLength", -1)}
	if i := k.value("pattern"); i != 0 {
		r.pattern = k.pattern(i, k.c.str(i))
	}
	if i := k.value("format"); i != 0 {
		r.format = findFormat(k.c.str(i))
	}
	if i := k.value("contentEncoding"); i != 0 {
		r.base64 = k.c.str(i) == "base64"
	}
	if r == (textRules{max: -1}) {
		return nil
	}
	return &r
}

func (k *keywordsOf) pattern(i int32, text string) *pattern {
	if k.err != nil {
		return nil
	}
	p, err := newPattern(text)
	if err == nil {
		if k.c.instructions -= p.size + parsing(text)/perInstruction; k.c.instructions < 0 {
			err = errors.New("the patterns are too large together: simplify them")
		}
	}
	if err != nil {
		k.err = at(k.c.pointer(i), err)
	}
	return p
}

func (k *keywordsOf) array() *arrayRules {
	r := arrayRules{
		min: k.integer("minItems", 0), max: k.integer("maxItems", -1), unique: k.isTrue("uniqueItems"),
		contains: k.schema("contains"), minContains: k.integer("minContains", 1), maxContains: k.integer("maxContains", -1),
		containsMarks: k.c.draft >= draft2020, unevaluated: k.schema("unevaluatedItems"),
	}
	switch i := k.value("items"); {
	case i == 0:
	case k.c.tree.Values[i].Kind == jsontree.Array:
		r.prefix = k.schemas("items")
		r.rest = k.schema("additionalItems")
	default:
		r.rest = k.compile(i)
	}
	if prefix := k.schemas("prefixItems"); prefix != nil {
		r.prefix = prefix
	}
	if r.min == 0 && r.max < 0 && !r.unique && r.contains == nil && r.prefix == nil && r.rest == nil && r.unevaluated == nil {
		return nil
	}
	return &r
}

func (k *keywordsOf) object() *objectRules {
	r := objectRules{
		min: k.integer("minProperties", 0), max: k.integer("maxProperties", -1),
		additional: k.schema("additionalProperties"), names: k.schema("propertyNames"),
		unevaluated: k.schema("unevaluatedProperties"),
	}
	index := map[string]int32{}
	add := func(name string) int32 {
		i, ok := index[name]
		if !ok {
			i = int32(len(r.members))
			index[name] = i
			r.members = append(r.members, member{name: name})
		}
		return i
	}
	for _, i := range k.children(k.value("properties")) {
		r.members[add(k.c.tree.Values[i].Key)].node = k.compile(i)
	}
	for _, i := range k.children(k.value("required")) {
		if m := &r.members[add(k.c.str(i))]; !m.required {
			m.required = true
			r.required++
		}
	}
	for _, i := range k.children(k.value("patternProperties")) {
		r.patterns = append(r.patterns, patternRule{k.pattern(i, k.c.tree.Values[i].Key), k.compile(i)})
	}
	for _, name := range []string{"dependencies", "dependentRequired", "dependentSchemas"} {
		for _, i := range k.children(k.value(name)) {
			d := dependent{member: add(k.c.tree.Values[i].Key)}
			if k.c.tree.Values[i].Kind == jsontree.Array {
				for _, n := range k.children(i) {
					d.required = append(d.required, add(k.c.str(n)))
				}
			} else {
				d.node = k.compile(i)
			}
			r.dependents = append(r.dependents, d)
		}
	}
	if r.min == 0 && r.max < 0 && len(r.members) == 0 && r.additional == nil && r.names == nil && r.patterns == nil && r.unevaluated == nil {
		return nil
	}
	r.indexNames()
	return &r
}
