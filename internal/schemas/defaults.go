package schemas

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// maxDefaults bounds all defaults of a schema together, in bytes, with their own defaults filled in.
const maxDefaults = 1 << 20

// maxDefaultWork bounds the checks of all defaults of a schema together, in units of run.work: about 0.3 s.
const maxDefaultWork = 16 << 20

// fill adds the missing members that have a default in n to the value with the index at, and to all values inside it. It uses only schemas that
// apply in any case: alternatives and conditions fill nothing in. If there are several defaults for a member, the first one wins. A default itself
// is not filled in any further.
func (r *run) fill(n *node, at int32) {
	if r.work--; r.work < 0 || r.err != nil || r.tree.Values[at].Start < 0 {
		return
	}
	switch kind := r.tree.Values[at].Kind; {
	case kind == jsontree.Object && n.object != nil:
		r.fillObject(n.object, at)
	case kind == jsontree.Array && n.array != nil:
		i := 0
		for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
			item := n.array.rest
			if i < len(n.array.prefix) {
				item = n.array.prefix[i]
			}
			i++
			if item != nil && item.fills {
				r.fill(item, c)
			}
		}
		r.work -= i
	}
	for _, list := range [...][]*node{n.refs, n.allOf} {
		for _, child := range list {
			if child.fills {
				r.fill(child, at)
			}
		}
	}
}

func (r *run) fillObject(rules *objectRules, at int32) {
	present := make([]bool, len(rules.members))
	r.work -= len(present)/8 + int(r.tree.Values[at].Count)
	last := int32(0)
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		last = c
		key := r.tree.Values[c].Key
		known := false
		if i := rules.find(key, int(r.tree.Values[c].Index)); i >= 0 {
			present[i] = true
			if child := rules.members[i].node; child != nil {
				if known = true; child.fills {
					r.fill(child, c)
				}
			}
		}
		for _, p := range rules.patterns {
			if r.work -= p.pattern.work(len(key)); r.work < 0 {
				return
			}
			if p.pattern.match(key) {
				if known = true; p.node.fills {
					r.fill(p.node, c)
				}
			}
		}
		if !known && rules.additional != nil && rules.additional.fills {
			r.fill(rules.additional, c)
		}
	}
	for i := range rules.members {
		m := &rules.members[i]
		if present[i] || m.node == nil || !m.node.hasDefault {
			continue
		}
		value := m.node.byDefault
		if r.completed != nil {
			if value, r.err = r.completed(m.node, &r.work); r.err != nil {
				return
			}
		}
		last = r.insert(at, last, m.name, value)
	}
}

// insert adds a member after the last one, and returns the new last one.
func (r *run) insert(at, last int32, name string, value *jsontree.Tree) int32 {
	v := &r.tree.Values[at]
	r.work -= len(value.Values)
	if r.room -= len(name) + len(value.Values[0].Text); r.room < 0 {
		r.work = -1
		return last
	}
	if !r.take(perEdit + perAdded*int64(len(value.Values))) {
		return last
	}
	end := int(v.Start) + len(v.Text) - 1
	r.edits = append(r.edits, edit{end, end, value.Values[0].Text, name, v.Count == 0})
	return r.tree.Append(at, last, name, value, 0)
}

// completeDefaults finds the defaults of all schemas, fills each with the defaults of its own schema, and checks it.
func (c *compiler) completeDefaults() error {
	given := make(map[*node]int32, len(c.order))
	for _, n := range c.order {
		n.hasDefault = c.givenDefault(n, given) != 0
	}
	for changed := true; changed; {
		changed = false
		for _, n := range slices.Backward(c.order) {
			if !n.fills && n.mayFill() {
				n.fills, changed = true, true
			}
		}
	}
	left, work := min(maxDefaults, c.budget.defaults), min(maxDefaultWork, c.budget.work)
	defer func(bytes, units int) {
		c.budget.defaults -= bytes - left
		c.budget.work -= units - work
	}(left, work)
	working := map[*node]bool{}
	var complete func(n *node, work *int) (*jsontree.Tree, error)
	complete = func(n *node, work *int) (*jsontree.Tree, error) {
		if n.byDefault != nil {
			return n.byDefault, nil
		}
		place := c.pointer(given[n])
		if working[n] {
			return nil, at(place, errors.New("filling in this default needs the default itself, which never ends: write out its missing members"))
		}
		working[n] = true
		text := c.tree.Values[given[n]].Text
		r := run{room: maxFilled, memory: math.MaxInt64, completed: complete}
		if err := r.tree.Read(text); err != nil {
			return nil, at(place, err)
		}
		r.work = *work
		defer func() { *work = r.work }()
		if r.fill(n, 0); r.err != nil {
			return nil, r.err
		}
		fits := r.check(n, 0, nil, nil)
		if r.work < 0 {
			return nil, at(place, errors.New("checking the defaults of the schema takes too much work: write shorter ones, or fewer alternatives for them"))
		}
		if !fits {
			return nil, at(place, fmt.Errorf("the default doesn't fit its own schema: %s: correct one of the two", r.violations(n)[0].Msg))
		}
		done := &jsontree.Tree{}
		text = string(r.splice([]byte(text)))
		if left -= len(text); left < 0 {
			return nil, at(place, errors.New("the defaults, filled in, are too long together: write shorter ones"))
		}
		if err := done.Read(text); err != nil {
			return nil, at(place, err)
		}
		done.Values = slices.Clone(done.Values) // without the spare capacity that Read has left
		n.byDefault = done
		return done, nil
	}
	for _, n := range c.order {
		if n.hasDefault {
			if _, err := complete(n, &work); err != nil {
				return err
			}
		}
	}
	return nil
}

// givenDefault returns the default of n in the source, or that of a schema that n combines, or 0.
func (c *compiler) givenDefault(n *node, given map[*node]int32) int32 {
	if i, ok := given[n]; ok {
		return i
	}
	i := c.member(n.place, "default")
	for _, list := range [][]*node{n.refs, n.allOf} {
		for _, child := range list {
			if i == 0 {
				i = c.givenDefault(child, given)
			}
		}
	}
	given[n] = i
	return i
}

// mayFill reports whether fill may have something to do for n, judging by the nodes for which fills has been computed so far.
func (n *node) mayFill() bool {
	fills := func(list ...*node) bool {
		return slices.ContainsFunc(list, func(child *node) bool { return child != nil && child.fills })
	}
	if fills(n.refs...) || fills(n.allOf...) {
		return true
	}
	if a := n.array; a != nil && (fills(a.prefix...) || fills(a.rest)) {
		return true
	}
	if n.object == nil || fills(n.object.additional) {
		return n.object != nil
	}
	for _, m := range n.object.members {
		if fills(m.node) || m.node != nil && m.node.hasDefault {
			return true
		}
	}
	return slices.ContainsFunc(n.object.patterns, func(p patternRule) bool { return p.node.fills })
}
