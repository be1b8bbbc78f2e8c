package toolset

import (
	"bytes"
	"slices"
	"unicode/utf16"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// A client drops a message that it can't read, and then waits for the answer until its timeout. The Python SDK, for example, refuses some valid JSON
// that tools may return: unpaired surrogates, arrays nested 200 deep, and integers of more than 4,300 digits. Text blocks have no such limits,
// because there the JSON is inside a string.
const (
	readableDepth  = 180 // the message around it has some levels, too
	readableDigits = 4000
)

// readable returns JSON with U+FFFD in place of each unpaired surrogate, and whether clients can read it outside a string.
func readable(text []byte) ([]byte, bool) {
	if bytes.Contains(text, []byte(`\ud`)) || bytes.Contains(text, []byte(`\uD`)) {
		text = mendHalves(text)
	}
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > readableDepth && jsontree.Check(text, readableDepth) != nil {
		return text, false
	}
	return text, !hasLongNumber(text)
}

// mendHalves returns JSON with U+FFFD in place of each escaped surrogate without its other half.
func mendHalves(text []byte) []byte {
	copied := false
	for i := 0; i+6 <= len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if text[i+1] != 'u' {
			i++ // skips the escaped character
			continue
		}
		switch c := hex4(text[i+2:]); {
		case !utf16.IsSurrogate(c):
			i += 5
		case i+12 <= len(text) && text[i+6] == '\\' && text[i+7] == 'u' && utf16.DecodeRune(c, hex4(text[i+8:])) != '\ufffd':
			i += 11
		default:
			if !copied {
				text, copied = slices.Clone(text), true
			}
			copy(text[i+2:], "fffd")
			i += 5
		}
	}
	return text
}

// hex4 returns the value of the four digits of an escape sequence.
func hex4(digits []byte) (c rune) {
	for _, d := range digits[:4] {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		default:
			d = d | 0x20 - 'a' + 10
		}
		c = c<<4 | rune(d)
	}
	return c
}

// hasLongNumber reports whether JSON has a number with more digits in a row than clients read. If a text has no long run of digits, it looks at only
// a few bytes.
func hasLongNumber(text []byte) bool {
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	suspicious := false
	for i := readableDigits - 1; i < len(text) && !suspicious; i += readableDigits {
		first, last := i, i
		for first > 0 && isDigit(text[first-1]) {
			first--
		}
		for last < len(text) && isDigit(text[last]) {
			last++
		}
		suspicious = last-first > readableDigits
	}
	if !suspicious {
		return false
	}
	digits, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString, digits = !inString, 0
		case inString || !isDigit(c):
			digits = 0
		default:
			if digits++; digits > readableDigits {
				return true
			}
		}
	}
	return false
}
