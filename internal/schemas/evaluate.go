package schemas

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// These bound the work of one check, in units of about 20 ns: applying a schema to a value, or looking at a member or item, is one unit. Plain
// schemas take less than one unit for each byte. Violations are found in a second check with a lower bound, since each unit may build messages.
const (
	workBase          = 4 << 20
	workPerByte       = 16
	reportWorkPerByte = 4
	reportWorkPerFind = 16

	// littleBase and littleFilled are workBase and maxFilled for ValidateLittle, and littleMemory is how many bytes it may take.
	littleBase   = 16 << 10
	littleFilled = 16 << 10
	littleMemory = 4 << 20
)

// maxFilled is how many bytes longer a body may become when defaults are filled in and numbers are written out.
const maxFilled = 1 << 20

// A run is the check of one body.
type run struct {
	tree    jsontree.Tree
	base    int // the work for an empty body
	work    int // remaining work; below 0 nothing is accepted, and the result of check has no meaning
	edits   []edit
	written map[int32]struct{} // the integers that already have an edit
	room    int                // remaining bytes for what is filled in and written out
	memory  int64              // remaining bytes; below 0 the check stops
	// completed is used while the defaults themselves are being completed. It returns a schema's default, and uses up work.
	completed func(n *node, work *int) (*jsontree.Tree, error)
	err       error // the first error of completed
}

// check reports whether the value with the index at satisfies n. Without a report it stops at the first violation; with one it finds all. It adds
// what n evaluates to seen, if that is not nil.
func (r *run) check(n *node, at int32, rep *report, seen *marks) bool {
	if r.work--; r.work < 0 {
		return false
	}
	if n.never {
		return r.extra(rep, at)
	}
	if n.types != 0 && !r.hasType(n.types, at) {
		return rep != nil && r.wrongType(rep, n, at)
	}
	if (n.object == nil || n.object.unevaluated == nil) && (n.array == nil || n.array.unevaluated == nil) {
		return r.apply(n, at, rep, seen)
	}
	own := newMarks(r)
	ok := r.apply(n, at, rep, own)
	if ok || rep != nil {
		ok = r.unevaluated(n, at, rep, own) && ok
		seen.merge(own)
	}
	own.drop()
	return ok
}

// apply is check for a value of the right type, without n's unevaluated keywords.
func (r *run) apply(n *node, at int32, rep *report, seen *marks) bool {
	ok := true
	if n.constant != nil && !r.chosen(n.constant, at) {
		ok = rep != nil && r.add(rep, notChosen(at, "literal_error", n.constant))
	}
	if n.enum != nil && (ok || rep != nil) && !r.chosen(n.enum, at) {
		ok = rep != nil && r.add(rep, notChosen(at, "enum", n.enum))
	}
	if !ok && rep == nil {
		return false
	}
	switch kind := r.tree.Values[at].Kind; {
	case kind == jsontree.Object && n.object != nil:
		ok = r.object(n.object, at, rep, seen) && ok
	case kind == jsontree.Array && n.array != nil:
		ok = r.array(n.array, at, rep, seen) && ok
	case kind == jsontree.String && n.text != nil:
		ok = r.text(n.text, at, rep) && ok
	case kind == jsontree.Number && n.number != nil:
		ok = r.number(n.number, at, rep) && ok
	}
	if !ok && rep == nil {
		return false
	}
	if n.expansion > 1 {
		ok = r.combined(n, at, rep, seen) && ok
	}
	return ok
}

// hasType reports whether the value with the index at has one of the types.
func (r *run) hasType(set types, at int32) bool {
	v := &r.tree.Values[at]
	if set&kindTypes[v.Kind] != 0 {
		return true
	}
	if set&typeInteger == 0 || v.Kind != jsontree.Number {
		return false
	}
	if len(v.Text) < 20 && v.Text != "-0" && !strings.ContainsAny(v.Text, ".eE") {
		return true
	}
	r.work -= len(v.Text) / 16
	d := jsontree.ParseDecimal(v.Text)
	if !d.IsInteger() {
		return false
	}
	r.writeOut(at, &d)
	return true
}

