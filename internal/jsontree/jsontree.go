// Package jsontree reads JSON strictly: in one pass into a flat tree of values, or without a tree where only the syntax matters.
//
// [Tree.Read] refuses what encoding/json accepts: invalid UTF-8, duplicate names, lone surrogates, and unlimited nesting or exponents. Every function
// takes time and memory that are linear in the text, whatever the text is. Values are slices of the text that was read and keep it alive.
package jsontree

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of arrays and objects that Read accepts.
const MaxDepth = 128

// maxText is the largest size of a text, so that positions fit into an int32.
const maxText = 1 << 30

// A Kind is the type of a JSON value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// A Value is one value of a Tree.
type Value struct {
	// Key is the decoded name of a member of an object, and empty elsewhere.
	Key string
	// Text is the value as it was written.
	Text string
	// Parent is the index of the array or object that holds the value, -1 for the root.
	Parent int32
	// First is the index of the first item or member, 0 if there is none.
	First int32
	// Next is the index of the next value of the same parent, 0 at the end.
	Next int32
	// Count is the number of items or members.
	Count int32
	// Index is the value's position in its parent, from 0.
	Index int32
	// Start is the offset of Text in the text that was read, -1 for a value that was added later.
	Start int32
	// Kind is the value's type.
	Kind Kind
	// Escaped reports a string with an escape sequence in it.
	Escaped bool
}

// A Tree is a JSON text. Values[0] is the root; values refer to each other by index. The zero Tree is empty.
type Tree struct {
	Values []Value
}

// The messages of a SyntaxError that say more than "invalid syntax".
const (
	InvalidUTF8   = "Invalid UTF-8"
	LoneSurrogate = `Lone surrogate in \uXXXX escape`
	Duplicate     = "Duplicate property name"
	TooDeep       = "Nested too deeply"
)

// A SyntaxError says why a text is not accepted.
type SyntaxError struct {
	// Offset is the position of the error in bytes, from 0.
	Offset int
	// Msg is a short phrase, in the words of Python's json module where it has them.
	Msg string
	// In is set by Read. It is the index of the object that has a name twice, or of the array or object that is nested too deeply, and -1 in other
	// errors. Of this value and of those above it, only Key, Parent, Index and Kind are set.
	In int32
	// Name is the name that the object In has twice.
	Name string
}

// Error returns the message with its place. Some of Python's messages end with "at" already.
func (e *SyntaxError) Error() string {
	return strings.TrimSuffix(e.Msg, " at") + " at byte " + strconv.Itoa(e.Offset)
}

// Read replaces the content of the tree with text, using the memory of Values again. The error is a *SyntaxError; after an error, use the tree only
// as SyntaxError.In says.
func (t *Tree) Read(text string) error {
	t.Values = t.Values[:0]
	if len(text) > maxText {
		return &SyntaxError{Offset: maxText, Msg: "Text too long", In: -1}
	}
	if !utf8.ValidString(text) {
		return &SyntaxError{Offset: invalidUTF8(text), Msg: InvalidUTF8, In: -1}
	}
	if most := MostValues(text); cap(t.Values) < most {
		t.Values = make([]Value, 0, most)
	}
	r := reader{text: text, tree: t, in: -1}
	r.space()
	if !r.value(-1, "", 0, 0) {
		return &SyntaxError{Offset: r.pos, Msg: messages[r.flaw], In: r.in, Name: r.name}
	}
	r.space()
	if r.pos < len(text) {
		return &SyntaxError{Offset: r.pos, Msg: messages[extraData], In: -1}
	}
	return nil
}

// MostValues returns how many values text has at most, if it is JSON; mostly that is the exact number. It counts exactly if there seems to be more
// than one value per four bytes, as in a string with many commas. Read allocates for this number, so it never has to grow its memory for values,
// which would take twice as much.
func MostValues(text string) int {
	if n := 1 + strings.Count(text, ",") + strings.Count(text, "{") + strings.Count(text, "["); n <= 16+len(text)/4 {
		return n
	}
	n := 1
	last := byte(0) // the last byte that is not white space
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			last = '"'
		case ',', '[', '{':
			n++
			last = c
		case ']', '}':
			if last == '[' || last == '{' {
				n-- // the array or object is empty
			}
			last = c
		default:
			last = c
		}
	}
	return n
}

// Member returns the member of object with the given name, or 0. It goes through the members one by one.
func (t *Tree) Member(object int32, name string) int32 {
	if t.Values[object].Kind != Object {
		return 0
	}
	for i := t.Values[object].First; i != 0; i = t.Values[i].Next {
		if t.Values[i].Key == name {
			return i
		}
	}
	return 0
}

// Append copies a value of another tree, which has the index from, with everything below it. The copy becomes a member of object after last, which
// is object's last member or 0. It returns the new member.
func (t *Tree) Append(object, last int32, name string, other *Tree, from int32) int32 {
	at := t.copy(object, other, from)
	t.Values[at].Key = name
	t.Values[at].Index = t.Values[object].Count
	t.Values[object].Count++
	if last == 0 {
		t.Values[object].First = at
	} else {
		t.Values[last].Next = at
	}
	return at
}

func (t *Tree) copy(parent int32, other *Tree, from int32) int32 {
	at := int32(len(t.Values))
	v := other.Values[from]
	first := v.First
	v.Parent, v.First, v.Next, v.Start = parent, 0, 0, -1
	t.Values = append(t.Values, v)
	last := int32(0)
	for i := first; i != 0; i = other.Values[i].Next {
		child := t.copy(at, other, i)
		if last == 0 {
			t.Values[at].First = child
		} else {
			t.Values[last].Next = child
		}
		last = child
	}
	return at
}

// PushName adds a member's name as a string value below that member, and returns it. [Tree.Pop] removes it.
func (t *Tree) PushName(member int32) int32 {
	name := t.Values[member].Key
	text := Quote(name)
	t.Values = append(t.Values, Value{
		Key: "[key]", Text: text, Parent: member, Start: -1, Kind: String, Escaped: len(text) != len(name)+2,
	})
	return int32(len(t.Values) - 1)
}

// Pop removes the value that was added last.
func (t *Tree) Pop() { t.Values = t.Values[:len(t.Values)-1] }

// Decoded returns the content of a string value, without its quotes and escapes.
func (v *Value) Decoded() string {
	if !v.Escaped {
		return v.Text[1 : len(v.Text)-1]
	}
	return unescape(v.Text[1 : len(v.Text)-1])
}

// Quote returns s as a JSON string, with as few escapes as JSON allows.
func Quote(s string) string {
	if clean(s) {
		return `"` + s + `"`
	}
	return string(appendEscaped(make([]byte, 0, len(s)+8), s))
}

// AppendQuoted appends to dst what Quote returns.
func AppendQuoted(dst []byte, s string) []byte {
	if clean(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	return appendEscaped(dst, s)
}

// clean reports whether nothing in s needs an escape.
func clean(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}

func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
