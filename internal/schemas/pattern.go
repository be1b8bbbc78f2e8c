package schemas

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	// maxPattern is the length of the longest pattern in bytes, and of the longest text that format "regex" allows.
	maxPattern = 4 << 10
	// maxPatternSize bounds the instructions of one pattern, and maxInstructions those of all patterns in a schema: the time of a match is
	// proportional to them and to the text.
	maxPatternSize  = 10_000
	maxInstructions = 100_000
	// maxParsing bounds the parsing of one pattern, in units of run.work: 0.2 s. Each perInstruction units of parsing count as one instruction, which
	// bounds the total.
	maxParsing     = 10_000_000
	perInstruction = 200
)

// A pattern is a regular expression of a schema.
type pattern struct {
	expression *regexp.Regexp
	text       string // as written
	size       int    // in instructions
}

// newPattern compiles a pattern. Schemas use ECMA-262's syntax. What Go's linear-time engine does not support is refused.
func newPattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes; at most %d are allowed: shorten it", len(text), maxPattern)
	}
	expression := fromECMA(text)
	if parsing(expression) > maxParsing {
		return nil, fmt.Errorf("pattern %s is too large: use fewer Unicode classes, and fewer case-insensitive ranges", quoted(text))
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		var wrong *syntax.Error
		reason := err.Error()
		if errors.As(err, &wrong) {
			reason = fmt.Sprintf("%s at %s", wrong.Code, quoted(wrong.Expr))
		}
		return nil, fmt.Errorf("pattern %s can't be used: %s: patterns are matched in linear time, so write it in RE2's syntax, without look-around and back-references", quoted(text), reason)
	}
	if n := instructions(parsed); n > maxPatternSize {
		return nil, fmt.Errorf("pattern %s is too large: use smaller repeat counts, or maxLength", quoted(text))
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("pattern %s can't be used: %w", quoted(text), err)
	}
	return &pattern{compiled, text, instructions(parsed)}, nil
}

// instructions estimates the size of a compiled expression before it is compiled.
func instructions(e *syntax.Regexp) int {
	n := 1
	if e.Op == syntax.OpLiteral {
		n = len(e.Rune)
	}
	if e.Op == syntax.OpCharClass {
		n = 1 + len(e.Rune)/16
	}
	for _, sub := range e.Sub {
		n += instructions(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(1, e.Min, e.Max)
	}
	return n
}

// parsing is how much parsing a regular expression takes at most, in units of run.work. Package syntax copies a table for each Unicode
// class, and looks at each character of a range if case is ignored: 7 ms for a range of all characters.
func parsing(expression string) int {
	const each, table, wide = 16, 15_000, 350_000
	n := each*len(expression) + table*(strings.Count(expression, `\p`)+strings.Count(expression, `\P`))
	if strings.Contains(expression, "(?") && strings.Contains(expression, "i") && beyondASCII.MatchString(expression) {
		n += wide * strings.Count(expression, "-")
	}
	return n
}

// beyondASCII matches an expression that may contain a non-ASCII character, directly or as an escape.
var beyondASCII = regexp.MustCompile(`[^\x00-\x7f]|\\[x0-7]`)

// fromECMA rewrites the escapes \uXXXX, \u{X} and \cX, which are different in Go.
func fromECMA(text string) string {
	if !strings.Contains(text, `\u`) && !strings.Contains(text, `\c`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+2 >= len(text) {
			out.WriteByte(text[i])
			continue
		}
		rest := text[i+2:]
		switch {
		case text[i+1] == 'u' && rest[0] == '{' && strings.IndexByte(rest, '}') > 0:
			n := strings.IndexByte(rest, '}')
			out.WriteString(`\x` + rest[:n+1])
			i += 2 + n
		case text[i+1] == 'u' && len(rest) >= 4:
			out.WriteString(`\x{` + rest[:4] + `}`)
			i += 5
		case text[i+1] == 'c' && ('A' <= rest[0] && rest[0] <= 'Z' || 'a' <= rest[0] && rest[0] <= 'z'):
			fmt.Fprintf(&out, `\x%02x`, rest[0]&31)
			i += 2
		default:
			out.WriteString(text[i : i+2])
			i++
		}
	}
	return out.String()
}

// match reports whether the pattern occurs in s.
func (p *pattern) match(s string) bool { return p.expression.MatchString(s) }

// work is the cost of a match with a text of n bytes, in units of run.work: the engine takes up to 10 ns for each byte and instruction.
func (p *pattern) work(n int) int { return 1 + n*p.size/4 }