// combined checks the schemas that apply to the same value as n.
func (r *run) combined(n *node, at int32, rep *report, seen *marks) bool {
	ok := true
	for _, list := range [...][]*node{n.refs, n.allOf} {
		for _, child := range list {
			if !r.check(child, at, rep, seen) {
				if ok = false; rep == nil {
					return false
				}
			}
		}
	}
	if n.object != nil && len(n.object.dependents) > 0 && r.tree.Values[at].Kind == jsontree.Object {
		if ok = r.dependentSchemas(n.object, at, rep, seen) && ok; !ok && rep == nil {
			return false
		}
	}
	if n.not != nil && r.check(n.not, at, nil, nil) {
		if ok = r.forbidden(rep, at); rep == nil {
			return false
		}
	}
	if len(n.anyOf) > 0 {
		if ok = r.anyOf(n.anyOf, at, rep, seen) && ok; !ok && rep == nil {
			return false
		}
	}
	if len(n.oneOf) > 0 {
		if ok = r.oneOf(n.oneOf, at, rep, seen) && ok; !ok && rep == nil {
			return false
		}
	}
	if n.condition != nil {
		next := n.otherwise
		branch := seen.branch()
		if r.check(n.condition, at, nil, branch) {
			seen.merge(branch)
			next = n.then
		}
		branch.drop()
		if next != nil {
			ok = r.check(next, at, rep, seen) && ok
		}
	}
	return ok
}

func (r *run) anyOf(list []*node, at int32, rep *report, seen *marks) bool {
	matched := false
	for _, child := range list {
		branch := seen.branch()
		if r.check(child, at, nil, branch) {
			if matched = true; seen == nil {
				break
			}
			seen.merge(branch)
		}
		branch.drop()
	}
	if !matched {
		r.noBranch(rep, list, at)
	}
	return matched
}

func (r *run) oneOf(list []*node, at int32, rep *report, seen *marks) bool {
	first := -1
	for i, child := range list {
		branch := seen.branch()
		fits := r.check(child, at, nil, branch)
		if fits && first < 0 {
			seen.merge(branch)
		}
		branch.drop()
		switch {
		case fits && first >= 0:
			return r.twoBranches(rep, at, first, i)
		case fits:
			first = i
		}
	}
	if first < 0 {
		r.noBranch(rep, list, at)
	}
	return first >= 0
}

func (r *run) number(rules *numberRules, at int32, rep *report) bool {
	text := r.tree.Values[at].Text
	r.work -= len(text) / 16
	d := jsontree.ParseDecimal(text)
	ok := true
	if b := rules.minimum; b != nil && d.Compare(&b.value) < 0 {
		ok = r.outside(rep, at, "greater_than_equal", "greater than or equal to", "ge", b)
	}
	if b := rules.above; b != nil && d.Compare(&b.value) <= 0 {
		ok = r.outside(rep, at, "greater_than", "greater than", "gt", b)
	}
	if b := rules.maximum; b != nil && d.Compare(&b.value) > 0 {
		ok = r.outside(rep, at, "less_than_equal", "less than or equal to", "le", b)
	}
	if b := rules.below; b != nil && d.Compare(&b.value) >= 0 {
		ok = r.outside(rep, at, "less_than", "less than", "lt", b)
	}
	if b := rules.multipleOf; b != nil {
		if r.work -= len(text); r.work < 0 { // each digit takes a division
			return false
		}
		if !d.IsMultipleOf(&b.value) {
			ok = r.outside(rep, at, "multiple_of", "a multiple of", "multiple_of", b)
		}
	}
	return ok
}

func (r *run) array(rules *arrayRules, at int32, rep *report, seen *marks) bool {
	count := int(r.tree.Values[at].Count)
	r.work -= count
	ok := true
	if count < rules.min {
		ok = r.tooFew(rep, at, "List", rules.min, count)
	}
	if rules.max >= 0 && count > rules.max {
		ok = r.tooMany(rep, at, "List", rules.max, count)
	}
	if !ok && rep == nil {
		return false
	}
	if rules.unique && count > 1 {
		if ok = r.unique(at, rep) && ok; !ok && rep == nil {
			return false
		}
	}
	contained, i := 0, 0
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		item := rules.rest
		if i < len(rules.prefix) {
			item = rules.prefix[i]
		}
		i++
		if item != nil {
			seen.mark(c)
			if !r.check(item, c, rep, nil) {
				if ok = false; rep == nil {
					return false
				}
			}
		}
		if rules.contains != nil && r.check(rules.contains, c, nil, nil) {
			contained++
			if rules.containsMarks {
				seen.mark(c)
			}
		}
	}
	if rules.contains != nil && (contained < rules.minContains || rules.maxContains >= 0 && contained > rules.maxContains) {
		ok = r.wrongContents(rep, at, rules, contained)
	}
	return ok
}

