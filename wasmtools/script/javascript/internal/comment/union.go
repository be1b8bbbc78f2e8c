package comment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxTypeDepth is how deep types may be nested.
const maxTypeDepth = 200

// types are the named types of a file, each with what it is.
type types map[string]definition

// A definition is what a name stands for: a type as written, or members that a comment lists.
type definition struct {
	written     []token
	members     []parameter
	description string
	extends     []string // interfaces whose members it has besides
}

// A reader makes JSON Schemas of types. Arguments are closed: they refuse members that a type does not have.
type reader struct {
	file   *file
	closed bool
	defs   object // of the types that were named so far
	depth  int

	tokens []token
	at     int
}

// schemaOf returns the schema of a type, and whether it may be undefined. Its named types are added to r.defs.
func (r *reader) schemaOf(written []token) (schema object, optional bool, err error) {
	if r.depth++; r.depth > maxTypeDepth {
		return nil, false, errors.New("types are nested too deep")
	}
	defer func() { r.depth-- }()
	if r.file.work += len(written); r.file.work > maxWork {
		return nil, false, errors.New("its types are too large")
	}
	inner := &reader{file: r.file, closed: r.closed, defs: r.defs, depth: r.depth, tokens: written}
	schema, optional, err = inner.union()
	if err == nil && inner.peek().kind != end {
		err = fmt.Errorf("%q is not understood in the type %s", inner.peek().text, source(written))
	}
	r.defs = inner.defs
	return schema, optional, err
}

// source returns tokens as one text.
func source(written []token) string {
	var out strings.Builder
	for i, t := range written {
		if i > 0 && (t.lines || t.kind == word && written[i-1].kind == word) {
			out.WriteByte(' ')
		}
		if t.kind != doc {
			out.WriteString(t.text)
		}
	}
	return out.String()
}

func (r *reader) peek() token {
	for r.at < len(r.tokens) && r.tokens[r.at].kind == doc {
		r.at++
	}
	if r.at >= len(r.tokens) {
		return token{}
	}
	return r.tokens[r.at]
}

// take goes on if the next token is what.
func (r *reader) take(what string) bool {
	if !r.peek().is(what) {
		return false
	}
	r.at++
	return true
}

func (r *reader) need(what string) error {
	if !r.take(what) {
		return fmt.Errorf("%q is missing in the type %s", what, source(r.tokens))
	}
	return nil
}

// union reads "A | B".
func (r *reader) union() (schema object, optional bool, err error) {
	if r.depth++; r.depth > maxTypeDepth {
		return nil, false, errors.New("types are nested too deep")
	}
	defer func() { r.depth-- }()
	r.take("|")
	var all []object
	null := false
	for {
		// Closure's "?string" takes null, "!string" does not, "=" is optional.
		if r.peek().is("?") {
			r.at++
			null = true
		}
		r.take("!")
		switch {
		case r.peek().is("null"):
			r.at++
			null = true
		case r.peek().is("undefined") || r.peek().is("void"):
			r.at++
			optional = true
		default:
			one, err := r.intersection()
			if err != nil {
				return nil, false, err
			}
			all = append(all, one)
		}
		if !r.take("|") {
			break
		}
	}
	if r.take("=") {
		optional = true
	}
	return joined(all, null), optional, nil
}

