package jsontree

import (
	"slices"
	"strconv"
	"strings"
)

// plainDigits is the longest integer whose canonical form is written out.
const plainDigits = 18

// Canonical returns a text that is the same for two values exactly if they are equal in JSON Schema: numbers are compared by value, objects without
// regard to order. For most strings, numbers and words it is the text itself, without a copy.
func (t *Tree) Canonical(at int32) string {
	v := &t.Values[at]
	switch v.Kind {
	case Null, Bool:
		return v.Text
	case String:
		if !v.Escaped {
			return v.Text
		}
		return Quote(v.Decoded())
	case Number:
		return canonicalNumber(v.Text)
	}
	return string(t.appendCanonical(make([]byte, 0, len(v.Text)), at))
}

func (t *Tree) appendCanonical(dst []byte, at int32) []byte {
	v := &t.Values[at]
	switch v.Kind {
	case Array:
		dst = append(dst, '[')
		for i := v.First; i != 0; i = t.Values[i].Next {
			dst = append(t.appendCanonical(dst, i), ',')
		}
		return append(dst, ']')
	case Object:
		members := make([]int32, 0, v.Count)
		for i := v.First; i != 0; i = t.Values[i].Next {
			members = append(members, i)
		}
		slices.SortFunc(members, func(a, b int32) int { return strings.Compare(t.Values[a].Key, t.Values[b].Key) })
		dst = append(dst, '{')
		for _, i := range members {
			dst = append(AppendQuoted(dst, t.Values[i].Key), ':')
			dst = append(t.appendCanonical(dst, i), ',')
		}
		return append(dst, '}')
	}
	return append(dst, t.Canonical(at)...)
}

func canonicalNumber(text string) string {
	if plainInteger(text) {
		return text
	}
	d := ParseDecimal(text)
	if text, ok := d.Text(plainDigits); ok {
		return text
	}
	return d.signed() + "e" + strconv.FormatInt(d.exp, 10)
}

// plainInteger reports whether the text of a number is its own canonical form.
func plainInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if len(digits) > plainDigits || text == "-0" {
		return false
	}
	for i := 0; i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}
