package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// A describer is a type that has a JSON form of its own and returns its JSON Schema, an object, as text. The method is called on
// a zero value.
type describer interface {
	JSONSchema() string
}

// schema is a JSON Schema with its members in the order in which people read them.
type schema struct {
	raw json.RawMessage // a describer's own text, in place of all other members

	Ref                  string            `json:"$ref,omitempty"`
	Type                 any               `json:"type,omitempty"` // a string, or []string
	Description          string            `json:"description,omitempty"`
	AllOf                []*schema         `json:"allOf,omitempty"`
	AnyOf                []*schema         `json:"anyOf,omitempty"`
	Format               string            `json:"format,omitempty"`
	ContentEncoding      string            `json:"contentEncoding,omitempty"`
	ContentMediaType     string            `json:"contentMediaType,omitempty"`
	Pattern              string            `json:"pattern,omitempty"`
	Enum                 []json.RawMessage `json:"enum,omitempty"`
	Minimum              json.RawMessage   `json:"minimum,omitempty"`
	Maximum              json.RawMessage   `json:"maximum,omitempty"`
	ExclusiveMinimum     json.RawMessage   `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum     json.RawMessage   `json:"exclusiveMaximum,omitempty"`
	MinLength            json.RawMessage   `json:"minLength,omitempty"`
	MaxLength            json.RawMessage   `json:"maxLength,omitempty"`
	Items                *schema           `json:"items,omitempty"`
	MinItems             json.RawMessage   `json:"minItems,omitempty"`
	MaxItems             json.RawMessage   `json:"maxItems,omitempty"`
	Properties           *definitions      `json:"properties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	PropertyNames        *schema           `json:"propertyNames,omitempty"`
	AdditionalProperties any               `json:"additionalProperties,omitempty"` // false, or a *schema
	Default              json.RawMessage   `json:"default,omitempty"`
	Examples             []json.RawMessage `json:"examples,omitempty"`
	Defs                 *definitions      `json:"$defs,omitempty"`
}

// MarshalJSON writes the schema.
func (s *schema) MarshalJSON() ([]byte, error) {
	if s.raw != nil {
		return s.raw, nil
	}
	type plain schema
	return Encode((*plain)(s))
}

// free reports whether s accepts everything and says nothing.
func (s *schema) free() bool {
	return s.raw == nil && reflect.ValueOf(*s).IsZero()
}

// inline reports whether s alone says what it accepts.
func (s *schema) inline() bool { return s.raw == nil && s.Ref == "" && s.AllOf == nil }

// nullable returns s, or null.
func (s *schema) nullable() *schema {
	if !s.inline() {
		if bare := *s; len(s.AllOf) == 1 {
			if bare.AllOf = nil; bare.free() {
				s = s.AllOf[0] // what was annotated stands alone in the anyOf, too
			}
		}
		return &schema{AnyOf: []*schema{s, {Type: "null"}}}
	}
	if kind, ok := s.Type.(string); ok {
		s.Type = []string{kind, "null"}
		if s.Enum != nil {
			s.Enum = append(s.Enum, json.RawMessage("null"))
		}
	}
	return s
}

// annotated returns a schema that accepts what s does and can take more members: a $ref stands best alone, since some
// clients look at nothing beside it.
func (s *schema) annotated() *schema {
	if s.raw != nil || s.Ref != "" {
		return &schema{AllOf: []*schema{s}}
	}
	return s
}

// definitions are named schemas in order.
type definitions struct {
	names   []string
	schemas []*schema
}

func (d *definitions) add(name string, s *schema) {
	d.names, d.schemas = append(d.names, name), append(d.schemas, s)
}

// MarshalJSON writes the definitions as an object, in their order.
func (d *definitions) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, name := range d.names {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := Encode(name)
		if err != nil {
			return nil, err
		}
		value, err := Encode(d.schemas[i])
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// argumentsSchema returns the schema of a tool's arguments.
func argumentsSchema(t reflect.Type) (*schema, error) {
	d := newDeriver(true)
	s, err := d.root(t, "arguments")
	if err != nil {
		return nil, err
	}
	if s.raw == nil && s.Type != "object" || s.raw != nil && !IsObject(string(s.raw)) {
		return nil, fmt.Errorf("arguments: %s is not a JSON object: take a struct", t)
	}
	return s, nil
}

// resultSchema returns the schema of a tool's result, or nil if it would say nothing.
func resultSchema(t reflect.Type) (*schema, error) {
	d := newDeriver(false)
	s, err := d.root(t, "result")
	if err != nil || s.free() {
		return nil, err
	}
	return s, nil
}

// custom returns the schema that v, a pointer to a zero value, has of its own.
func custom(v describer) (*schema, error) {
	text := v.JSONSchema()
	if !IsObject(text) {
		return nil, errors.New("its JSONSchema does not return a JSON object")
	}
	return &schema{raw: json.RawMessage(text)}, nil
}
