package jsontree

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// A flaw says what is wrong with a text: it is an index into messages. With strings in place of indexes, reading a number would take a tenth longer.
type flaw uint8

const (
	none flaw = iota
	expectValue
	expectName
	expectColon
	expectComma
	extraData
	notFinite
	badNumber
	hugeExponent
	unterminated
	controlCharacter
	badEscape
	badUnicode
	loneSurrogate
	duplicate
	tooDeep
)

// messages are the texts of the flaws, in the words of Python's json module where it has them.
var messages = [...]string{
	expectValue:      "Expecting value",
	expectName:       "Expecting property name enclosed in double quotes",
	expectColon:      "Expecting ':' delimiter",
	expectComma:      "Expecting ',' delimiter",
	extraData:        "Extra data",
	notFinite:        "NaN and Infinity are not JSON",
	badNumber:        "Invalid number",
	hugeExponent:     "Number exponent out of range",
	unterminated:     "Unterminated string starting at",
	controlCharacter: "Invalid control character at",
	badEscape:        `Invalid \escape`,
	badUnicode:       `Invalid \uXXXX escape`,
	loneSurrogate:    LoneSurrogate,
	duplicate:        Duplicate,
	tooDeep:          TooDeep,
}

// A source is a JSON text, as a string or as bytes. Both are read without a copy.
type source interface{ string | []byte }

// invalidUTF8 returns the index of the first byte of s that is not part of a character.
func invalidUTF8[T source](s T) int {
	for i, c := range string(s) {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)])); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

// skipSpace returns the index of the first byte from i that is not white space.
func skipSpace[T source](s T, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// kindOf returns the kind of the value that begins with c. If no value begins with c, that is a word, which wordEnd refuses.
func kindOf(c byte) Kind {
	switch {
	case c == '"':
		return String
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '-' || '0' <= c && c <= '9':
		return Number
	case c == 't' || c == 'f':
		return Bool
	}
	return Null
}

// wordEnd returns the index after the word at i: true, false or null.
func wordEnd[T source](s T, i int) (end int, wrong flaw) {
	word := ""
	switch s[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	case 'N', 'I':
		return i, notFinite
	default:
		return i, expectValue
	}
	if end = i + len(word); end <= len(s) && string(s[i:end]) == word {
		return end, none
	}
	return i, expectValue
}

// A surrogates says whether a string may contain an escaped surrogate without its partner. JSON's grammar allows that, but readers disagree on what
// it means.
type surrogates bool

const (
	paired surrogates = false
	lone   surrogates = true
)

// stringEnd returns the index after the string whose content begins at i, and whether the string has an escape sequence. It skips eight bytes at a
// time until there is a quote, a backslash or a control character among them. If the string is invalid, end is the position of the error.
func stringEnd[T source](s T, i int, half surrogates) (end int, escaped bool, wrong flaw) {
	const each, high = 0x0101010101010101, 0x8080808080808080
	start := i - 1
	for {
		for ; i+8 <= len(s); i += 8 {
			w := s[i : i+8]
			v := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
				uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
			quote, escape := v^each*'"', v^each*'\\'
			if found := ((v-each*' ')&^v | (quote-each)&^quote | (escape-each)&^escape) & high; found != 0 {
				i += bits.TrailingZeros64(found) / 8 // the lowest bit is right, even if the subtraction borrowed from bits above it
				break
			}
		}
		if i >= len(s) {
			return start, escaped, unterminated
		}
		switch c := s[i]; {
		case c == '"':
			return i + 1, escaped, none
		case c == '\\':
			escaped = true
			n, wrong := escape(s[i:], half)
			if wrong != none {
				return i, escaped, wrong
			}
			i += n
		case c < ' ':
			return i, escaped, controlCharacter
		default:
			i++ // among the last seven bytes
		}
	}
}

// escape returns the length of the escape sequence that s begins with, or what is wrong with it.
func escape[T source](s T, half surrogates) (n int, wrong flaw) {
	if len(s) < 2 {
		return 0, unterminated
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, none
	case 'u':
		c, ok := hex4(s[2:])
		if !ok {
			return 0, badUnicode
		}
		if half == lone || !utf16.IsSurrogate(c) {
			return 6, none
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if low, ok := hex4(s[8:]); ok && utf16.DecodeRune(c, low) != utf8.RuneError {
				return 12, none
			}
		}
		return 0, loneSurrogate
	}
	return 0, badEscape
}

func hex4[T source](s T) (c rune, ok bool) {
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

// unescape decodes the content of a string that stringEnd has accepted.
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

// numberEnd returns the index after the number at i. If there is none, end is i.
func numberEnd[T source](s T, i int) (end int, wrong flaw) {
	start := i
	if s[i] == '-' {
		if i++; i < len(s) && s[i] == 'I' {
			return start, notFinite
		}
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else {
		from := i
		if i = digitsEnd(s, i); i == from {
			return start, expectValue
		}
	}
	if i < len(s) && s[i] == '.' {
		from := i + 1
		if i = digitsEnd(s, from); i == from {
			return start, badNumber
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		from := i
		if i = digitsEnd(s, i); i == from {
			return start, badNumber
		}
	}
	return i, none
}

func digitsEnd[T source](s T, i int) int {
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	return i
}
