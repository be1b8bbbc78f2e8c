package comment

import (
	"encoding/json"
	"slices"
	"strings"
)

// A schema is a JSON Schema of a type. Without any member it accepts everything.
type schema struct {
	Type        kinds           `json:"type,omitempty"`
	Enum        []any           `json:"enum,omitempty"`
	AnyOf       []*schema       `json:"anyOf,omitempty"`
	Items       *schema         `json:"items,omitempty"`
	Properties  members         `json:"properties,omitzero"`
	Required    []string        `json:"required,omitempty"`
	Others      *bool           `json:"additionalProperties,omitempty"` // nil: any
	Description string          `json:"description,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// kindsByName maps the names of types in JavaScript to JSON's. Comments also use the names of JavaScript's objects.
var kindsByName = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "object": "object", "null": "null",
	"undefined": "null", "void": "null", "String": "string", "Number": "number", "Boolean": "boolean", "Object": "object", "Array": "array", "array": "array",
}

// isPlain reports whether a schema says only what the type is.
func (s *schema) isPlain() bool {
	return s.Enum == nil && s.AnyOf == nil && s.Items == nil && s.Properties == nil
}

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

// A member is a member of an object, or a parameter of a function, as the code or a comment describes it.
type member struct {
	name        string
	schema      *schema // nil if nothing says its type
	description string
	optional    bool
	fallback    json.RawMessage // the default, if it is a literal
	members     []member        // in a comment, the members below it, such as options.size
	taken       []member        // the names into which the code destructures it
}

// members keep the order in which the author wrote them.
type members []member

// MarshalJSON writes the members in their order.
func (all members) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range all {
		one, err := json.Marshal(map[string]*schema{m.name: m.schema})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, one[1:len(one)-1]...)
	}
	return append(out, '}'), nil
}

// union returns the schema of "A | B".
func union(all []*schema) *schema {
	if len(all) == 1 {
		return all[0]
	}
	out := &schema{}
	plain, constants := true, true // whether all are types, and whether all are values
	for _, one := range all {
		if one.isPlain() && one.Type == nil {
			return one // any
		}
		values := one.Enum
		if one.is("null") {
			values = []any{nil}
		}
		plain, constants = plain && one.isPlain(), constants && values != nil
		out.Enum = append(out.Enum, values...)
		for _, kind := range one.Type {
			if !slices.Contains(out.Type, kind) {
				out.Type = append(out.Type, kind)
			}
		}
	}
	switch {
	case plain:
		out.Enum = nil
	case !constants:
		return &schema{AnyOf: all}
	}
	return out
}

// valueOf returns the schema of a default that is a string, a number or a boolean, or nil. It is used if nothing else says a parameter's type.
func valueOf(value json.RawMessage) *schema {
	switch c := value[0]; {
	case c == '"':
		return &schema{Type: kinds{"string"}}
	case c == 't' || c == 'f':
		return &schema{Type: kinds{"boolean"}}
	case c == '-' || c >= '0' && c <= '9':
		return &schema{Type: kinds{"number"}}
	}
	return nil
}

// constant returns the schema of a type that has one value only.
func constant(value json.RawMessage) *schema {
	out := valueOf(value)
	if out.Enum = []any{value}; out.is("number") && !strings.ContainsAny(string(value), ".eE") {
		out.Type[0] = "integer"
	}
	return out
}
