package comment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/script/javascript/internal/token"
)

// A parser reads tokens, the last of which is of kind End. After its first error it skips the rest.
type parser struct {
	script *script
	tokens []token.Token
	at     int
	closed bool // whether objects refuse members that they don't name: arguments do, results don't
	depth  int
	within []string // the named types that are being read
	err    error
}

func (p *parser) peek() token.Token { return p.tokens[p.at] }

// following returns the token after the next one.
func (p *parser) following() token.Token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

// atEnd reports whether nothing is left.
func (p *parser) atEnd() bool { return p.peek().Kind == token.End }

// next returns the current token and advances, but not beyond the end.
func (p *parser) next() token.Token {
	t := p.peek()
	if !p.atEnd() {
		p.at++
	}
	return t
}

// take advances if the text of the current token equals what, and reports whether it did.
func (p *parser) take(what string) bool {
	if p.peek().Is(what) {
		p.at++
		return true
	}
	return false
}

// need skips the current token if its text equals what, and fails otherwise.
func (p *parser) need(what string) {
	if !p.take(what) {
		p.refuse()
	}
}

// refuse fails because of the current token.
func (p *parser) refuse() {
	p.fail("%.40s is not supported here: %s", cmp.Or(p.peek().Text, "the end of the type"), instead)
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.at = len(p.tokens) - 1
}

// deeper counts a level of nested types.
func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth {
		p.fail("types are nested too deep: %s", instead)
	}
}

// until advances to a comma, to a token whose text equals what, or out of these brackets. It returns the tokens that it skipped.
func (p *parser) until(what string) []token.Token {
	begin, depth := p.at, p.peek().Depth
	for t := p.peek(); !p.atEnd() && (t.Depth > depth || t.Depth == depth && !t.Is(",") && !t.Is(what)); t = p.peek() {
		p.at++
	}
	return p.tokens[begin:p.at]
}

// brackets skips the brackets that begin here, and their content. It reports whether they are closed.
func (p *parser) brackets() bool {
	for depth := p.next().Depth; !p.atEnd() && p.peek().Depth > depth; {
		p.at++
	}
	return p.next().Kind == token.Mark
}

// union reads "A | B".
func (p *parser) union() *schema {
	p.deeper()
	defer func(depth int) { p.depth = depth }(p.depth - 1)
	p.take("|")
	all := []*schema{p.array()}
	for p.take("|") {
		all = append(all, p.array())
	}
	return union(all)
}

// array reads "A[]".
func (p *parser) array() *schema {
	p.take("readonly")
	one := p.primary()
	for p.peek().Is("[") && !p.peek().Lines {
		p.next()
		p.need("]")
		p.deeper()
		one = &schema{Type: kinds{"array"}, Items: one}
	}
	return one
}

// primary reads a type without what follows it.
func (p *parser) primary() *schema {
	begin := p.at
	switch t := p.next(); {
	case t.Is("("):
		one := p.union()
		p.need(")")
		return one
	case t.Is("{"):
		return p.objectOf(p.members("}"))
	case t.Is("*") || t.Is("any") || t.Is("unknown"):
		return &schema{}
	case t.Kind == token.Text || t.Kind == token.Number || t.Is("-") || t.Is("true") || t.Is("false"):
		if t.Is("-") {
			p.next()
		}
		if value := literal(p.tokens[begin:p.at]); value != nil {
			return constant(value)
		}
	case t.Kind == token.Word:
		return p.named(t.Text)
	}
	p.at = begin
	p.refuse()
	return &schema{}
}

// named reads the type that a word stands for.
func (p *parser) named(name string) *schema {
	d := p.script.types[name]
	kind, known := kindsByName[name]
	switch {
	case d != nil:
		return p.declared(name, d)
	case (name == "undefined" || name == "void") && p.closed:
		p.fail("JSON has no %s: write name?: string, or [name] in a comment, for what may be left out", name)
	case known && !p.peek().Is("<"):
		return &schema{Type: kinds{kind}}
	case (name == "Array" || name == "Promise") && p.take("<"):
		one := p.union()
		if p.need(">"); name == "Array" {
			one = &schema{Type: kinds{"array"}, Items: one}
		}
		return one
	}
	p.fail("neither JSON nor this file has a type %.40s: %s", name, instead)
	return &schema{}
}

// declared reads a type that the file declares.
func (p *parser) declared(name string, d *declaration) *schema {
	f, wrong := p.script, d.wrong
	if slices.Contains(p.within, name) {
		wrong = "holds itself"
	} else if f.work += f.tokens[d.end].At - f.tokens[d.begin].At + len(d.doc); f.work > maxWork {
		wrong = "is too large, with all its uses"
	}
	if wrong != "" {
		p.fail("the type %.40s is not supported, since it %s: %s", name, wrong, instead)
		return &schema{}
	}
	inner := &parser{script: f, tokens: f.tokens, at: d.begin, closed: p.closed, depth: p.depth, within: append(slices.Clip(p.within), name)}
	out := inner.union()
	if inner.at != d.end {
		inner.refuse()
	}
	if inner.err != nil {
		p.fail("the type %.40s: %w", name, inner.err)
	}
	out.Description = cmp.Or(description(d.doc), out.Description)
	return out
}

// members reads the members of an object, or the parameters of a function, from after the opening bracket to the closing one.
func (p *parser) members(closing string) (all []member) {
	for !p.take(closing) && p.err == nil {
		m := member{description: description(p.peek().Doc)}
		if p.following().Kind == token.Word {
			p.take("readonly")
		}
		switch t := p.peek(); {
		case t.Kind == token.Word && !t.Is("this"):
			m.name = p.next().Text
		case t.Is("{") && closing == ")":
			m.name, m.taken = "{ … }", p.pattern()
		default:
			p.refuse()
			return nil
		}
		m.optional = p.take("?")
		if p.take(":") {
			m.schema = p.union()
		}
		if p.fallback(&m, closing); !p.take(",") && !p.take(";") && !p.peek().Is(closing) && !p.peek().Lines {
			p.refuse()
		}
		if all = append(all, m); len(all) > maxNames {
			p.fail("there are more than %d names", maxNames)
		}
		if p.err != nil {
			p.err = fmt.Errorf("%.40s: %w", m.name, p.err)
		}
	}
	return all
}

// fallback reads a default, if there is one, up to a comma or to the token what. A default that is computed is skipped.
func (p *parser) fallback(m *member, what string) {
	if p.take("=") {
		m.optional, m.fallback = true, literal(p.until(what))
	}
}

// pattern reads the names in a parameter that is taken apart: { name, style = "short", size: other }.
func (p *parser) pattern() []member {
	all := []member{}
	for p.next(); !p.take("}") && !p.atEnd(); p.take(",") {
		m := member{name: p.next().Text}
		if p.take(":") {
			p.until("=")
		}
		if p.fallback(&m, "}"); len(all) < maxNames {
			all = append(all, m)
		}
	}
	return all
}

// literal returns tokens as JSON if they are JSON, whatever the quotes of strings, or nil.
func literal(written []token.Token) json.RawMessage {
	var out []byte
	for _, t := range written {
		text := t.Text
		if t.Kind == token.Text && text[0] == '\'' {
			text = `"` + strings.ReplaceAll(strings.ReplaceAll(text[1:len(text)-1], `\'`, `'`), `"`, `\"`) + `"`
		}
		out = append(out, text...)
	}
	if !json.Valid(out) {
		return nil
	}
	return out
}
