package jsontree

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxExponentDigits bounds exponents to below 1e9, so that sums of them never overflow.
const maxExponentDigits = 9

// fewMembers is the size up to which an object's names are compared one by one.
const fewMembers = 8

type reader struct {
	text string
	pos  int
	msg  string // why reading failed, at pos
	tree *Tree
}

func (r *reader) fail(pos int, msg string) bool {
	r.pos, r.msg = pos, msg
	return false
}

func (r *reader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// value reads the value at pos, which is no space, and appends it with all below it.
func (r *reader) value(parent int32, key string, index int32, depth int) bool {
	if r.pos == len(r.text) {
		return r.fail(r.pos, "Expecting value")
	}
	at, start := len(r.tree.Values), r.pos
	r.tree.Values = append(r.tree.Values, Value{Key: key, Parent: parent, Index: index, Start: int32(start)})
	var kind Kind
	var ok, escaped bool
	switch c := r.text[r.pos]; {
	case c == '"':
		kind = String
		escaped, ok = r.str()
	case c == '{':
		kind = Object
		r.tree.Values[at].Kind = Object // its names are looked up while it is read
		ok = r.object(int32(at), depth+1)
	case c == '[':
		kind = Array
		ok = r.array(int32(at), depth+1)
	case c == '-' || '0' <= c && c <= '9':
		kind = Number
		ok = r.number()
	case c == 't':
		kind = Bool
		ok = r.word("true")
	case c == 'f':
		kind = Bool
		ok = r.word("false")
	case c == 'n':
		kind = Null
		ok = r.word("null")
	case c == 'N' || c == 'I':
		return r.fail(start, "NaN and Infinity are not JSON")
	default:
		return r.fail(start, "Expecting value")
	}
	v := &r.tree.Values[at]
	v.Kind, v.Escaped, v.Text = kind, escaped, r.text[start:r.pos]
	return ok
}

func (r *reader) word(w string) bool {
	if !strings.HasPrefix(r.text[r.pos:], w) {
		return r.fail(r.pos, "Expecting value")
	}
	r.pos += len(w)
	return true
}

func (r *reader) array(at int32, depth int) bool {
	if depth > MaxDepth {
		return r.fail(r.pos, "Nested too deeply")
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
			return r.fail(r.pos, "Expecting ',' delimiter")
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
		return r.fail(r.pos, "Nested too deeply")
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
			return r.fail(start, "Expecting property name enclosed in double quotes")
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
			return r.fail(start, "Duplicate property name")
		}
		r.space()
		if r.pos == len(r.text) || r.text[r.pos] != ':' {
			return r.fail(r.pos, "Expecting ':' delimiter")
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
			return r.fail(r.pos, "Expecting ',' delimiter")
		}
		r.pos++
		if r.text[r.pos-1] == '}' {
			return true
		}
		r.space()
	}
}

// link makes child the next one after last below parent.
func (r *reader) link(parent, last, child int32) int32 {
	if last == 0 {
		r.tree.Values[parent].First = child
	} else {
		r.tree.Values[last].Next = child
	}
	r.tree.Values[parent].Count++
	return child
}

// duplicate reports whether the object at has a member of that name already. Above fewMembers, seen has the names.
func (r *reader) duplicate(seen map[string]struct{}, at int32, key string) bool {
	if seen == nil {
		return r.tree.Member(at, key) != 0
	}
	n := len(seen)
	seen[key] = struct{}{}
	return len(seen) == n
}

// str reads the string at pos, quotes and all.
func (r *reader) str() (escaped, ok bool) {
	start := r.pos
	for i := start + 1; i < len(r.text); {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			return escaped, true
		case c == '\\':
			escaped = true
			n, msg := escape(r.text[i:])
			if msg != "" {
				return true, r.fail(i, msg)
			}
			i += n
		case c < ' ':
			return escaped, r.fail(i, "Invalid control character at")
		default:
			i++
		}
	}
	return escaped, r.fail(start, "Unterminated string starting at")
}

// escape returns the length of the escape sequence that s begins with, or what is wrong with it.
func escape(s string) (n int, msg string) {
	if len(s) < 2 {
		return 0, "Unterminated string starting at"
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		c, ok := hex4(s[2:])
		if !ok {
			return 0, "Invalid \\uXXXX escape"
		}
		if !utf16.IsSurrogate(c) {
			return 6, ""
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if low, ok := hex4(s[8:]); ok && utf16.DecodeRune(c, low) != utf8.RuneError {
				return 12, ""
			}
		}
		return 0, "Lone surrogate in \\uXXXX escape"
	}
	return 0, "Invalid \\escape"
}

func hex4(s string) (c rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		switch d := s[i]; {
		case '0' <= d && d <= '9':
			c = c<<4 | rune(d-'0')
		case 'a' <= d && d <= 'f':
			c = c<<4 | rune(d-'a'+10)
		case 'A' <= d && d <= 'F':
			c = c<<4 | rune(d-'A'+10)
		default:
			return 0, false
		}
	}
	return c, true
}

// unescape decodes the inside of a string that str has accepted.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(s[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(s[i+2:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// number reads the number at pos.
func (r *reader) number() bool {
	start := r.pos
	if r.text[r.pos] == '-' {
		r.pos++
		if strings.HasPrefix(r.text[r.pos:], "I") {
			return r.fail(start, "NaN and Infinity are not JSON")
		}
	}
	if r.pos < len(r.text) && r.text[r.pos] == '0' {
		r.pos++
	} else if r.digits() == 0 {
		return r.fail(start, "Expecting value")
	}
	if r.pos < len(r.text) && r.text[r.pos] == '.' {
		r.pos++
		if r.digits() == 0 {
			return r.fail(start, "Invalid number")
		}
	}
	if r.pos < len(r.text) && (r.text[r.pos] == 'e' || r.text[r.pos] == 'E') {
		r.pos++
		if r.pos < len(r.text) && (r.text[r.pos] == '+' || r.text[r.pos] == '-') {
			r.pos++
		}
		first := r.pos
		n := r.digits()
		if n == 0 {
			return r.fail(start, "Invalid number")
		}
		if n > maxExponentDigits && len(strings.TrimLeft(r.text[first:r.pos], "0")) > maxExponentDigits {
			return r.fail(start, "Number exponent out of range")
		}
	}
	return true
}

// digits skips digits and returns how many there were.
func (r *reader) digits() int {
	start := r.pos
	for r.pos < len(r.text) && '0' <= r.text[r.pos] && r.text[r.pos] <= '9' {
		r.pos++
	}
	return r.pos - start
}
