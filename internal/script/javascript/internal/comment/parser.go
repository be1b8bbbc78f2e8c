package comment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A parser goes over tokens, the last of which is of kind end. Its first error takes it to the end, where nothing more is read.
type parser struct {
	script *script
	tokens []token
	at     int
	closed bool // whether objects refuse members that they don't name: arguments do, results don't
	depth  int
	within []string // the named types that it is in
	err    error
}

func (p *parser) peek() token { return p.tokens[p.at] }

// next goes on, but not beyond the end, and returns what it left.
func (p *parser) next() token {
	t := p.peek()
	if t.kind != end {
		p.at++
	}
	return t
}

// take goes on if the next token is what.
func (p *parser) take(what string) bool {
	if p.peek().is(what) {
		p.at++
		return true
	}
	return false
}

// need goes over what has to come next.
func (p *parser) need(what string) {
	if !p.take(what) {
		p.refuse()
	}
}

// refuse fails because of the next token.
func (p *parser) refuse() {
	p.fail("%.40s is not read here: %s", cmp.Or(p.peek().text, "the end of the type"), instead)
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.at = len(p.tokens) - 1
}

// until goes to a comma, or to what, or out of these brackets, and returns what it left.
func (p *parser) until(what string) []token {
	begin, depth := p.at, p.peek().depth
	for t := p.peek(); t.kind != end && (t.depth > depth || t.depth == depth && !t.is(",") && !t.is(what)); t = p.peek() {
		p.at++
	}
	return p.tokens[begin:p.at]
}

// brackets goes over the brackets that begin here, and what is in them. It reports whether they are closed.
func (p *parser) brackets() bool {
	for depth := p.next().depth; p.peek().kind != end && p.peek().depth > depth; {
		p.at++
	}
	return p.next().kind == mark
}

// union reads "A | B".
func (p *parser) union() *schema {
	if p.depth++; p.depth > maxDepth {
		p.fail("types are nested too deep: %s", instead)
	}
	defer func() { p.depth-- }()
	p.take("|")
	var all []*schema
	optional := false
	for more := true; more; more = p.take("|") {
		if p.take("undefined") || p.take("void") {
			optional = true
			continue
		}
		one := p.array()
		optional = optional || one.optional
		all = append(all, one)
	}
	out := union(all)
	out.optional = optional
	return out
}

// array reads "A[]".
func (p *parser) array() *schema {
	p.take("readonly")
	one := p.primary()
	for depth := p.depth; p.peek().is("[") && !p.peek().lines; depth++ {
		if p.next(); depth > maxDepth {
			p.fail("types are nested too deep: %s", instead)
		}
		p.need("]")
		one = &schema{Type: kinds{"array"}, Items: one}
	}
	return one
}

// primary reads a type without what follows it.
func (p *parser) primary() *schema {
	begin := p.at
	switch t := p.next(); {
	case t.is("("):
		one := p.union()
		p.need(")")
		return one
	case t.is("{"):
		return p.objectOf(p.members("}"))
	case t.is("*") || t.is("any") || t.is("unknown"):
		return &schema{}
	case t.kind == text || t.kind == number || t.is("-") || t.is("true") || t.is("false"):
		if t.is("-") {
			p.next()
		}
		if value := literal(p.tokens[begin:p.at]); value != nil {
			return constant(value)
		}
	case t.kind == word:
		return p.named(t.text)
	}
	p.at = begin
	p.refuse()
	return &schema{}
}

// named reads what a word stands for.
func (p *parser) named(name string) *schema {
	if d := p.script.types[name]; d != nil {
		return p.declared(name, d)
	}
	if !p.take("<") {
		if kind, ok := kindsByName[name]; ok {
			return &schema{Type: kinds{kind}}
		}
	} else if name == "Array" || name == "ReadonlyArray" || name == "Promise" || name == "Record" {
		if name == "Record" {
			p.need("string")
			p.need(",")
		}
		one := p.union()
		p.need(">")
		switch name {
		case "Promise":
			return one
		case "Record":
			return &schema{Type: kinds{"object"}, Others: one}
		}
		return &schema{Type: kinds{"array"}, Items: one}
	}
	p.fail("neither JSON nor this file has a type %.40s: %s", name, instead)
	return &schema{}
}

