// Package token splits JavaScript and TypeScript into tokens, and says how deeply a source is nested. It accepts any bytes, and its time is
// proportional to their number.
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
	Template // a template without a ${ in it, or a part of one with it
	Pattern  // a regular expression
	Mark     // punctuation: one character, or => or ...
)

// A Token is a part of a source.
type Token struct {
	Kind  Kind
	Text  string // as written
	At    int    // byte in the source
	Depth int    // how many brackets are open around it; for a closing one, not counting its own
	Lines bool   // whether a line ended before it
	Doc   string // the last comment before it that begins with /**
}

// Is reports whether a token is this punctuation or this word.
func (t Token) Is(what string) bool {
	return (t.Kind == Mark || t.Kind == Word) && t.Text == what
}

// newlines are the characters that end a line.
const newlines = "\n\r\u2028\u2029"

// A lexer splits JavaScript or TypeScript into tokens. It accepts any bytes: what is not valid becomes punctuation, and esbuild will refuse it.
type lexer struct {
	src    string
	at     int
	open   []bracket
	last   Token
	second Token // the one before the last
	// unclosed maps a quote or a slash to the place up to which it is known not to be closed, so that no part of a line is searched twice.
	unclosed map[byte]int
	// condition says whether the bracket that was closed last belonged to a condition.
	condition bool
}

// A bracket is an open bracket: ( [ { or $ for a template's. Conditions are the parentheses of if, while, for and with, after which a slash begins a
// regular expression.
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

// space skips white space and comments, and records in the next token what it has skipped.
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

// closed skips the string or the regular expression that begins here, if it ends on its line.
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

// template reads a template from after a ` or a } to the next ` or ${.
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

// mark reads punctuation, and keeps track of brackets.
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

// wordAt returns how many bytes at the beginning of source belong to a word, or may continue one.
func wordAt(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !(r >= '0' && r <= '9') && r != '_' && r != '$' })
	if n < 0 {
		return len(s)
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
