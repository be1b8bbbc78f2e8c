package redact

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a way to read a text. It passes decoded bytes, with their positions, to its search. Line breaks, backslashes and control characters, such
// as every second byte of UTF-16, are left out of every view and every pattern, since encodings add and remove them.
//
// Secrets are decoded in the same way as texts, so a secret that looks escaped itself is found, too.

// inViews returns the finds in all views of a text.
func (r *Redactor) inViews(b []byte) []span {
	undone := search{index: &r.index}
	if undone.unescape(b) { // what looks like an escape may be an ordinary character, followed by the beginning of a secret
		raw := search{index: &r.index, found: undone.found}
		raw.verbatim(b)
		undone.found = raw.found
	}
	mail := search{index: &r.index, found: r.inNumbers(b, undone.found)}
	mail.quotedPrintable(b)
	return mail.found
}

// plainOf returns the form of a pattern for texts with decoded escapes.
func plainOf(text string) []byte {
	plain := make([]byte, 0, len(text))
	unescape([]byte(text), func(c byte, _, _ int) { plain = append(plain, c) })
	return plain
}

// verbatim returns the form of a pattern for texts whose escapes are not decoded, or are escaped themselves.
func verbatim(pattern string) []byte {
	plain := make([]byte, 0, len(pattern))
	for _, c := range []byte(pattern) {
		if !dropped[c] {
			plain = append(plain, c)
		}
	}
	return plain
}

var dropped = func() (table [256]bool) {
	for c := range byte(' ') {
		table[c] = true
	}
	table[0x7f], table['\\'] = true, true
	return table
}()

// verbatim reads a text as it is.
func (s *search) verbatim(b []byte) {
	for i, c := range b {
		if !dropped[c] {
			s.add(c, i, i+1)
		}
	}
}

// unescape reads a text and decodes the escapes of URLs, HTML, JSON and programming languages. It reports whether there were any.
func (s *search) unescape(b []byte) (undone bool) { return unescape(b, s.add) }

func unescape(b []byte, add func(c byte, begin, end int)) (undone bool) {
	for i := 0; i < len(b); {
		var r rune
		var n int
		c := b[i]
		switch c {
		case '%':
			r, n = percent(b[i:])
		case '&':
			r, n = entity(b[i:])
		case '\\':
			r, n = backslash(b[i:])
		}
		switch {
		case n == 0:
			if n = 1; !dropped[c] {
				add(c, i, i+1)
			}
		case r < 0: // nothing
			undone = true
		case r < utf8.RuneSelf || r <= 0xff && b[i] != '&' && isByte(b[i:i+n]):
			if undone = true; !dropped[byte(r)] {
				add(byte(r), i, i+n)
			}
		default:
			undone = true
			var code [utf8.UTFMax]byte
			for _, c := range code[:utf8.EncodeRune(code[:], r)] {
				add(c, i, i+n)
			}
		}
		i += n
	}
	return undone
}

// isByte reports whether an escape stands for a byte rather than a character.
func isByte(escape []byte) bool { return !bytes.ContainsAny(escape, "uU") }

// quotedPrintable reads a text in the encoding of mail: = comes before two hexadecimal digits, and before a line break that does not count. A URL can
// look like it, so these escapes are not always decoded.
func (s *search) quotedPrintable(b []byte) {
	if !bytes.Contains(b, []byte("=")) {
		return
	}
	for i := 0; i < len(b); {
		c, n := b[i], 1
		if c == '=' {
			if r, ok := number(b, i+1, 2); ok {
				c, n = byte(r), 3
			} else if i+1 < len(b) && (b[i+1] == '\r' || b[i+1] == '\n') {
				c = 0
			}
		}
		if !dropped[c] {
			s.add(c, i, i+n)
		}
		i += n
	}
}

// percent reads the URL escape at the beginning of b, which may be escaped itself, any number of times. n is its length, or 0 if there is none.
func percent(b []byte) (c rune, n int) {
	n = 1
	for len(b) >= n+4 && b[n] == '2' && b[n+1] == '5' && digit(b[n+2]) >= 0 && digit(b[n+3]) >= 0 {
		n += 2
	}
	if c, ok := number(b, n, 2); ok {
		return c, n + 2
	}
	if len(b) > n && b[n]|0x20 == 'u' {
		if c, ok := number(b, n+1, 4); ok {
			return c, n + 5
		}
	}
	return 0, 0
}

