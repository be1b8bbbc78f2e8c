package schemas

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// maxAlike is the length in bytes up to which equal schema texts are compiled only once.
const maxAlike = 2 << 10

// maxExpansion bounds the schemas that apply to one value. A schema is counted once for every way that leads to it.
const maxExpansion = 10_000

// types is a set of JSON's types.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeNumber
	typeString
	typeArray
	typeObject
	typeInteger
)

// kindTypes holds the type of each kind of value.
var kindTypes = [...]types{
	jsontree.Null: typeNull, jsontree.Bool: typeBoolean, jsontree.Number: typeNumber,
	jsontree.String: typeString, jsontree.Array: typeArray, jsontree.Object: typeObject,
}

// A node is one compiled schema. A field for a missing keyword is nil, 0 or empty.
type node struct {
	place int32 // the schema's place in the source

	never    bool     // the schema is false
	types    types    // the allowed types; 0 allows all
	typeList []string // as written
	*combination
	constant *choice
	enum     *choice
	number   *numberRules
	text     *textRules
	array    *arrayRules
	object   *objectRules

	hasDefault bool
	byDefault  *jsontree.Tree // the default, with the defaults of its own schema filled in
	fills      bool           // the value, or one inside it, may get a default
	expansion  int            // how many schemas apply to a value together with this one; -1 during the count
}

// A combination holds the other schemas that apply to the same value. Most nodes have none, and share the empty one.
type combination struct {
	refs            []*node // $ref and the like
	allOf           []*node
	anyOf           []*node
	oneOf           []*node
	not             *node
	condition       *node // "if"
	then, otherwise *node
}

// noCombination is for nodes without a combination. It never changes.
var noCombination = &combination{}

func (c *combination) isEmpty() bool {
	return c.refs == nil && c.allOf == nil && c.anyOf == nil && c.oneOf == nil && c.not == nil && c.condition == nil
}

// A choice is a set of allowed values. A map of them would take ten times as much memory as their text.
type choice struct {
	values   string  // the canonical texts of the values, sorted and joined
	ends     []int32 // the end of each value in values
	expected string  // what the message says was expected
}

type numberRules struct {
	minimum, maximum, above, below, multipleOf *bound
}

// A bound is a numeric limit in the schema.
type bound struct {
	value jsontree.Decimal
	text  string
}

type arrayRules struct {
	min, max                 int // max is -1 if there is none
	unique                   bool
	prefix                   []*node
	rest                     *node // the schema of the items after prefix
	contains                 *node
	minContains, maxContains int
	containsMarks            bool // items that contains accepts count as evaluated
	unevaluated              *node
}

type objectRules struct {
	min, max    int
	byName      []int32  // indexes of members, sorted by name; nil if there are few members
	members     []member // in the order in which the schema names them
	required    int      // how many members are required
	patterns    []patternRule
	additional  *node
	names       *node
	dependents  []dependent
	unevaluated *node
}

// A member is a name that the schema mentions.
type member struct {
	name     string
	node     *node // of properties
	required bool
}

type patternRule struct {
	pattern *pattern
	node    *node
}

// A dependent applies if a member is present.
type dependent struct {
	member   int32
	required []int32
	node     *node
}

type compiler struct {
	*source
	nodes        map[int32]*node
	alike        map[string]*node // compiled schemas by text, without references and names
	order        []*node
	budget       *Budget
	instructions int // how many instructions patterns may still have
}

// compile compiles all schemas of a source. It returns the root, and how many bytes all nodes together take.
func compile(s *source, b *Budget) (root *node, size int64, err error) {
	most := min(maxInstructions, b.instructions)
	c := &compiler{source: s, nodes: make(map[int32]*node, len(s.order)), alike: map[string]*node{}, budget: b, instructions: most}
	defer func() { b.instructions -= most - c.instructions }()
	for i := 0; i < len(s.order); i++ { // references may add schemas to s.order
		if _, err := c.node(s.order[i]); err != nil {
			return nil, 0, err
		}
	}
	for _, n := range c.order {
		if err := c.expand(n); err != nil {
			return nil, 0, err
		}
	}
	if err := c.completeDefaults(); err != nil {
		return nil, 0, err
	}
	for _, n := range c.order {
		size += n.size()
	}
	return c.nodes[0], size, nil
}

// expand counts the schemas that apply to a value together with n.
func (c *compiler) expand(n *node) error {
	switch {
	case n.expansion > 0:
		return nil
	case n.expansion < 0:
		return at(c.pointer(n.place), errors.New("the schema refers to itself for the same value, which never ends: let the reference apply to a member or an item"))
	}
	n.expansion = -1
	total := 1
	for _, child := range n.inPlace() {
		if err := c.expand(child); err != nil {
			return err
		}
		if total += child.expansion; total > maxExpansion {
			return at(c.pointer(n.place), fmt.Errorf("the schema expands to more than %d schemas for one value: combine fewer", maxExpansion))
		}
	}
	n.expansion = total
	return nil
}

// inPlace returns the schemas that may apply to the same value as n.
func (n *node) inPlace() []*node {
	var all []*node
	for _, list := range [][]*node{n.refs, n.allOf, n.anyOf, n.oneOf, {n.not, n.condition, n.then, n.otherwise}} {
		for _, child := range list {
			if child != nil {
				all = append(all, child)
			}
		}
	}
	if n.object != nil {
		for _, d := range n.object.dependents {
			if d.node != nil {
				all = append(all, d.node)
			}
		}
	}
	return all
}

