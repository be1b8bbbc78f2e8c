package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden reports whether a character can make a terminal do something, or change how other characters are shown. These are control characters (C1
// included), invalid characters, line separators, and characters that set the direction or have no width. Newlines and tabs are harmless.
func hidden(r rune, size int) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	case r == utf8.RuneError:
		return size == 1
	}
	return unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029'
}

// Escape makes foreign text safe for a terminal or a log: hidden characters are written as in JSON, such as \u202e, and bytes that are not UTF-8 as
// \ufffd. It does not change the meaning of a JSON text.
func Escape(s string) string {
	if i := firstHidden(s); i < len(s) {
		return string(appendEscaped(append(make([]byte, 0, len(s)+16), s[:i]...), s[i:]))
	}
	return s
}

// EscapeBytes is Escape for bytes. It returns b itself if nothing must be escaped.
func EscapeBytes(b []byte) []byte {
	if i := firstHidden(b); i < len(b) {
		return appendEscaped(append(make([]byte, 0, len(b)+len(b)/8+16), b[:i]...), b[i:])
	}
	return b
}

// firstHidden returns the index of the first hidden character, or the length.
func firstHidden[T string | []byte](s T) int {
	for i := 0; i < len(s); {
		if i+8 <= len(s) { // logs are nearly all ASCII, so eight bytes at a time: 0.1 ns each
			const each, high = 0x0101010101010101, 0x8080808080808080
			v := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
				uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
			if del := v ^ each*0x7f; (v|(v-each*' ')|(del-each))&high == 0 {
				i += 8
				continue
			}
		}
		if c := s[i]; ' ' <= c && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, size := decode(s[i:])
		if hidden(r, size) {
			return i
		}
		i += size
	}
	return len(s)
}

// decode is utf8.DecodeRune for both kinds of text.
func decode[T string | []byte](s T) (rune, int) {
	return utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
}

func appendEscaped[T string | []byte](out []byte, s T) []byte {
	for i := 0; i < len(s); {
		r, size := decode(s[i:])
		switch {
		case !hidden(r, size):
			out = append(out, s[i:i+size]...)
		case r > 0xffff: // as in JSON: a surrogate pair
			r -= 0x10000
			out = appendUnicode(appendUnicode(out, 0xd800+r>>10), 0xdc00+r&0x3ff)
		default:
			out = appendUnicode(out, r)
		}
		i += size
	}
	return out
}

func appendUnicode(out []byte, unit rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}

// ClipEscaped returns s as valid UTF-8, cut as by Clip, so that it has no more than most bytes even after it is escaped for a log line: by
// Escape, or by the rules of JSON or of Go strings.
func ClipEscaped(s string, most int) string {
	total, end := 0, -1 // end is how much fits before the ellipsis
	for i, r := range s {
		n := escapedLen(r)
		if end < 0 && total+n > most-3 {
			end = i
		}
		if total += n; total > most {
			return strings.ToValidUTF8(s[:end], "\uFFFD") + "..."
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// escapedLen returns how many bytes a character takes at most when it is escaped.
func escapedLen(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < utf8.RuneSelf && ' ' <= r && r != 0x7f:
		return 1
	case r == utf8.RuneError:
		return 6 // it may stand for a byte that is not UTF-8
	case unicode.IsPrint(r):
		return utf8.RuneLen(r)
	case r > 0xffff:
		return 12
	}
	return 6
}
