package comment

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A schema is what JSON Schema says of a type. One without any member takes everything.
type schema struct {
	Type        kinds           `json:"type,omitempty"`
	Enum        []any           `json:"enum,omitempty"`
	AnyOf       []*schema       `json:"anyOf,omitempty"`
	Items       *schema         `json:"items,omitempty"`
	Properties  properties      `json:"properties,omitzero"`
	Required    []string        `json:"required,omitempty"`
	Others      any             `json:"additionalProperties,omitempty"` // false, or a schema
	Description string          `json:"description,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// isPlain reports whether a schema says no more than a type.
func (s *schema) isPlain() bool {
	return s.Enum == nil && s.AnyOf == nil && s.Items == nil && s.Properties == nil && s.Others == nil
}

func (s *schema) isAny() bool { return s.isPlain() && len(s.Type) == 0 }

// is reports whether a schema takes one type only.
func (s *schema) is(kind string) bool { return len(s.Type) == 1 && s.Type[0] == kind }

// kinds are JSON's types, one or more.
type kinds []string

// MarshalJSON writes one type as a string.
func (k kinds) MarshalJSON() ([]byte, error) {
	if len(k) == 1 {
		return json.Marshal(k[0])
	}
	return json.Marshal([]string(k))
}

// properties keep the order in which the author wrote them.
type properties []property

type property struct {
	name   string
	schema *schema
}

// MarshalJSON writes the members in their order.
func (p properties) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, one := range p {
		out.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(one.schema)
		if err != nil {
			return nil, err
		}
		out.Write(append(append(name, ':'), text...))
	}
	if len(p) == 0 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// union returns the schema of "A | B".
func union(all []*schema, null bool) *schema {
	out := &schema{}
	plain, literal := true, true // whether all are types, or values
	for _, one := range all {
		if one.isAny() {
			return one
		}
		plain, literal = plain && one.isPlain(), literal && one.Enum != nil
		out.Enum = append(out.Enum, one.Enum...)
		for _, kind := range one.Type {
			if !slices.Contains(out.Type, kind) {
				out.Type = append(out.Type, kind)
			}
		}
	}
	if len(all) == 1 {
		out = all[0]
	} else if !plain && !literal {
		out = &schema{AnyOf: all}
	}
	switch {
	case !null && len(all) > 0:
	case out.AnyOf != nil:
		out.AnyOf = append(out.AnyOf, &schema{Type: kinds{"null"}})
	case !slices.Contains(out.Type, "null"):
		if out.Type = append(out.Type, "null"); out.Enum != nil {
			out.Enum = append(out.Enum, nil)
		}
	}
	return out
}

// errNoLiteral is why a default or an example is not taken over.
var errNoLiteral = errors.New("it is not a literal")

// literal returns the JSON of tokens that are JSON but for quotes and trailing commas: a default, the arguments of an example.
func literal(written []token) (json.RawMessage, error) {
	var out strings.Builder
	for i, t := range written {
		last := i+1 == len(written)
		switch {
		case t.kind == text:
			value, err := unquoted(t.text)
			if err != nil {
				return nil, err
			}
			quoted, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			out.Write(quoted)
		case t.is(",") && !last && (written[i+1].is("]") || written[i+1].is("}")):
		case t.kind == word && !last && written[i+1].is(":"):
			out.WriteString(`"` + t.text + `"`)
		case t.kind == word && !t.is("true") && !t.is("false") && !t.is("null"):
			return nil, errNoLiteral
		default:
			out.WriteString(t.text)
		}
	}
	if !json.Valid([]byte(out.String())) {
		return nil, errNoLiteral
	}
	return json.RawMessage(out.String()), nil
}

// unquoted returns what a text says, if its escapes are those that JSON has, too.
func unquoted(written string) (value string, err error) {
	inner := written[1 : len(written)-1]
	if written[0] == '\'' {
		inner = strings.ReplaceAll(strings.ReplaceAll(inner, `\'`, `'`), `"`, `\"`)
	}
	if json.Unmarshal([]byte(`"`+inner+`"`), &value) != nil {
		return "", errors.New("the text " + written + ` has an escape that is not read: write the character itself, or \u and four digits`)
	}
	return value, nil
}
