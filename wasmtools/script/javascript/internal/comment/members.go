package comment

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A parameter is what a comment says of a parameter, or of a member of an object: @param {type} [name=default] - description. Members of it are
// those whose names go on: "options.size", "items[].name".
type parameter struct {
	name        string
	written     []token // the type; empty where there is none
	description string
	optional    bool
	fallback    any // the default, where hasDefault is set
	hasDefault  bool
	members     []parameter
	wrong       string // what is wrong with the tag itself
}

// members reads the members of an object from behind its bracket to the closing one.
func (r *reader) members(closing string) (object, error) {
	var properties object
	var required []any
	var others object
	open := false
	for {
		description := ""
		for ; r.at < len(r.tokens) && r.tokens[r.at].kind == doc; r.at++ {
			description = parse(r.tokens[r.at].text).description
		}
		if r.take(closing) {
			break
		}
		if r.peek().is("readonly") && r.at+1 < len(r.tokens) && !r.tokens[r.at+1].is(":") && !r.tokens[r.at+1].is("?") {
			r.at++
		}
		if len(properties) == maxNames {
			return nil, fmt.Errorf("an object has more than %d members", maxNames)
		}
		t := r.peek()
		r.at++
		if t.is("[") {
			var err error
			if others, err = r.index(); err != nil {
				return nil, err
			}
			open = true
		} else if t.kind != word && t.kind != text && t.kind != number {
			return nil, fmt.Errorf("%q is not understood in the type %s", t.text, source(r.tokens))
		} else {
			name := t.text
			if t.kind == text {
				name = unquoted(name)
			}
			optional := r.take("?")
			schema := object{}
			if r.take(":") {
				var maybe bool
				var err error
				if schema, maybe, err = r.union(); err != nil {
					return nil, err
				}
				optional = optional || maybe
			} else if r.peek().is("(") || r.peek().is("<") {
				return nil, fmt.Errorf("%q is a function: a tool takes and returns JSON", name)
			}
			properties = properties.with(name, described(schema, description))
			if !optional {
				required = append(required, name)
			}
		}
		if !r.take(";") && !r.take(",") && !r.peek().is(closing) && !r.peek().lines {
			return nil, r.need(closing)
		}
	}
	out := r.object(properties, required)
	if open {
		out = out.without("additionalProperties")
		if len(others) > 0 {
			out = out.with("additionalProperties", others)
		}
		if len(properties) == 0 {
			out = out.without("properties")
		}
	}
	return out, nil
}

// index reads "[name: string]: T" from behind its bracket.
func (r *reader) index() (object, error) {
	r.at++
	if err := r.need(":"); err != nil {
		return nil, err
	}
	if _, _, err := r.union(); err != nil {
		return nil, err
	}
	if err := r.need("]"); err != nil {
		return nil, err
	}
	if err := r.need(":"); err != nil {
		return nil, err
	}
	schema, _, err := r.union()
	return schema, err
}

// list returns the properties that parameters are, and which of them are required.
func (r *reader) list(all []parameter) (properties object, required []any, err error) {
	if len(all) > maxNames {
		return nil, nil, fmt.Errorf("an object has more than %d members", maxNames)
	}
	for _, p := range all {
		schema, optional, err := r.parameter(p)
		if err != nil {
			return nil, nil, err
		}
		properties = properties.with(p.name, schema)
		if !optional {
			required = append(required, p.name)
		}
	}
	return properties, required, nil
}

// parameter returns the schema of one parameter.
func (r *reader) parameter(p parameter) (schema object, optional bool, err error) {
	switch {
	case p.wrong != "":
		return nil, false, errors.New(p.wrong)
	case len(p.written) == 0 && len(p.members) == 0 && p.hasDefault:
		schema = kindOf(p.fallback)
	case len(p.written) == 0 && len(p.members) == 0:
		return nil, false, fmt.Errorf("the parameter %s has no type: write @param {string} %s", p.name, p.name)
	case len(p.members) > 0:
		properties, required, err := r.list(p.members)
		if err != nil {
			return nil, false, err
		}
		schema = r.object(properties, required)
		if strings.HasSuffix(source(p.written), "[]") || strings.HasPrefix(source(p.written), "Array") {
			schema = list(schema)
		}
	default:
		if schema, optional, err = r.schemaOf(p.written); err != nil {
			return nil, false, fmt.Errorf("the parameter %s: %w", p.name, err)
		}
	}
	schema = described(schema, p.description)
	if p.hasDefault {
		schema = schema.with("default", p.fallback)
	}
	return schema, optional || p.optional || p.hasDefault, nil
}

// kindOf returns the type of a default, where nothing else says what a parameter takes.
func kindOf(value any) object {
	switch value.(type) {
	case string:
		return object{{"type", "string"}}
	case float64:
		return object{{"type", "number"}}
	case bool:
		return object{{"type", "boolean"}}
	case []any:
		return object{{"type", "array"}}
	}
	return object{}
}

// literal returns the value of tokens that are JSON but for quotes and trailing commas: a default, the arguments of an example.
func literal(written []token) (any, error) {
	var out strings.Builder
	for i, t := range written {
		switch {
		case t.kind == doc:
		case t.kind == text:
			quoted, err := json.Marshal(unquoted(t.text))
			if err != nil {
				return nil, err
			}
			out.Write(quoted)
		case t.kind == template && !strings.Contains(t.text, "${"):
			quoted, err := json.Marshal(strings.Trim(t.text, "`"))
			if err != nil {
				return nil, err
			}
			out.Write(quoted)
		case t.is(",") && i+1 < len(written) && (written[i+1].is("]") || written[i+1].is("}")):
		case t.kind == word && i+1 < len(written) && written[i+1].is(":"):
			out.WriteString(`"` + t.text + `"`)
		case t.kind == word && !t.is("true") && !t.is("false") && !t.is("null"):
			return nil, errors.New("not a literal")
		default:
			out.WriteString(t.text)
		}
	}
	var value any
	err := json.Unmarshal([]byte(out.String()), &value)
	return value, err
}
