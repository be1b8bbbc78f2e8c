package toolset

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// isPortable reports whether all clients of the legacy era can compile a schema of a result, and understand it in the same way. The TypeScript SDK
// before 2.0 compiles each schema when it gets the list, with Ajv as draft 7, and refuses the whole list if one fails. The Python SDK compiles a
// schema when its tool is called.
func isPortable(schema json.RawMessage) bool {
	var tree jsontree.Tree
	if tree.Read(string(schema)) != nil {
		return false
	}
	for i := range tree.Values {
		v := &tree.Values[i]
		switch v.Key {
		case "pattern":
			if v.Kind == jsontree.String && !isPortablePattern(v.Decoded()) {
				return false
			}
		case "patternProperties":
			for m := v.First; m != 0; m = tree.Values[m].Next {
				if !isPortablePattern(tree.Values[m].Key) {
					return false
				}
			}
		case "enum": // Ajv requires at least one value
			if v.Kind == jsontree.Array && v.Count == 0 {
				return false
			}
		case "prefixItems": // then Ajv applies "items" to all items
			if v.Kind == jsontree.Array {
				return false
			}
		case "nullable", "$async", "id": // keywords of Ajv, unless they are names of properties, whose values are schemas
			if v.Kind == jsontree.Bool || v.Kind == jsontree.String {
				return false
			}
		}
	}
	return true
}

// isPortablePattern reports whether a pattern that RE2 accepts certainly means the same in ECMA-262 with the flag u, and in Python.
func isPortablePattern(pattern string) bool {
	for i := 0; i < len(pattern); {
		n := 1
		switch c := pattern[i]; c {
		case '\\':
			n = portableEscape(pattern[i:], "^$\\.*+?()[]{}|/dDwWsSbBnrtfv")
		case '[':
			n = portableClass(pattern[i:])
		case '{':
			n = quantifier(pattern[i:])
		case ']', '}':
			return false
		case '(':
			if strings.HasPrefix(pattern[i:], "(?") && !strings.HasPrefix(pattern[i:], "(?:") {
				return false
			}
		}
		if n == 0 {
			return false
		}
		i += n
	}
	return true
}

// portableEscape returns the length of the escape sequence at the beginning of a text, or 0 if it is not portable.
func portableEscape(s, letters string) int {
	isHex := func(digits string) bool {
		return strings.Trim(digits, "0123456789abcdefABCDEF") == ""
	}
	switch {
	case len(s) < 2:
	case strings.IndexByte(letters, s[1]) >= 0:
		return 2
	case s[1] == 'x' && len(s) >= 4 && isHex(s[2:4]):
		return 4
	case s[1] == 'u' && len(s) >= 6 && isHex(s[2:6]):
		return 6
	}
	return 0
}

// portableClass returns the length of the character class at the beginning of a text, or 0 if it is not portable.
func portableClass(s string) int {
	i := 1
	if strings.HasPrefix(s[i:], "^") {
		i++
	}
	var kinds []byte // the kind of each part of the class: a character, a set, or a hyphen
	for i < len(s) {
		switch s[i] {
		case ']':
			if len(kinds) == 0 { // an empty class, or one that contains a bracket
				return 0
			}
			for n, kind := range kinds[1 : len(kinds)-min(1, len(kinds)-1)] {
				if kind == '-' && (kinds[n] == 's' || kinds[n+2] == 's') { // a range with a set as its end
					return 0
				}
			}
			return i + 1
		case '[', '&', '~', '|': // RE2, Python or newer ECMA-262 may give these a special meaning
			return 0
		case '\\':
			n := portableEscape(s[i:], "^$\\.*+?()[]{}|/-dDwWsSnrtfv")
			if n == 0 {
				return 0
			}
			kind := byte('c')
			if strings.IndexByte("dDwWsS", s[i+1]) >= 0 {
				kind = 's'
			}
			kinds = append(kinds, kind)
			i += n
		case '-':
			kinds = append(kinds, '-')
			i++
		default:
			kinds = append(kinds, 'c')
			i++
		}
	}
	return 0
}

// quantifier returns the length of the quantifier in braces at the beginning of a text, or 0 if there is none.
func quantifier(s string) int {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return 0
	}
	least, most, bounded := strings.Cut(s[1:end], ",")
	digits := func(s string) bool {
		return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
	}
	if least == "" || !digits(least) || bounded && !digits(most) {
		return 0
	}
	return end + 1
}
