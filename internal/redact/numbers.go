package redact

// A lister reads a text as lists of numbers, each a byte, with any punctuation between them. They may be decimal, octal with or without 0o, or
// hexadecimal with or without 0x; a hexadecimal word may contain several bytes, as xxd writes them. Other words end a list, with two exceptions: the
// keys of an object such as {"0":104,"1":117}, which is JSON's form of an array of bytes, and what a dump has beside the bytes: the offset of a line,
// and its text.
type lister struct {
	text               []byte
	ten, eight, base16 *search
	begins             bool // a line begins
	dump               int  // the end of the line if the line belongs to a dump
}

// inNumbers appends the finds in the lists of numbers of a text to earlier finds.
func (r *Redactor) inNumbers(b []byte, found []span) []span {
	ten, eight, sixteen := search{index: &r.index, found: found}, search{index: &r.index}, search{index: &r.index}
	l := lister{text: b, ten: &ten, eight: &eight, base16: &sixteen, begins: true}
	for i := 0; i < len(b); {
		if isWord[b[i]] {
			begin := i
			for i < len(b) && isWord[b[i]] {
				i++
			}
			l.word(begin, i)
			l.begins = false
			continue
		}
		i = l.between(i)
	}
	return append(append(ten.found, eight.found...), sixteen.found...)
}

// between reads a character between words, and returns the position after it.
func (l *lister) between(i int) int {
	switch c := l.text[i]; {
	case c == '\n' || c == '"':
		l.begins = true
	case c == '\\' && i+1 < len(l.text) && (l.text[i+1] == 'n' || l.text[i+1] == 'r' || l.text[i+1] == 't'): // an escaped line break or tab in a JSON string
		l.begins = l.text[i+1] != 't'
		return i + 2
	case c == ' ' && i+1 < l.dump && l.text[i+1] == ' ':
		for i < l.dump && l.text[i] == ' ' {
			i++
		}
		if !l.number(i) {
			return l.dump // the line's text
		}
		return i
	}
	return i + 1
}

// number reports whether the word at i may be a byte.
func (l *lister) number(i int) bool {
	end := i
	for end < len(l.text) && isWord[l.text[end]] && end <= i+3 {
		end++
	}
	return end > i && end <= i+3 && hexadecimal(l.text[i:end])
}

// word reads a word.
func (l *lister) word(begin, end int) {
	word := l.text[begin:end]
	if digit(word[0]) < 0 {
		for _, s := range [...]*search{l.ten, l.eight, l.base16} {
			s.give(0, false, begin, end)
		}
		return
	}
	if l.beside(word, end) {
		return
	}
	until := end
	if end <= l.dump {
		until = l.dump // in a dump, a find extends to the end of the line, whose text shows the same bytes
	}
	n, ok := value(word, 3, 10)
	l.ten.give(n, ok, begin, until)
	n, ok = value(prefixed(word, 'o'), 4, 8)
	l.eight.give(n, ok, begin, until)
	digits := prefixed(word, 'x')
	if len(digits) < 2 {
		n, ok = value(digits, 1, 16)
		l.base16.give(n, ok, begin, until)
		return
	}
	if !hexadecimal(digits) || len(digits)%2 > 0 {
		l.base16.give(0, false, begin, until)
		return
	}
	for i := end - len(digits); i < end; i += 2 {
		if n, _ := number(l.text, i, 2); !dropped[byte(n)] {
			l.base16.add(byte(n), begin, max(i+2, min(until, l.dump)))
		}
		begin = i + 2
	}
}

// give adds a number, or ends the list if it is not a byte.
func (s *search) give(n rune, ok bool, begin, end int) {
	switch {
	case !ok || n > 0xff:
		if s.read > 0 {
			s.skip()
		}
	case !dropped[byte(n)]:
		s.add(byte(n), begin, end)
	}
}

// beside reports whether a word is not part of a list, but is beside its numbers: a key, or the offset of a line in a dump.
func (l *lister) beside(word []byte, end int) bool {
	rest := l.text[end:]
	quotes := 0
	for quotes < len(rest) && quotes < 4 && (rest[quotes] == '"' || rest[quotes] == '\'' || rest[quotes] == '\\') {
		quotes++
	}
	blank := func(i int) bool { return i < len(rest) && rest[i] == ' ' }
	key := quotes < len(rest) && rest[quotes] == ':' && (quotes > 0 || blank(1))
	place := l.begins && quotes == 0 && len(word) >= 4 && (key || blank(0) && (blank(1) || len(word) >= 6))
	if !key && !place || !hexadecimal(word) {
		return false
	}
	if place && end > l.dump { // the end of each line is looked for only once
		l.dump = end
		for l.dump < len(l.text) && !l.lineEnds(l.dump) {
			l.dump++
		}
	}
	return true
}

// lineEnds reports whether a line ends at i, in a text or in a JSON string.
func (l *lister) lineEnds(i int) bool {
	return l.text[i] == '\n' || l.text[i] == '\\' && i+1 < len(l.text) && l.text[i+1] == 'n'
}

// prefixed returns a word without its prefix 0x or 0o.
func prefixed(word []byte, sign byte) []byte {
	if len(word) > 2 && word[0] == '0' && word[1]|0x20 == sign {
		return word[2:]
	}
	return word
}

// value reads a number with at most that many digits.
func value(word []byte, digits int, base rune) (n rune, ok bool) {
	if len(word) > digits {
		return 0, false
	}
	for _, c := range word {
		d := digit(c)
		if d < 0 || d >= base {
			return 0, false
		}
		n = n*base + d
	}
	return n, true
}

func hexadecimal(word []byte) bool {
	for _, c := range word {
		if digit(c) < 0 {
			return false
		}
	}
	return true
}

var isWord = func() (table [256]bool) {
	for c := range 256 {
		table[c] = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80
	}
	return table
}()