// declared reads a type of the file.
func (p *parser) declared(name string, d *declaration) *schema {
	f, wrong := p.script, d.wrong
	if slices.Contains(p.within, name) {
		wrong = "holds itself"
	} else if f.work += f.tokens[d.end].at - f.tokens[d.begin].at + len(d.doc); f.work > maxWork {
		wrong = "is too large, with all its uses"
	}
	if wrong != "" {
		p.fail("the type %.40s is not read, since it %s: %s", name, wrong, instead)
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
	out.describe(description(d.doc))
	return out
}

// members reads the members of an object, or the parameters of a function, from behind the bracket to the closing one.
func (p *parser) members(closing string) (all []member) {
	for !p.take(closing) && p.err == nil {
		m := member{description: description(p.peek().doc)}
		if following := p.tokens[min(p.at+1, len(p.tokens)-1)].kind; following == word || following == text {
			p.take("readonly")
		}
		t := p.peek()
		named := t.kind == word
		if m.name = t.text; t.kind == text {
			m.name, named = unquoted(t.text)
		}
		if named {
			p.next()
		} else if closing == ")" && t.is("{") {
			m.name, m.taken = "{ … }", p.pattern()
		} else {
			p.refuse()
		}
		m.optional = p.take("?")
		if p.take(":") {
			m.schema = p.union()
		}
		if p.fallback(&m, closing); !p.take(",") && !p.take(";") && !p.peek().is(closing) && !p.peek().lines {
			p.refuse()
		}
		if all = append(all, m); len(all) > maxNames {
			p.fail("there are more than %d names", maxNames)
		}
		if p.err != nil && (named || m.taken != nil) {
			p.err = fmt.Errorf("%.40s: %w", m.name, p.err)
		}
	}
	return all
}

// fallback reads a default, if there is one, up to a comma or what. What the code computes is its own business.
func (p *parser) fallback(m *member, what string) {
	if p.take("=") {
		m.optional, m.fallback = true, literal(p.until(what))
	}
}

// pattern reads the names in a parameter that is taken apart: { name, style = "short", size: other }.
func (p *parser) pattern() []member {
	all := []member{}
	for p.next(); !p.take("}") && p.peek().kind != end; p.take(",") {
		m := member{name: p.next().text}
		if p.take(":") {
			p.until("=")
		}
		if p.fallback(&m, "}"); len(all) < maxNames {
			all = append(all, m)
		}
	}
	return all
}

// literal returns the JSON of tokens that are JSON but for quotes and trailing commas, or nil: a default, the arguments of an example.
func literal(written []token) json.RawMessage {
	var out strings.Builder
	for i, t := range written {
		following := token{}
		if i+1 < len(written) {
			following = written[i+1]
		}
		switch {
		case t.kind == text:
			value, ok := unquoted(t.text)
			quoted, err := json.Marshal(value)
			if !ok || err != nil {
				return nil
			}
			out.Write(quoted)
		case t.kind == word && following.is(":"):
			out.WriteString(`"` + t.text + `"`)
		case !t.is(",") || !following.is("]") && !following.is("}"):
			out.WriteString(t.text)
		}
	}
	if !json.Valid([]byte(out.String())) {
		return nil
	}
	return json.RawMessage(out.String())
}

// unquoted returns what a text says, if its escapes are those that JSON has, too.
func unquoted(written string) (value string, ok bool) {
	inner := written[1 : len(written)-1]
	if written[0] == '\'' {
		inner = strings.ReplaceAll(strings.ReplaceAll(inner, `\'`, `'`), `"`, `\"`)
	}
	err := json.Unmarshal([]byte(`"`+inner+`"`), &value)
	return value, err == nil
}