// objectsOnly reports whether n obviously allows only objects.
func (n *node) objectsOnly() bool {
	if n.never || n.types == typeObject {
		return n.types == typeObject
	}
	for _, list := range [][]*node{n.refs, n.allOf} {
		for _, child := range list {
			if child.objectsOnly() {
				return true
			}
		}
	}
	for _, list := range [][]*node{n.anyOf, n.oneOf} {
		all := len(list) > 0
		for _, child := range list {
			all = all && child.objectsOnly()
		}
		if all {
			return true
		}
	}
	return false
}

// node compiles the schema at i. The metaschema has been checked.
func (c *compiler) node(i int32) (*node, error) {
	if n, ok := c.nodes[i]; ok {
		return n, nil
	}
	v := &c.tree.Values[i]
	isPlain := len(v.Text) <= maxAlike && !strings.ContainsAny(v.Text, `$\`)
	if isPlain {
		if n, ok := c.alike[v.Text]; ok {
			c.nodes[i] = n
			return n, nil
		}
	}
	n := &node{place: i, combination: noCombination}
	c.nodes[i] = n
	c.order = append(c.order, n)
	if isPlain {
		c.alike[v.Text] = n
	}
	if v.Kind != jsontree.Object {
		n.never = v.Text == "false"
		return n, nil
	}
	k := keywordsOf{c: c, at: i}
	combined := combination{refs: k.references()}
	if c.draft <= draft7 && len(combined.refs) > 0 {
		n.combination = &combined
		return n, k.err // other keywords next to $ref are ignored
	}
	n.types, n.typeList = k.types()
	n.constant, n.enum = k.constant(), k.enum()
	n.number, n.text = k.number(), k.text()
	n.array, n.object = k.array(), k.object()
	combined.allOf, combined.anyOf, combined.oneOf = k.schemas("allOf"), k.schemas("anyOf"), k.schemas("oneOf")
	combined.not, combined.condition = k.schema("not"), k.schema("if")
	if combined.condition != nil {
		combined.then, combined.otherwise = k.schema("then"), k.schema("else")
	}
	if !combined.isEmpty() {
		n.combination = &combined
	}
	return n, k.err
}

// keywordsOf reads the keywords of one schema. It keeps the first error; values read after that have no meaning.
type keywordsOf struct {
	c   *compiler
	at  int32
	err error
}

// value returns the value of a keyword, or 0 if it is missing or the draft doesn't know it.
func (k *keywordsOf) value(name string) int32 {
	if k.err != nil || !k.c.draft.known(name) {
		return 0
	}
	return k.c.member(k.at, name)
}

func (k *keywordsOf) compile(i int32) *node {
	if k.err != nil {
		return nil
	}
	n, err := k.c.node(i)
	k.err = err
	return n
}

func (k *keywordsOf) schema(name string) *node {
	if i := k.value(name); i != 0 {
		return k.compile(i)
	}
	return nil
}

func (k *keywordsOf) schemas(name string) []*node {
	i := k.value(name)
	if i == 0 || k.c.tree.Values[i].Kind != jsontree.Array {
		return nil
	}
	list := make([]*node, 0, k.c.tree.Values[i].Count)
	for _, item := range k.children(i) {
		list = append(list, k.compile(item))
	}
	return list
}

// children returns the items or members of the value at i, or none if i is 0.
func (k *keywordsOf) children(i int32) []int32 {
	if i == 0 {
		return nil
	}
	list := make([]int32, 0, k.c.tree.Values[i].Count)
	for m := k.c.tree.Values[i].First; m != 0; m = k.c.tree.Values[m].Next {
		list = append(list, m)
	}
	return list
}

// integer returns the value of a keyword that is a count.
func (k *keywordsOf) integer(name string, missing int) int {
	i := k.value(name)
	if i == 0 {
		return missing
	}
	d := jsontree.ParseDecimal(k.c.tree.Values[i].Text)
	return d.Int(math.MaxInt32) // more than any body can have
}

func (k *keywordsOf) isTrue(name string) bool {
	i := k.value(name)
	return i != 0 && k.c.tree.Values[i].Text == "true"
}

func (k *keywordsOf) references() []*node {
	var list []*node
	for _, name := range []string{"$ref", "$recursiveRef", "$dynamicRef"} {
		m := k.value(name)
		if m == 0 {
			continue
		}
		to, err := k.c.target(k.at, m)
		if err == nil && name != "$ref" {
			err = k.c.checkDynamic(m, to)
		}
		if err != nil {
			k.err = err
			return nil
		}
		list = append(list, k.compile(to))
	}
	return list
}

// checkDynamic refuses a dynamic reference that could lead to any schema other than the one with the index to: its target would depend on the path
// of a check, and no document could express that.
func (s *source) checkDynamic(m, to int32) error {
	v := &s.tree.Values[m]
	if v.Key == "$recursiveRef" {
		if s.resources > 1 && s.isTrue(to, "$recursiveAnchor") {
			return at(s.pointer(m), errors.New(`its target depends on how it is reached, because the file has several "$id": use "$ref"`))
		}
		return nil
	}
	if name := s.str(s.member(to, "$dynamicAnchor")); name != "" && s.dynamic[name] > 1 {
		return at(s.pointer(m), fmt.Errorf(`%d schemas have the "$dynamicAnchor" %s, and which one is meant depends on how it is reached: use "$ref"`, s.dynamic[name], quoted(name)))
	}
	return nil
}

// isTrue reports whether the schema at i has a keyword with the value true.
func (s *source) isTrue(i int32, name string) bool {
	m := s.tree.Member(i, name)
	return m != 0 && s.tree.Values[m].Text == "true"
}
