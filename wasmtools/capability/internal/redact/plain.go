package redact

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// forms returns a secret as it is, in hexadecimal digits, and what of the base64 of any text that has the secret depends on it alone:
// that differs by where in the text the secret begins.
func forms(s string) []string {
	list := []string{s, hex.EncodeToString([]byte(s))}
	for offset := range 3 {
		code := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:offset] + s))
		list = append(list, code[(offset*8+5)/6:(offset+len(s))*8/6])
	}
	return list
}

// A plain is a part of a text in plain form: escapes are undone, letters small, signs that encodings differ in are the same, and ends
// of lines are left out. A secret has the same plain form however it is escaped, and whatever it is escaped once more.
type plain struct {
	asItIs bool // escapes are not undone
	undone bool // there was one

	next  int // in the text: where the next block begins
	size  int // bytes in the block
	old   int // of them, those of the block before
	first int // the first byte of the text, as long as it is in the block

	bytes        [blockSize]byte
	begins, ends [blockSize]int // where in the text each of them begins and ends
}

const (
	blockSize = 512
	overlap   = widest + widest/2 // of a block with the one before: a window, and what can precede it
	longest   = utf8.UTFMax       // bytes that an escape stands for
)

// plainOf returns the plain form of a text.
func plainOf(text string) (all []byte) {
	var p plain
	for p.read([]byte(text)) {
		all = append(all, p.bytes[p.old:p.size]...)
	}
	return all
}

// verbatim returns the plain form of a secret that has what looks like an escape, where an encoding hides that it does: in UTF-16, or
// where its signs are escaped themselves.
func verbatim(secret string) (all []byte) {
	for _, c := range []byte(secret) {
		if classes[c] != dropped && c != '\\' {
			all = append(all, folded[c])
		}
	}
	return all
}

// read reads the next block of a text. It reports false at the end.
func (p *plain) read(b []byte) bool {
	if p.size == 0 {
		p.size, p.first = overlap, overlap // nothing precedes
	} else if p.next < len(b) {
		gone := p.size - overlap
		copy(p.bytes[:], p.bytes[gone:p.size])
		copy(p.begins[:], p.begins[gone:p.size])
		copy(p.ends[:], p.ends[gone:p.size])
		p.size, p.first = overlap, max(0, p.first-gone)
	}
	p.old = p.size
	for p.next < len(b) && p.size <= blockSize-longest {
		begin := p.next
		c := b[begin]
		class := classes[c]
		if p.next++; class == kept || class == escape && p.asItIs {
			p.add(c, begin, p.next)
			continue
		}
		if class == dropped {
			continue
		}
		var r rune
		var n int
		switch c {
		case '%':
			r, n = percent(b[begin:])
		case '&':
			r, n = entity(b[begin:])
		case '\\':
			r, n = backslash(b[begin:])
		}
		if n == 0 {
			p.add(c, begin, p.next)
			continue
		}
		p.next, p.undone = begin+n, true
		switch {
		case r < 0: // nothing
		case c == '%':
			p.add(byte(r), begin, p.next)
		default:
			var code [utf8.UTFMax]byte
			for _, c := range code[:utf8.EncodeRune(code[:], r)] {
				p.add(c, begin, p.next)
			}
		}
	}
	return p.size > p.old
}

// add adds a byte that stands in the text from begin to end, unless it is one of those that are left out.
func (p *plain) add(c byte, begin, end int) {
	if classes[c] == dropped || c == '\\' {
		return
	}
	p.bytes[p.size], p.begins[p.size], p.ends[p.size] = folded[c], begin, end
	p.size++
}

// What is done with a byte.
const (
	kept    = iota
	dropped // ends of lines and control characters, of which every second byte in UTF-16 is one
	escape  // it may begin an escape
)

var classes = func() (table [256]byte) {
	for c := range byte(' ') {
		table[c] = dropped
	}
	table[0x7f] = dropped
	table['%'], table['&'], table['\\'] = escape, escape, escape
	return table
}()

// folded has the byte to compare for each: small letters for capitals, as hexadecimal digits are written as both and servers change
// the case of what they are sent; one sign for those that base64 and the base64 of URLs write for the same, and for the blank of
// forms.
var folded = func() (table [256]byte) {
	for c := range 256 {
		table[c] = byte(c)
	}
	for c := 'A'; c <= 'Z'; c++ {
		table[c] = byte(c - 'A' + 'a')
	}
	table['_'], table['+'], table[' '] = '/', '-', '-'
	return table
}()

// percent reads the escape of URLs at the begin of b, which may be escaped itself, any number of times. n is its length, 0 where it is
// none.
func percent(b []byte) (c rune, n int) {
	n = 1
	for len(b) >= n+4 && b[n] == '2' && b[n+1] == '5' && digit(b[n+2]) >= 0 && digit(b[n+3]) >= 0 {
		n += 2
	}
	if c, ok := number(b, n, 2); ok {
		return c, n + 2
	}
	return 0, 0
}

// backslash reads the escape of JSON, and of most programming languages, at the begin of b, whose backslash may be escaped itself. It
// returns -1 for those that stand for nothing that is kept.
func backslash(b []byte) (r rune, n int) {
	for n < len(b) && b[n] == '\\' {
		n++
	}
	if n == len(b) {
		return -1, n
	}
	switch b[n] {
	case 'n', 'r', 't':
		return -1, n + 1
	case 'x':
		if r, ok := number(b, n+1, 2); ok {
			return r, n + 3
		}
	case 'u':
		if r, ok := number(b, n+1, 4); ok {
			if low, ok := number(b, n+7, 4); ok && utf16.IsSurrogate(r) && b[n+5] == '\\' && b[n+6] == 'u' {
				return utf16.DecodeRune(r, low), n + 11
			}
			return r, n + 5
		}
	}
	return -1, n
}

// entities are those of HTML and XML that a writer has to use.
var entities = map[string]rune{"lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// entity reads the escape of HTML and XML at the begin of b, whose sign may be escaped itself.
func entity(b []byte) (r rune, n int) {
	n = 1
	for len(b) >= n+4 && string(b[n:n+4]) == "amp;" {
		r, n = '&', n+4
	}
	const longest = 8 // of a name or number
	end := n
	for end < len(b) && end <= n+longest && b[end] != ';' {
		end++
	}
	if end < len(b) && b[end] == ';' {
		name := string(b[n:end])
		if named, ok := entities[name]; ok {
			return named, end + 1
		}
		if hexadecimal, ok := strings.CutPrefix(strings.ToLower(name), "#x"); ok {
			if c, err := strconv.ParseUint(hexadecimal, 16, 21); err == nil {
				return rune(c), end + 1
			}
		} else if decimal, ok := strings.CutPrefix(name, "#"); ok {
			if c, err := strconv.ParseUint(decimal, 10, 21); err == nil {
				return rune(c), end + 1
			}
		}
	}
	if r == 0 {
		return 0, 0 // none at all
	}
	return r, n
}

// number reads a number of so many hexadecimal digits.
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
