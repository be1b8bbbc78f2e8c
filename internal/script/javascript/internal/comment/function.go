package comment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A parameter is what a comment or the code says of a parameter, or of a member of one.
type parameter struct {
	name        string
	schema      *schema // nil where nothing says a type
	description string
	optional    bool
	fallback    json.RawMessage // the default, if there is one that is a literal
	apart       bool            // the code takes it apart, and has no name for it
	members     []parameter     // in a comment, names that go on, such as options.size; in the code, the names that it is taken apart into
}

func named(all []parameter, name string) (parameter, bool) {
	i := slices.IndexFunc(all, func(p parameter) bool { return p.name == name })
	if i < 0 {
		return parameter{}, false
	}
	return all[i], true
}

// describe adds to a comment what a function takes and returns.
func (f *script) describe(c *Comment, fn *function, said comment) error {
	if fn.wrong != "" {
		return errors.New(fn.wrong)
	}
	r := &types{reader: reader{f.tokens, fn.params}, script: f, closed: true}
	params, err := r.parameters()
	if err = cmp.Or(err, said.err); err != nil {
		return err
	}
	if fn.tool || len(params) == 1 && params[0].apart {
		c.Parameters, err = r.oneObject(append(params, parameter{})[0], said.params)
	} else {
		c.Parameters, c.Order, err = r.each(params, said.params)
	}
	if c.Result = said.returns; err == nil && c.Result == nil {
		c.Result = r.result()
	}
	if c.Result != nil && c.Result.is("null") {
		c.Result = nil // nothing
	} else if c.Result != nil {
		c.Result.describe(said.returned)
	}
	return err
}

// parameters reads the parameters of a function: (a: string, b = 1), or a alone before =>. At the beginning of a file there are none.
func (r *types) parameters() (all []parameter, err error) {
	if r.at == 0 || !r.take("(") {
		if r.at > 0 && r.peek().kind == word {
			all = []parameter{{name: r.next().text}}
		}
		return all, nil
	}
	for !r.take(")") {
		var p parameter
		switch t := r.peek(); {
		case t.is("..."):
			return nil, fmt.Errorf("the parameter ...%s: a tool can't take any number of arguments: take a list", r.tokens[r.at+1].text)
		case t.is("{"):
			p.apart, p.members = true, r.pattern()
		case t.is("["):
			p.apart = true
			r.brackets()
		case t.kind == word:
			p.name = r.next().text
		default:
			return nil, r.misread()
		}
		p.optional = r.take("?")
		if r.take(":") {
			var maybe bool
			if p.schema, maybe, err = r.union(); err != nil {
				return nil, fmt.Errorf("the parameter %s: %w", cmp.Or(p.name, "{ … }"), err)
			}
			p.optional = p.optional || maybe
		}
		r.fallback(&p, ")")
		if !r.take(",") && !r.peek().is(")") {
			return nil, fmt.Errorf("the parameter %s: %w", cmp.Or(p.name, "{ … }"), r.misread())
		}
		if len(all) == maxNames {
			return nil, fmt.Errorf("a function has more than %d parameters", maxNames)
		}
		if p.name != "this" {
			all = append(all, p)
		}
	}
	return all, nil
}

// fallback reads a default, if there is one, up to a comma or what.
func (r *types) fallback(p *parameter, what string) {
	if r.take("=") {
		p.optional = true
		p.fallback, _ = literal(r.until(what)) // what the code computes is its own business
	}
}

// pattern reads the names in a parameter that is taken apart: { name, style = "short", size: other }.
func (r *types) pattern() (out []parameter) {
	r.next()
	for !r.take("}") && r.peek().kind != end {
		p := parameter{name: r.next().text}
		r.until("=")
		r.fallback(&p, "}")
		if r.take(","); len(out) < maxNames {
			out = append(out, p)
		}
	}
	return out
}

