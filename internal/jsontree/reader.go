package jsontree

import "strings"

// maxExponentDigits bounds exponents to below 1e9, so that sums of them never overflow.
const maxExponentDigits = 9

// fewMembers is the size up to which an object's names are compared one by one.
const fewMembers = 8

type reader struct {
	text string
	pos  int
	tree *Tree
	// flaw says why reading failed, and pos says where.
	flaw flaw
	in   int32
	name string
}

func (r *reader) fail(pos int, wrong flaw) bool {
	r.pos, r.flaw = pos, wrong
	return false
}

func (r *reader) space() { r.pos = skipSpace(r.text, r.pos) }

// value reads the value at pos, where there is no white space, and appends it and all values below it.
func (r *reader) value(parent int32, key string, index int32, depth int) bool {
	if r.pos == len(r.text) {
		return r.fail(r.pos, expectValue)
	}
	at, start := int32(len(r.tree.Values)), r.pos
	kind := kindOf(r.text[start])
	r.tree.Values = append(r.tree.Values, Value{Key: key, Parent: parent, Index: index, Start: int32(start), Kind: kind})
	var ok, escaped bool
	switch kind {
	case String:
		escaped, ok = r.str()
	case Object:
		ok = r.object(at, depth+1)
	case Array:
		ok = r.array(at, depth+1)
	case Number:
		ok = r.number()
	default:
		ok = r.word()
	}
	v := &r.tree.Values[at]
	v.Escaped, v.Text = escaped, r.text[start:r.pos]
	return ok
}

func (r *reader) array(at int32, depth int) bool {
	if depth > MaxDepth {
		r.in = at
		return r.fail(r.pos, tooDeep)
	}
	r.pos++
	r.space()
	if r.pos < len(r.text) && r.text[r.pos] == ']' {
		r.pos++
		return true
	}
	last := int32(0)
	for n := int32(0); ; n++ {
		item := int32(len(r.tree.Values))
		if !r.value(at, "", n, depth) {
			return false
		}
		last = r.link(at, last, item)
		r.space()
		if r.pos == len(r.text) || r.text[r.pos] != ',' && r.text[r.pos] != ']' {
			return r.fail(r.pos, expectComma)
		}
		r.pos++
		if r.text[r.pos-1] == ']' {
			return true
		}
		r.space()
	}
}

func (r *reader) object(at int32, depth int) bool {
	if depth > MaxDepth {
		r.in = at
		return r.fail(r.pos, tooDeep)
	}
	r.pos++
	r.space()
	if r.pos < len(r.text) && r.text[r.pos] == '}' {
		r.pos++
		return true
	}
	var seen map[string]struct{}
	last := int32(0)
	for n := int32(0); ; n++ {
		start := r.pos
		if start == len(r.text) || r.text[start] != '"' {
			return r.fail(start, expectName)
		}
		escaped, ok := r.str()
		if !ok {
			return false
		}
		key := r.text[start+1 : r.pos-1]
		if escaped {
			key = unescape(key)
		}
		if n == fewMembers {
			seen = make(map[string]struct{}, 4*fewMembers)
			for i := r.tree.Values[at].First; i != 0; i = r.tree.Values[i].Next {
				seen[r.tree.Values[i].Key] = struct{}{}
			}
		}
		if r.duplicate(seen, at, key) {
			r.in, r.name = at, key
			return r.fail(start, duplicate)
		}
		r.space()
		if r.pos == len(r.text) || r.text[r.pos] != ':' {
			return r.fail(r.pos, expectColon)
		}
		r.pos++
		r.space()
		member := int32(len(r.tree.Values))
		if !r.value(at, key, n, depth) {
			return false
		}
		last = r.link(at, last, member)
		r.space()
		if r.pos == len(r.text) || r.text[r.pos] != ',' && r.text[r.pos] != '}' {
			return r.fail(r.pos, expectComma)
		}
		r.pos++
		if r.text[r.pos-1] == '}' {
			return true
		}
		r.space()
	}
}

// link makes child the next value after last below parent.
func (r *reader) link(parent, last, child int32) int32 {
	if last == 0 {
		r.tree.Values[parent].First = child
	} else {
		r.tree.Values[last].Next = child
	}
	r.tree.Values[parent].Count++
	return child
}

// duplicate reports whether the object with index at already has a member of that name. If it has more than fewMembers, seen has the names.
func (r *reader) duplicate(seen map[string]struct{}, at int32, key string) bool {
	if seen == nil {
		return r.tree.Member(at, key) != 0
	}
	n := len(seen)
	seen[key] = struct{}{}
	return len(seen) == n
}

// str reads the string at pos, including the quotes.
func (r *reader) str() (escaped, ok bool) {
	end, escaped, wrong := stringEnd(r.text, r.pos+1, paired)
	if wrong != none {
		return escaped, r.fail(end, wrong)
	}
	r.pos = end
	return escaped, true
}

// word reads the word at pos.
func (r *reader) word() bool {
	end, wrong := wordEnd(r.text, r.pos)
	if wrong != none {
		return r.fail(end, wrong)
	}
	r.pos = end
	return true
}

// number reads the number at pos.
func (r *reader) number() bool {
	start := r.pos
	end, wrong := numberEnd(r.text, start)
	if wrong != none {
		return r.fail(end, wrong)
	}
	if end-start > maxExponentDigits && hasHugeExponent(r.text[start:end]) {
		return r.fail(start, hugeExponent)
	}
	r.pos = end
	return true
}

// hasHugeExponent reports whether a number's exponent has more than maxExponentDigits without leading zeros.
func hasHugeExponent(number string) bool {
	i := strings.IndexAny(number, "eE")
	return i >= 0 && len(strings.TrimLeft(number[i+1:], "+-0")) > maxExponentDigits
}
