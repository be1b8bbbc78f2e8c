package comment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// describe adds to a comment what a function takes and returns.
func (f *script) describe(c *Comment, fn *function, said doc) error {
	if fn.wrong != "" {
		return errors.New(fn.wrong)
	}
	p := &parser{script: f, tokens: f.tokens, at: fn.params, closed: true}
	var params []member
	if fn.params > 0 && p.take("(") {
		params = p.members(")")
	} else if fn.params > 0 { // a single parameter without parentheses, before =>
		params = []member{{name: p.next().Text}}
	}
	if p.err != nil {
		return fmt.Errorf("the parameter %w", p.err)
	}
	if said.err != nil {
		return said.err
	}
	if c.Result = said.returns; c.Result == nil && fn.params > 0 && p.take(":") {
		c.Result = f.result(p.at)
	}
	if c.Result != nil && c.Result.is("null") {
		c.Result = nil // nothing
	} else if c.Result != nil {
		c.Result.Description = cmp.Or(said.returned, c.Result.Description)
	}
	if fn.tool || len(params) == 1 && params[0].taken != nil {
		c.Parameters = p.oneObject(append(params, member{})[0], said.params)
	} else {
		c.Parameters, c.Order = p.each(params, said.params)
	}
	if p.err != nil {
		c.Parameters = nil
	}
	return p.err
}

// result returns the schema of a result's annotation, or nil. An unsupported annotation is not a mistake, since the compiler may understand it.
func (f *script) result(at int) *schema {
	p := &parser{script: f, tokens: f.tokens, at: at}
	out := p.union()
	if t := p.peek(); p.err != nil || !(t.Is("{") || t.Is("=>") || t.Is(";") || t.Lines || p.atEnd()) {
		return nil
	}
	return out
}

// each returns the schema of separate parameters, and their order.
func (p *parser) each(params, said []member) (_ *schema, order []string) {
	for _, m := range params {
		if m.taken != nil {
			p.fail("a destructured parameter must be the only one: take all arguments as one object, or each by its name")
		}
		order = append(order, m.name)
	}
	p.merge(params, said, "the function has no such parameter")
	return p.objectOf(params), order
}

// oneObject returns the schema of arguments that are one object, or nil if nothing describes it. m is the object in the code. A comment describes
// the object as a whole (@param {…} args, and perhaps @param args.name), or each member.
func (p *parser) oneObject(m member, said []member) *schema {
	if len(said) == 1 {
		whole := said[0]
		isMember := slices.ContainsFunc(m.taken, func(o member) bool { return o.name == whole.name })
		if !isMember && (m.taken != nil || whole.name == m.name || len(whole.members) > 0 || whole.schema != nil && whole.schema.Properties != nil) {
			m.schema, said = cmp.Or(m.schema, whole.schema), whole.members
		}
	}
	if m.schema == nil && len(said) == 0 {
		return nil
	}
	if m.schema != nil && !m.schema.is("object") {
		p.fail("the arguments of a tool are one object: write its members, as { name: string }")
	}
	return p.refined(m.schema, said, m.taken)
}

// refined adds to the schema of an object what a comment and the code say of its members. An object without members gets those of the comment.
func (p *parser) refined(s *schema, said, code []member) *schema {
	all := slices.Clone(said)
	if s != nil && s.Properties != nil {
		all = s.Properties
	} else if s != nil && len(said) == 0 {
		return s
	} else if s != nil && !s.is("object") {
		p.fail("@param %.40s names a member, but the function does not take one object: %s", said[0].name, instead)
	}
	p.merge(all, code, "")
	p.merge(all, said, "the type has no such member")
	out := p.objectOf(all)
	if s != nil {
		out.Description = s.Description
	}
	return out
}

// merge adds what said says of members to the same members of all. If all lacks a member of said, merge fails with the message unknown. If unknown
// is empty, merge skips that member.
func (p *parser) merge(all, said []member, unknown string) {
	for _, s := range said {
		i := slices.IndexFunc(all, func(m member) bool { return m.name == s.name })
		if i < 0 && unknown != "" {
			p.fail("@param %.40s: %s: it has %.200s", s.name, unknown, cmp.Or(names(all), "none"))
		}
		if i < 0 {
			continue
		}
		m := &all[i]
		if m.schema == nil || s.schema != nil && (!s.schema.is("object") || !s.schema.isPlain()) { // {Object} adds nothing to an annotation
			m.schema = s.schema
		}
		if s.fallback != nil {
			m.fallback = s.fallback
		}
		m.description, m.optional, m.members = cmp.Or(s.description, m.description), m.optional || s.optional, s.members
	}
}

func names(all []member) string {
	var out []string
	for _, m := range all {
		out = append(out, m.name)
	}
	return strings.Join(out, ", ")
}

// objectOf returns the schema of an object with these members.
func (p *parser) objectOf(all []member) *schema {
	out := &schema{Type: kinds{"object"}, Properties: members{}}
	if p.closed {
		out.Others = new(bool)
	}
	seen := map[string]bool{}
	for _, m := range all {
		if len(m.members) > 0 {
			m.schema, m.members = p.refined(m.schema, m.members, nil), nil
		} else if m.schema == nil && m.fallback != nil {
			m.schema = valueOf(m.fallback)
		}
		switch {
		case m.schema == nil:
			p.fail("the parameter %.40s has no type: write @param {string} %.40s", m.name, m.name)
		case seen[m.name]:
			p.fail("%.40s is named twice: name it once", m.name)
		}
		if p.err != nil {
			break
		}
		seen[m.name] = true
		m.schema.Description = cmp.Or(m.description, m.schema.Description)
		m.schema.Default = m.fallback
		if out.Properties = append(out.Properties, m); !m.optional {
			out.Required = append(out.Required, m.name)
		}
	}
	return out
}