func (r *run) object(rules *objectRules, at int32, rep *report, seen *marks) bool {
	count := int(r.tree.Values[at].Count)
	r.work -= count
	ok := true
	if count < rules.min {
		ok = r.tooFew(rep, at, "Dictionary", rules.min, count)
	}
	if rules.max >= 0 && count > rules.max {
		ok = r.tooMany(rep, at, "Dictionary", rules.max, count)
	}
	if !ok && rep == nil {
		return false
	}
	if rep != nil && rules.required > 0 {
		ok = r.missing(rules, at, rep) && ok
	}
	required, next := 0, 0
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		key := r.tree.Values[c].Key
		known := false
		if i := rules.find(key, next); i >= 0 {
			next = i + 1
			m := &rules.members[i]
			if m.required {
				required++
			}
			if m.node != nil {
				known = true
				if !r.check(m.node, c, rep, nil) {
					if ok = false; rep == nil {
						return false
					}
				}
			}
		}
		if !known || len(rules.patterns) > 0 || rules.names != nil || seen != nil {
			if !r.otherMember(rules, c, known, rep, seen) {
				if ok = false; rep == nil {
					return false
				}
			}
		}
	}
	if required < rules.required {
		return false // if there is a report, missing has already listed the names
	}
	if len(rules.dependents) > 0 {
		ok = r.dependentNames(rules, at, rep) && ok
	}
	return ok
}

// otherMember checks the member at c against the keywords other than "properties". known is whether "properties" names the member.
func (r *run) otherMember(rules *objectRules, c int32, known bool, rep *report, seen *marks) bool {
	key := r.tree.Values[c].Key
	ok := true
	for i := range rules.patterns {
		p := &rules.patterns[i]
		if r.work -= p.pattern.work(len(key)); r.work < 0 {
			return false
		}
		if p.pattern.match(key) {
			known = true
			ok = r.check(p.node, c, rep, nil) && ok
		}
	}
	if !known && rules.additional != nil {
		known = true
		ok = r.otherwise(rules.additional, c, rep, rules) && ok
	}
	if known {
		seen.mark(c)
	}
	if rules.names != nil {
		if r.work -= len(key) / 8; r.work < 0 { // copying the name takes work
			return false
		}
		size := int64(perAdded + 2*len(key))
		if !r.take(size) {
			return false
		}
		before := rep.size()
		ok = r.check(rules.names, r.tree.PushName(c), rep, nil) && ok
		if rep.size() == before { // if the report has grown, it refers to the name
			r.tree.Pop()
			r.memory += size
		}
	}
	return ok
}

// present reports, for each name in the schema, whether the object has a member with it.
func (r *run) present(rules *objectRules, at int32) []bool {
	list := make([]bool, len(rules.members))
	r.work -= len(list)/8 + int(r.tree.Values[at].Count)
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		if i := rules.find(r.tree.Values[c].Key, int(r.tree.Values[c].Index)); i >= 0 {
			list[i] = true
		}
	}
	return list
}

func (r *run) missing(rules *objectRules, at int32, rep *report) bool {
	ok := true
	present := r.present(rules, at)
	for i := range rules.members {
		if m := &rules.members[i]; m.required && !present[i] {
			ok = r.absent(rep, at, m.name, "")
		}
	}
	return ok
}

func (r *run) dependentNames(rules *objectRules, at int32, rep *report) bool {
	ok := true
	present := r.present(rules, at)
	for _, d := range rules.dependents {
		if !present[d.member] {
			continue
		}
		r.work -= len(d.required)
		for _, i := range d.required {
			if !present[i] {
				if ok = r.absent(rep, at, rules.members[i].name, rules.members[d.member].name); rep == nil {
					return false
				}
			}
		}
	}
	return ok
}

