package jsontree

import "encoding/json"

// A MemberReader reads the members of an object one by one. It builds no tree, however large the values are.
type MemberReader struct {
	text []byte
	at   int // the next name, or the end
}

// ReadMembers returns a reader of the members of the object in text, or false if text is not an object. Check must have accepted text.
func ReadMembers(text []byte) (r MemberReader, isObject bool) {
	i := skipSpace(text, 0)
	if text[i] != '{' {
		return MemberReader{}, false
	}
	return MemberReader{text, skipSpace(text, i+1)}, true
}

// Next returns the next member, in order, or false at the end. value is a slice of the text, and so is name, unless it has an escape sequence.
func (r *MemberReader) Next() (name, value []byte, more bool) {
	if r.text[r.at] == '}' {
		return nil, nil, false
	}
	end, escaped, _ := stringEnd(r.text, r.at+1, lone)
	if name = r.text[r.at+1 : end-1]; escaped {
		name = []byte(DecodeString(r.text[r.at:end]))
	}
	start := skipSpace(r.text, skipSpace(r.text, end)+1) // behind the colon
	end = valueEnd(r.text, start)
	if r.at = skipSpace(r.text, end); r.text[r.at] == ',' {
		r.at = skipSpace(r.text, r.at+1)
	}
	return name, r.text[start:end:end], true
}

// DecodeString returns the content of a JSON string. text includes the quotes, and Check must have accepted it. A lone surrogate is replaced, as in
// package json.
func DecodeString(text []byte) string {
	var s string
	_ = json.Unmarshal(text, &s) // fails only if text is not a string
	return s
}

// Members calls f with each member of an object, in order, until f fails. Check must have accepted text; value is a slice of it. Members returns
// false if text is not an object.
func Members(text []byte, f func(name string, value []byte) error) (isObject bool, err error) {
	r, isObject := ReadMembers(text)
	for isObject {
		name, value, more := r.Next()
		if !more {
			break
		}
		if err := f(string(name), value); err != nil {
			return true, err
		}
	}
	return isObject, nil
}

// valueEnd returns the index after the value at i, which must be valid.
func valueEnd(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue // no value ends here
		default:
			i, _ = scalarEnd(b, i)
		}
		if depth == 0 {
			return i
		}
	}
}