// each returns the schema of parameters that are taken one by one, and their order.
func (r *types) each(params, said []parameter) (_ *schema, order []string, err error) {
	for i, p := range params {
		if p.apart {
			return nil, nil, errors.New("a parameter that is taken apart has to be the only one: take all arguments as one object, or each by its name")
		}
		s, _ := named(said, p.name)
		p.schema, p.description, p.members, p.optional = cmp.Or(s.schema, p.schema), s.description, s.members, s.optional || p.optional
		if s.fallback != nil {
			p.fallback = s.fallback
		}
		params[i], order = p, append(order, p.name)
	}
	for _, s := range said {
		if !slices.Contains(order, s.name) {
			return nil, nil, fmt.Errorf("@param %s: the function has no such parameter: it has %s", s.name, cmp.Or(strings.Join(order, ", "), "none"))
		}
	}
	out, err := r.objectOf(params)
	return out, order, err
}

// objectOf returns the schema of an object with these members.
func (r *types) objectOf(all []parameter) (*schema, error) {
	out := r.object()
	for _, p := range all {
		switch {
		case len(p.members) > 0 && (p.schema == nil || p.schema.isPlain()):
			var err error
			if p.schema, err = r.objectOf(p.members); err != nil {
				return nil, err
			}
		case p.schema != nil:
			p.schema.describeMembers(p.members)
		case p.fallback == nil:
			return nil, fmt.Errorf("the parameter %s has no type: write @param {string} %s", p.name, p.name)
		default:
			p.schema = kindOf(p.fallback)
		}
		p.schema.describe(p.description)
		p.schema.Default = p.fallback
		if err := out.add(p.name, p.schema, p.optional); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// describeMembers adds to members of an object what a comment says of them.
func (s *schema) describeMembers(said []parameter) {
	for _, one := range s.Properties {
		p, _ := named(said, one.name)
		one.schema.describe(p.description)
	}
}

// kindOf returns the type of a default, where nothing else says what a parameter takes.
func kindOf(value json.RawMessage) *schema {
	kind := map[byte]string{'"': "string", 't': "boolean", 'f': "boolean", '[': "array", '{': "object"}[value[0]]
	if value[0] == '-' || isDigit(value[0]) {
		kind = "number"
	}
	if kind == "" {
		return &schema{}
	}
	return &schema{Type: kinds{kind}}
}

// oneObject returns the schema of arguments that are one object, or nil if nothing describes it. The object is p of the code; a comment
// says something of it as a whole (@param {…} args, and perhaps @param args.name), or of each member.
func (r *types) oneObject(p parameter, said []parameter) (out *schema, err error) {
	if len(said) == 1 {
		whole := said[0]
		_, isMember := named(p.members, whole.name)
		if p.apart && !isMember || !p.apart && (whole.name == p.name || len(whole.members) > 0 || whole.schema != nil && whole.schema.Properties != nil) {
			p.schema, said = cmp.Or(p.schema, whole.schema), whole.members
		}
	}
	switch {
	case p.schema == nil && len(said) == 0:
		return nil, nil
	case p.schema != nil && !p.schema.is("object"):
		return nil, errors.New("the arguments of a tool are one object: write its members, as { name: string }")
	case p.schema != nil && (!p.schema.isPlain() || len(said) == 0):
		out = p.schema
		out.describeMembers(said)
	default:
		for i, s := range said {
			if part, _ := named(p.members, s.name); s.fallback == nil {
				said[i].fallback, said[i].optional = part.fallback, s.optional || part.optional
			}
		}
		if out, err = r.objectOf(said); err != nil {
			return nil, err
		}
	}
	for _, one := range out.Properties {
		if part, _ := named(p.members, one.name); part.optional {
			out.Required = slices.DeleteFunc(out.Required, func(name string) bool { return name == one.name })
			if one.schema.Default == nil {
				one.schema.Default = part.fallback
			}
		}
	}
	return out, nil
}

// result reads what a function returns from behind its parameters, or returns nil. Annotations are for the compiler as well, so one that is not
// read is not a mistake.
func (r *types) result() *schema {
	if r.closed = false; !r.take(":") {
		return nil
	}
	out, _, err := r.union()
	if t := r.peek(); err != nil || !t.is("{") && !t.is("=>") && !t.is(";") && !t.lines && t.kind != end {
		return nil
	}
	return out
}