func (r *run) dependentSchemas(rules *objectRules, at int32, rep *report, seen *marks) bool {
	ok := true
	present := r.present(rules, at)
	for _, d := range rules.dependents {
		if d.node != nil && present[d.member] && !r.check(d.node, at, rep, seen) {
			if ok = false; rep == nil {
				return false
			}
		}
	}
	return ok
}

// unevaluated checks the members or items that are not in seen.
func (r *run) unevaluated(n *node, at int32, rep *report, seen *marks) bool {
	var rest *node
	var known []*objectRules
	switch kind := r.tree.Values[at].Kind; {
	case kind == jsontree.Object && n.object != nil:
		if rest = n.object.unevaluated; rep != nil && rest != nil {
			known = r.known(n)
		}
	case kind == jsontree.Array && n.array != nil:
		rest = n.array.unevaluated
	}
	if rest == nil {
		return true
	}
	r.work -= int(r.tree.Values[at].Count)
	ok := true
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		if !seen.has(c) && !r.otherwise(rest, c, rep, known...) {
			if ok = false; rep == nil {
				return false
			}
		}
	}
	seen.all = true
	return ok
}

// take takes memory. If there is too little left, it ends the check. Memory that is given back after that does not count.
func (r *run) take(bytes int64) bool {
	if bytes > r.memory {
		r.memory, r.work = math.MinInt64/2, -1
		return false
	}
	r.memory -= bytes
	return true
}

// mayRead takes the memory for reading a text. If the text is small, mayRead takes the most that such a text can need, without looking at it.
func (r *run) mayRead(text string) bool {
	if most := int64(perByte+perValue+perMember) * int64(len(text)+1); most < littleMemory/2 && r.memory >= littleMemory {
		return r.take(most)
	}
	return r.take(needed(text))
}

// text checks a string.
func (r *run) text(rules *textRules, at int32, rep *report) bool {
	s := r.tree.Values[at].Decoded()
	r.work -= len(s) / 16
	ok := true
	if rules.min > 0 || rules.max >= 0 {
		n := utf8.RuneCountInString(s)
		if n < rules.min || rules.max >= 0 && n > rules.max {
			ok = r.wrongLength(rep, at, rules)
		}
	}
	if rules.pattern != nil && (ok || rep != nil) {
		if r.work -= rules.pattern.work(len(s)); r.work < 0 {
			return false
		}
		if !rules.pattern.match(s) {
			ok = r.mismatch(rep, at, rules.pattern)
		}
	}
	if f := rules.format; f != nil && (ok || rep != nil) {
		if r.work -= f.cost(s); r.work < 0 {
			return false
		}
		if !f.match(s) {
			ok = r.misformed(rep, at, f.name)
		}
	}
	if rules.base64 && (ok || rep != nil) && !isBase64(s) {
		ok = r.misformed(rep, at, "base64")
	}
	return ok
}

// chosen reports whether the value with the index at is in a choice.
func (r *run) chosen(c *choice, at int32) bool {
	if r.work -= r.comparing(at); r.work < 0 {
		return false
	}
	return c.has(r.tree.Canonical(at))
}

// unique reports whether all items differ.
func (r *run) unique(at int32, rep *report) bool {
	if r.work -= r.comparing(at) + int(r.tree.Values[at].Count); r.work < 0 {
		return false
	}
	size := perCompared*int64(r.tree.Values[at].Count) + 2*int64(len(r.tree.Values[at].Text))
	if !r.take(size) {
		return false
	}
	defer func() { r.memory += size }()
	first := make(map[string]int32, r.tree.Values[at].Count)
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		key := r.tree.Canonical(c)
		if i, ok := first[key]; ok {
			return r.repeated(rep, at, i, r.tree.Values[c].Index)
		}
		first[key] = r.tree.Values[c].Index
	}
	return true
}

// comparing returns the cost, in units of run.work, of the canonical text of the value with the index at. Making that text sorts the members of
// objects.
func (r *run) comparing(at int32) int {
	text := r.tree.Values[at].Text
	if strings.IndexByte(text, '{') < 0 {
		return len(text) / 4
	}
	return 2 * len(text)
}
