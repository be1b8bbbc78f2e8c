package comment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A declared parameter is one as the code has it.
type declared struct {
	name     string
	pattern  []token // what stands between the brackets of a parameter that is taken apart
	apart    bool
	rest     bool
	optional bool
	written  []token
	fallback []token
}

// parameters returns the schema of a function's arguments, and the order of its parameters where it takes them one by one. The schema is nil where nothing
// says what a tool takes.
func (f *file) parameters(fn *function, said comment) (schema any, order []string, err error) {
	r := &reader{file: f, closed: true}
	if fn.tool || len(fn.params) == 1 && fn.params[0].apart {
		one, err := r.oneObject(fn, said)
		if one == nil || err != nil {
			return nil, nil, err
		}
		whole, err := r.whole(one)
		return whole, nil, err
	}
	var all []parameter
	for _, d := range fn.params {
		switch {
		case d.rest:
			return nil, nil, fmt.Errorf("the parameter ...%s: a tool takes no number of arguments: take a list", d.name)
		case d.apart:
			return nil, nil, errors.New("a parameter that is taken apart has to be the only one: take all arguments as one object, or each by its name")
		}
		p := parameter{name: d.name}
		if i := slices.IndexFunc(said.params, func(s parameter) bool { return s.name == d.name }); i >= 0 {
			p = said.params[i]
		}
		all = append(all, declaredAs(p, d))
		order = append(order, d.name)
	}
	for _, s := range said.params {
		if s.wrong != "" {
			return nil, nil, errors.New(s.wrong)
		}
		if !slices.Contains(order, s.name) {
			return nil, nil, fmt.Errorf("@param %s: the function has no such parameter: it has %s", s.name, cmp.Or(strings.Join(order, ", "), "none"))
		}
	}
	properties, required, err := r.list(all)
	if err != nil {
		return nil, nil, err
	}
	whole, err := r.whole(r.object(properties, required))
	return whole, order, err
}

// declaredAs adds to what a comment says of a parameter what the code does.
func declaredAs(p parameter, d declared) parameter {
	if len(p.written) == 0 {
		p.written = d.written
	}
	if len(d.fallback) > 0 && !p.hasDefault {
		if value, err := literal(d.fallback); err == nil {
			p.fallback, p.hasDefault = value, true
		}
		p.optional = true
	}
	p.optional = p.optional || d.optional
	return p
}

// oneObject returns the schema of arguments that are one object, or nil where nothing says what it is.
func (r *reader) oneObject(fn *function, said comment) (object, error) {
	var d declared
	if len(fn.params) > 0 {
		d = fn.params[0]
	}
	inPattern := map[string]declared{}
	for _, part := range patternOf(d.pattern) {
		inPattern[part.name] = part
	}
	listed := said.params
	if len(listed) == 1 && listed[0].isAll(d, inPattern) {
		if len(d.written) == 0 {
			d.written = listed[0].written
		}
		listed = listed[0].members
	}
	if len(d.written) == 0 || len(listed) > 0 && isObject(d.written) {
		if len(listed) == 0 {
			return nil, nil
		}
		var all []parameter
		for _, p := range listed {
			all = append(all, declaredAs(p, inPattern[p.name]))
		}
		properties, required, err := r.list(all)
		return r.object(properties, required), err
	}
	schema, _, err := r.schemaOf(d.written)
	if err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(fmt.Sprint(schema.get("$ref")), "#/$defs/"); ok {
		if whole, ok := r.defs.get(name).(object); ok {
			schema = whole
		}
	}
	properties, ok := schema.get("properties").(object)
	if !ok {
		if schema.get("type") == "object" {
			return schema, nil
		}
		return nil, fmt.Errorf("the arguments of a tool are an object, and %s is none", source(d.written))
	}
	required, _ := schema.get("required").([]any)
	for _, m := range properties {
		one := m.value.(object)
		if i := slices.IndexFunc(listed, func(p parameter) bool { return p.name == m.name }); i >= 0 {
			if text := listed[i].description; text != "" {
				one = described(one.without("description"), text)
			}
		}
		if part := inPattern[m.name]; len(part.fallback) > 0 {
			if value, err := literal(part.fallback); err == nil {
				one = one.with("default", value)
				required = slices.DeleteFunc(slices.Clone(required), func(name any) bool { return name == m.name })
			}
		}
		properties = properties.with(m.name, one)
	}
	schema = schema.without("required").with("properties", properties)
	if len(required) > 0 {
		schema = schema.with("required", required)
	}
	return schema, nil
}

// isAll reports whether what a comment says of one parameter is about all arguments, which are one object: @param {…} args, and perhaps
// @param args.name.
func (p parameter) isAll(d declared, inPattern map[string]declared) bool {
	if d.apart {
		_, isMember := inPattern[p.name]
		return !isMember
	}
	return len(p.members) > 0 || p.name == d.name || len(p.written) > 0 && p.written[0].is("{")
}

// isObject reports whether a type only says that something is an object.
func isObject(written []token) bool {
	s := source(written)
	return s == "object" || s == "Object"
}

// patternOf reads the names in a parameter that is taken apart: { name, style = "short", size: other }.
func patternOf(tokens []token) []declared {
	var out []declared
	for _, part := range split(tokens) {
		for len(part) > 0 && part[0].kind == doc {
			part = part[1:]
		}
		if len(part) == 0 || part[0].kind != word {
			continue
		}
		d := declared{name: part[0].text}
		for i, t := range part {
			if t.is("=") && t.depth == part[0].depth {
				d.fallback = part[i+1:]
				break
			}
		}
		out = append(out, d)
	}
	return out
}

// split splits tokens at the commas that stand in no brackets of theirs, nor between < and > of a type.
func split(tokens []token) [][]token {
	if len(tokens) == 0 {
		return nil
	}
	var out [][]token
	begin, angles := 0, 0
	typed := false
	for i, t := range tokens {
		if t.depth != tokens[0].depth {
			continue
		}
		switch {
		case t.is(":"):
			typed = true
		case t.is("="):
			typed, angles = false, 0
		case t.is("<") && typed:
			angles++
		case t.is(">") && typed && angles > 0:
			angles--
		case t.is(",") && angles == 0:
			out = append(out, tokens[begin:i])
			begin, typed = i+1, false
		}
	}
	return append(out, tokens[begin:])
}

// declaredIn reads the parameters between two parentheses.
func declaredIn(tokens []token) []declared {
	var out []declared
	for _, part := range split(tokens) {
		for len(part) > 0 && part[0].kind == doc {
			part = part[1:]
		}
		if len(part) == 0 || part[0].is("this") {
			continue
		}
		d := declared{}
		i := 0
		if part[0].is("...") && len(part) > 1 {
			d.rest = true
			i++
		}
		depth := part[i].depth
		if part[i].is("{") || part[i].is("[") {
			d.apart = true
			closing := i + 1
			for closing < len(part) && part[closing].depth > depth {
				closing++
			}
			d.pattern = part[i+1 : min(closing, len(part))]
			i = closing + 1
		} else {
			d.name = part[i].text
			i++
		}
		if i < len(part) && part[i].is("?") {
			d.optional = true
			i++
		}
		end := i
		for end < len(part) && !(part[end].is("=") && part[end].depth == depth) {
			end++
		}
		if i < end && part[i].is(":") {
			d.written = part[i+1 : end]
		}
		if end < len(part) {
			d.fallback = part[end+1:]
		}
		out = append(out, d)
	}
	return out
}
