// Package token splits JavaScript and TypeScript into tokens, and says how deep a source is nested. It takes any bytes, in time that grows
// with them.
package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind says what a token is.
type Kind uint8

const (
	End Kind = iota
	Word
	Number   // without the sign of an exponent
	Text     // a string between quotes
	Template // one without a ${ in it, or a part of one with it
	Pattern  // a regular expression
	Mark     // punctuation: one character, or => or ...
)

// A Token is a part of a source.
type Token struct {
	Kind  Kind
	Text  string // as written
	At    int    // byte in the source
	Depth int    // how many brackets are open before it, or for a closing one, besides its own
	Lines bool   // whether a line ended before it
	Doc   string // the last comment before it that begins with /**
}

// Is reports whether a token is this punctuation or this word.
func (t Token) Is(what string) bool {
	return (t.Kind == Mark || t.Kind == Word) && t.Text == what
}

// newlines are the characters that end a line.
const newlines = "\n\r\u2028\u2029"

// A lexer splits JavaScript or TypeScript into tokens. It takes any bytes: what is not valid becomes punctuation, and is esbuild's to
// refuse.
type lexer struct {
	src    string
	at     int
	open   []bracket
	last   Token
	second Token // the one before the last
	// unclosed says for a quote or a slash up to where none is closed, so that no part of a line is searched twice.
	unclosed map[byte]int
	// condition says whether the last bracket that was closed belonged to a condition.
	condition bool
}

// A bracket is one that is open: ( [ { or $ for a template's. Conditions are what if, while, for and with have in parentheses, after which
// a slash begins a regular expression.
type bracket struct {
	char      byte
	condition bool
}

func newLexer(src string) *lexer {
	return &lexer{src: src, last: Token{Kind: Mark}, unclosed: map[byte]int{}}
}

// All returns all tokens of a source, the last of kind End.
func All(src string) (all []Token) {
	l := newLexer(src)
	for {
		t := l.next()
		all = append(all, t)
		if t.Kind == End {
			return all
		}
	}
}

func (l *lexer) next() Token {
	t := Token{Lines: l.at == 0}
	l.space(&t)
	t.At, t.Depth = l.at, len(l.open)
	if l.at == len(l.src) {
		return t
	}
	switch c := l.src[l.at]; {
	case isDigit(c) || c == '.' && l.at+1 < len(l.src) && isDigit(l.src[l.at+1]):
		t.Kind = Number
		for l.at++; l.at < len(l.src) && (l.src[l.at] == '.' || wordAt(l.src[l.at:l.at+1]) > 0); l.at++ {
		}
	case c == '#' || wordAt(l.src[l.at:]) > 0:
		t.Kind = Word
		l.at += max(1, wordAt(l.src[l.at:]))
		if c == '#' {
			l.at += wordAt(l.src[l.at:])
		}
	case (c == '"' || c == '\'') && l.closed(c):
		t.Kind = Text
	case c == '/' && l.beginsPattern() && l.closed(c):
		t.Kind = Pattern
		l.at += wordAt(l.src[l.at:])
	case c == '`':
		t.Kind = Template
		l.at++
		l.template()
	default:
		t.Kind = l.mark()
		if strings.IndexByte(")]}", c) >= 0 {
			t.Depth = len(l.open)
		}
	}
	t.Text = l.src[t.At:l.at]
	l.second, l.last = l.last, t
	return t
}

// space goes over white space and comments, and notes what the next token has of them.
func (l *lexer) space(next *Token) {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case strings.ContainsRune(newlines, r):
			next.Lines = true
			l.at += size
		case unicode.IsSpace(r) || r == '\ufeff':
			l.at += size
		case strings.HasPrefix(rest, "//") || l.at == 0 && strings.HasPrefix(rest, "#!") ||
			strings.HasPrefix(rest, "<!--") || next.Lines && strings.HasPrefix(rest, "-->"): // the latter two are comments for browsers and esbuild
			if n := strings.IndexAny(rest, newlines); n >= 0 {
				l.at += n
			} else {
				l.at = len(l.src)
			}
		case strings.HasPrefix(rest, "/*"):
			whole := rest
			if n := strings.Index(rest[2:], "*/"); n >= 0 {
				whole = rest[:n+4]
			}
			l.at += len(whole)
			next.Lines = next.Lines || strings.ContainsAny(whole, newlines)
			if strings.HasPrefix(whole, "/**") && len(whole) > len("/**/") {
				next.Doc = whole
			}
		default:
			return
		}
	}
}

// closed goes behind the text or the regular expression that begins here, if it ends on its line.
func (l *lexer) closed(delimiter byte) bool {
	if l.at < l.unclosed[delimiter] {
		return false
	}
	i, class := l.at+1, false
	for ; i < len(l.src) && l.src[i] != '\n'; i++ {
		switch c := l.src[i]; {
		case c == '\\':
			i++
		case delimiter == '/' && (c == '[' || c == ']'):
			class = c == '['
		case c == delimiter && !class:
			l.at = i + 1
			return true
		}
	}
	l.unclosed[delimiter] = i
	return false
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
			l.open = append(l.open, bracket{char: '$'})
			return
		}
	}
	l.at = len(l.src)
}

// beginsPattern reports whether a slash begins a regular expression here, and is not a division.
func (l *lexer) beginsPattern() bool {
	switch l.last.Kind {
	case Number, Text, Pattern:
		return false
	case Template:
		return strings.HasSuffix(l.last.Text, "${")
	case Word:
		switch l.last.Text {
		case "return", "typeof", "instanceof", "in", "of", "new", "delete", "void", "throw", "case", "do", "else", "await", "yield":
			return true
		}
		return false
	}
	return !l.last.Is("]") && !l.last.Is("}") && (!l.last.Is(")") || l.condition)
}

// mark reads punctuation, and counts brackets.
func (l *lexer) mark() Kind {
	c := l.src[l.at]
	if strings.HasPrefix(l.src[l.at:], "=>") || strings.HasPrefix(l.src[l.at:], "...") {
		l.at += len("=>")
		if c == '.' {
			l.at++
		}
		return Mark
	}
	_, size := utf8.DecodeRuneInString(l.src[l.at:])
	l.at += size
	switch c {
	case '(', '[', '{':
		condition := c == '(' && l.last.Kind == Word && (l.last.Text == "if" || l.last.Text == "while" || l.last.Text == "for" || l.last.Text == "with" || l.last.Text == "await" && l.second.Is("for"))
		l.open = append(l.open, bracket{c, condition})
	case ')', ']', '}':
		if len(l.open) == 0 {
			return Mark
		}
		closed := l.open[len(l.open)-1]
		l.open = l.open[:len(l.open)-1]
		if closed.char == '$' {
			l.template()
			return Template
		}
		l.condition = closed.condition
	}
	return Mark
}

// wordAt returns how many bytes of a word, or of what goes on with one, a source begins with.
func wordAt(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !(r >= '0' && r <= '9') && r != '_' && r != '$' })
	if n < 0 {
		return len(s)
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