// backslash reads the escape of JSON and most programming languages at the beginning of b, whose backslash may be escaped itself. It returns -1 for
// the escape of a character that views leave out.
func backslash(b []byte) (r rune, n int) {
	for n < len(b) && b[n] == '\\' {
		n++
	}
	if n == len(b) {
		return -1, n
	}
	switch b[n] {
	case 'n', 'r', 't', 'b', 'f':
		return -1, n + 1
	case '0', '1', '2', '3', '4', '5', '6', '7':
		end := n
		for ; end < len(b) && end < n+3 && '0' <= b[end] && b[end] <= '7'; end++ {
			r = r<<3 | rune(b[end]-'0')
		}
		return r & 0xff, end
	case 'x':
		if r, end, ok := braced(b, n+1); ok {
			return r, end
		}
		if r, ok := number(b, n+1, 2); ok {
			return r, n + 3
		}
	case 'U':
		if r, ok := number(b, n+1, 8); ok && 0 <= r && r <= utf8.MaxRune {
			return r, n + 9
		}
	case 'u':
		if r, end, ok := braced(b, n+1); ok {
			return r, end
		}
		if r, ok := number(b, n+1, 4); ok {
			if low, ok := number(b, n+7, 4); ok && utf16.IsSurrogate(r) && b[n+5] == '\\' && b[n+6] == 'u' {
				return utf16.DecodeRune(r, low), n + 11
			}
			return r, n + 5
		}
	}
	return -1, n
}

// braced reads a hexadecimal number in braces. end is the position after it.
func braced(b []byte, at int) (r rune, end int, ok bool) {
	if len(b) <= at || b[at] != '{' {
		return 0, 0, false
	}
	const longest = 8 // digits
	for end = at + 1; end < len(b) && end < at+1+longest && digit(b[end]) >= 0; end++ {
		r = r<<4 | digit(b[end])
	}
	return r, end + 1, end > at+1 && end < len(b) && b[end] == '}' && 0 <= r && r <= utf8.MaxRune
}

// entities are the HTML and XML entities of ASCII characters, in small letters.
var entities = map[string]rune{
	"lt": '<', "gt": '>', "quot": '"', "apos": '\'', "nbsp": ' ', "excl": '!', "num": '#', "dollar": '$', "percnt": '%', "lpar": '(', "rpar": ')',
	"ast": '*', "plus": '+', "comma": ',', "period": '.', "sol": '/', "colon": ':', "semi": ';', "equals": '=', "quest": '?', "commat": '@',
	"lsqb": '[', "lbrack": '[', "rsqb": ']', "rbrack": ']', "hat": '^', "lowbar": '_', "grave": '`', "lcub": '{', "lbrace": '{',
	"verbar": '|', "vert": '|', "rcub": '}', "rbrace": '}', "bsol": '\\',
}

// entity reads the HTML or XML entity at the beginning of b, whose ampersand may be escaped itself.
func entity(b []byte) (r rune, n int) {
	n = 1
	for len(b) >= n+4 && strings.EqualFold(string(b[n:n+4]), "amp;") {
		r, n = '&', n+4
	}
	end, base := n, 0
	if len(b) > n && b[n] == '#' {
		if end, base = n+1, 10; len(b) > end && b[end]|0x20 == 'x' {
			end, base = end+1, 16
		}
	}
	const longest = 10 // characters of a name or number
	begin := end
	for end < len(b) && end < begin+longest && (base == 0 && isWord[b[end]] || base > 0 && digit(b[end]) >= 0 && int(digit(b[end])) < base) {
		end++
	}
	closed := end < len(b) && b[end] == ';'
	after := end
	if closed {
		after++
	}
	if base > 0 {
		if c, err := strconv.ParseUint(string(b[begin:end]), base, 21); err == nil {
			return rune(c), after
		}
	} else if named, ok := entities[strings.ToLower(string(b[begin:end]))]; ok && closed {
		return named, after
	}
	if r == 0 {
		return 0, 0 // none at all
	}
	return r, n
}

// number reads a hexadecimal number with that many digits.
func number(b []byte, at, digits int) (value rune, ok bool) {
	if len(b) < at+digits {
		return 0, false
	}
	for _, c := range b[at : at+digits] {
		d := digit(c)
		if d < 0 {
			return 0, false
		}
		value = value<<4 | d
	}
	return value, true
}

// digit returns the value of a hexadecimal digit, or -1.
func digit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}