// joined returns the schema of a union.
func joined(all []object, null bool) object {
	all = literals(all)
	if len(all) == 0 {
		return object{{"type", "null"}}
	}
	if len(all) == 1 {
		one := all[0]
		if !null || len(one) == 0 {
			return one
		}
		if kind, ok := one.get("type").(string); ok {
			one = one.with("type", []any{kind, "null"})
			if values, ok := one.get("enum").([]any); ok {
				one = one.with("enum", append(slices.Clone(values), nil))
			}
			return one
		}
	}
	if null {
		all = append(all, object{{"type", "null"}})
	}
	var kinds []any
	for _, one := range all {
		if len(one) == 0 {
			return object{} // anything
		}
		if kind, ok := one.get("type").(string); ok && len(one) == 1 {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == len(all) {
		return object{{"type", kinds}}
	}
	choices := make([]any, len(all))
	for i, one := range all {
		choices[i] = one
	}
	return object{{"anyOf", choices}}
}

// literals makes one enum of the literals of a type.
func literals(all []object) []object {
	var out []object
	enums := map[string]int{}
	for _, one := range all {
		values, isLiteral := one.get("enum").([]any)
		kind, _ := one.get("type").(string)
		if i, known := enums[kind]; isLiteral && known {
			out[i] = out[i].with("enum", append(out[i].get("enum").([]any), values...))
			continue
		} else if isLiteral {
			enums[kind] = len(out)
		}
		out = append(out, one)
	}
	for i, one := range out {
		if values, ok := one.get("enum").([]any); ok && one.get("type") == "boolean" && slices.Contains(values, any(true)) && slices.Contains(values, any(false)) {
			out[i] = object{{"type", "boolean"}}
		}
	}
	return out
}

// intersection reads "A & B" of objects.
func (r *reader) intersection() (object, error) {
	first, err := r.array()
	if err != nil || !r.peek().is("&") {
		return first, err
	}
	all := []object{first}
	for r.take("&") {
		next, err := r.array()
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return r.merged(all)
}

// merged returns an object with the members of all.
func (r *reader) merged(all []object) (object, error) {
	var properties object
	var required []any
	for _, one := range all {
		if name, ok := strings.CutPrefix(fmt.Sprint(one.get("$ref")), "#/$defs/"); ok {
			one, _ = r.defs.get(name).(object)
		}
		members, ok := one.get("properties").(object)
		if !ok {
			return nil, fmt.Errorf("only objects can be joined with & in the type %s", source(r.tokens))
		}
		for _, m := range members {
			properties = properties.with(m.name, m.value)
		}
		some, _ := one.get("required").([]any)
		required = append(required, some...)
	}
	return r.object(properties, required), nil
}

// object returns the schema of an object.
func (r *reader) object(properties object, required []any) object {
	if properties == nil {
		properties = object{}
	}
	out := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		out = out.with("required", required)
	}
	if r.closed {
		out = out.with("additionalProperties", false)
	}
	return out
}

// array reads "A[]".
func (r *reader) array() (object, error) {
	r.take("readonly")
	one, err := r.primary()
	for err == nil && r.peek().is("[") && !r.peek().lines {
		r.at++
		if err = r.need("]"); err == nil {
			one = list(one)
		}
	}
	return one, err
}

func list(items object) object {
	out := object{{"type", "array"}}
	if len(items) > 0 {
		out = out.with("items", items)
	}
	return out
}

// primary reads a type without what follows it.
func (r *reader) primary() (object, error) {
	t := r.peek()
	r.at++
	switch {
	case t.is("("):
		if r.isFunction() {
			return nil, fmt.Errorf("%s is a function: a tool takes and returns JSON", source(r.tokens))
		}
		inner, _, err := r.union()
		if err == nil {
			err = r.need(")")
		}
		return inner, err
	case t.is("{"):
		return r.members("}")
	case t.is("["):
		return r.tuple()
	case t.is("*"):
		return object{}, nil
	case t.kind == text:
		return object{{"type", "string"}, {"enum", []any{unquoted(t.text)}}}, nil
	case t.kind == template && !strings.Contains(t.text, "${"):
		return object{{"type", "string"}, {"enum", []any{strings.Trim(t.text, "`")}}}, nil
	case t.kind == number || t.is("-"):
		digits := t.text
		if t.is("-") {
			digits += r.peek().text
			r.at++
		}
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", digits)
		}
		if n == float64(int64(n)) {
			return object{{"type", "integer"}, {"enum", []any{n}}}, nil
		}
		return object{{"type", "number"}, {"enum", []any{n}}}, nil
	case t.is("true") || t.is("false"):
		return object{{"type", "boolean"}, {"enum", []any{t.is("true")}}}, nil
	case t.kind == word:
		return r.named(t.text)
	case t.kind == end:
		return nil, fmt.Errorf("the type %s ends too early", source(r.tokens))
	}
	return nil, fmt.Errorf("%q is not understood in the type %s", t.text, source(r.tokens))
}

// isFunction reports whether the parenthesis before is that of a function's parameters.
func (r *reader) isFunction() bool {
	depth := r.tokens[r.at-1].depth
	for i := r.at; i < len(r.tokens)-1; i++ {
		if r.tokens[i].is(")") && r.tokens[i].depth == depth {
			return r.tokens[i+1].is("=>")
		}
	}
	return false
}

// tuple reads "[A, B]" from behind its bracket.
func (r *reader) tuple() (object, error) {
	var items []any
	for !r.take("]") {
		item, _, err := r.union()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if !r.take(",") && !r.peek().is("]") {
			return nil, r.need("]")
		}
	}
	return object{{"type", "array"}, {"prefixItems", items}, {"items", false}, {"minItems", len(items)}, {"maxItems", len(items)}}, nil
}

// described adds a description to a schema. Beside a reference, older readers see nothing, so that stands in allOf.
func described(schema object, description string) object {
	if description == "" {
		return schema
	}
	if ref := schema.get("$ref"); ref != nil {
		return object{{"description", description}, {"allOf", []any{schema}}}
	}
	return schema.with("description", description)
}

// unquoted returns what a string literal says.
func unquoted(literal string) string {
	if len(literal) < 2 {
		return literal
	}
	inner := literal[1 : len(literal)-1]
	if !strings.Contains(inner, `\`) {
		return inner
	}
	if s, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.ReplaceAll(inner, `\'`, `'`), `"`, `\"`) + `"`); err == nil {
		return s
	}
	return inner
}
