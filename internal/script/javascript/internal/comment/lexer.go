package comment

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind says what a token is.
type kind uint8

const (
	end kind = iota
	word
	number
	text     // a string between quotes
	template // one without a ${ in it, or a part of one with it
	pattern  // a regular expression
	mark     // punctuation: one character, or => or ...
)

// A token is a part of a source.
type token struct {
	kind  kind
	text  string // as written
	at    int    // byte in the source
	depth int    // how many brackets are open before it, or for a closing one, besides its own
	lines bool   // whether a line ended before it
	doc   string // the last comment before it that begins with /**
}

// is reports whether a token is this punctuation or this word.
func (t token) is(what string) bool {
	return (t.kind == mark || t.kind == word) && t.text == what
}

// A lexer splits JavaScript or TypeScript into tokens. It takes any bytes: what is not valid becomes punctuation, and is esbuild's to
// refuse.
type lexer struct {
	src     string
	at      int
	open    []bracket
	last    token
	second  token // the one before the last
	deepest int
	// condition says whether the last bracket that was closed belonged to a condition.
	condition bool
}

// A bracket is one that is open: ( [ { or $ for a template's. Conditions are what if, while, for and with have in parentheses, after which
// a slash begins a regular expression.
type bracket struct {
	char      byte
	condition bool
}

// tokens returns all tokens of a source, the last of kind end.
func tokens(src string) (all []token) {
	l := lexer{src: src, last: token{kind: mark}}
	for {
		t := l.next()
		all = append(all, t)
		if t.kind == end {
			return all
		}
	}
}

func (l *lexer) next() token {
	t := token{kind: end}
	l.space(&t)
	begin := l.at
	t.at, t.depth = begin, len(l.open)
	if l.at >= len(l.src) {
		return t
	}
	c := l.src[l.at]
	switch {
	case isWord(l.src[l.at:]) || c == '#':
		_, size := utf8.DecodeRuneInString(l.src[l.at:])
		for l.at += size; l.at < len(l.src) && (isWord(l.src[l.at:]) || isDigit(l.src[l.at])); {
			_, size = utf8.DecodeRuneInString(l.src[l.at:])
			l.at += size
		}
		t.kind = word
	case isDigit(c) || c == '.' && l.at+1 < len(l.src) && isDigit(l.src[l.at+1]):
		for l.at++; l.at < len(l.src) && (isDigit(l.src[l.at]) || isWord(l.src[l.at:]) || l.src[l.at] == '.' ||
			strings.IndexByte("+-", l.src[l.at]) >= 0 && strings.IndexByte("eE", l.src[l.at-1]) >= 0 && !strings.HasPrefix(l.src[begin:], "0x")); l.at++ {
		}
		t.kind = number
	case c == '"' || c == '\'':
		t.kind = l.quoted(c)
	case c == '`':
		l.at++
		t.kind = template
		l.template()
	case c == '/' && l.beginsPattern() && l.pattern():
		t.kind = pattern
	default:
		t.kind = l.mark()
		if strings.IndexByte(")]}", c) >= 0 {
			t.depth = len(l.open)
		}
	}
	t.text = l.src[begin:l.at]
	l.second, l.last = l.last, t
	return t
}

// space goes over white space and comments, and notes what the next token has of them.
func (l *lexer) space(next *token) {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch {
		case rest[0] == '\n' || rest[0] == '\r':
			next.lines = true
			l.at++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\v' || rest[0] == '\f':
			l.at++
		case strings.HasPrefix(rest, "//") || l.at == 0 && strings.HasPrefix(rest, "#!"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				l.at += n
			} else {
				l.at = len(l.src)
			}
		case strings.HasPrefix(rest, "/*"):
			begin := l.at
			if n := strings.Index(rest[2:], "*/"); n >= 0 {
				l.at += n + 4
			} else {
				l.at = len(l.src)
			}
			whole := l.src[begin:l.at]
			if strings.HasPrefix(whole, "/**") && len(whole) > len("/**/") {
				next.doc = whole
			}
		default:
			r, size := utf8.DecodeRuneInString(rest)
			if r < utf8.RuneSelf || !unicode.IsSpace(r) && r != '\ufeff' {
				return
			}
			l.at += size
		}
	}
}

// quoted reads a string. One that does not end on its line is not a string.
func (l *lexer) quoted(quote byte) kind {
	for i := l.at + 1; i < len(l.src) && l.src[i] != '\n'; i++ {
		switch l.src[i] {
		case '\\':
			i++
		case quote:
			l.at = i + 1
			return text
		}
	}
	l.at++
	return mark
}

// template reads a template from behind a ` or a } to the next ` or ${.
func (l *lexer) template() {
	for ; l.at < len(l.src); l.at++ {
		switch {
		case l.src[l.at] == '\\':
			l.at++
		case l.src[l.at] == '`':
			l.at++
			return
		case strings.HasPrefix(l.src[l.at:], "${"):
			l.at += 2
			l.push(bracket{char: '$'})
			return
		}
	}
	l.at = len(l.src)
}

// beginsPattern reports whether a slash begins a regular expression here, and is not a division.
func (l *lexer) beginsPattern() bool {
	switch l.last.kind {
	case number, text, pattern:
		return false
	case template:
		return strings.HasSuffix(l.last.text, "${")
	case word:
		switch l.last.text {
		case "return", "typeof", "instanceof", "in", "of", "new", "delete", "void", "throw", "case", "do", "else", "await", "yield":
			return true
		}
		return false
	}
	return !l.last.is("]") && !l.last.is("}") && (!l.last.is(")") || l.condition)
}

// pattern reads a regular expression, if one ends on this line.
func (l *lexer) pattern() bool {
	class := false
	for i := l.at + 1; i < len(l.src) && l.src[i] != '\n'; i++ {
		switch c := l.src[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			for i++; i < len(l.src) && isWord(l.src[i:]); i++ {
			}
			l.at = i
			return true
		}
	}
	return false
}

// mark reads punctuation, and counts brackets.
func (l *lexer) mark() kind {
	c := l.src[l.at]
	if strings.HasPrefix(l.src[l.at:], "=>") || strings.HasPrefix(l.src[l.at:], "...") {
		l.at += len("=>")
		if c == '.' {
			l.at++
		}
		return mark
	}
	_, size := utf8.DecodeRuneInString(l.src[l.at:])
	l.at += size
	switch c {
	case '(', '[', '{':
		condition := c == '(' && l.last.kind == word && (l.last.text == "if" || l.last.text == "while" || l.last.text == "for" || l.last.text == "with" || l.last.text == "await" && l.second.is("for"))
		l.push(bracket{c, condition})
	case ')', ']', '}':
		if len(l.open) == 0 {
			return mark
		}
		closed := l.open[len(l.open)-1]
		l.open = l.open[:len(l.open)-1]
		if closed.char == '$' {
			l.template()
			return template
		}
		l.condition = closed.condition
	}
	return mark
}

func (l *lexer) push(b bracket) {
	l.open = append(l.open, b)
	l.deepest = max(l.deepest, len(l.open))
}

func isWord(s string) bool {
	c := s[0]
	if c < utf8.RuneSelf {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
	}
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
