package typed

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A deriver makes the schema of one type. Named structs, slices, arrays and maps become definitions, so that types may
// be recursive.
type deriver struct {
	arguments bool // decoded, not encoded
	names     map[reflect.Type]string
	taken     map[string]bool
	defs      *definitions
}

func newDeriver(arguments bool) *deriver {
	return &deriver{arguments: arguments, names: map[reflect.Type]string{}, taken: map[string]bool{}, defs: &definitions{}}
}

// root returns the whole schema of t, with its definitions. The root itself is not a reference: clients look for its
// properties. A pointer counts as what it points to: arguments are never null, and a nil result breaks the call.
func (d *deriver) root(t reflect.Type, path string) (*schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s, known, err := d.special(t)
	if err == nil && !known {
		s, err = d.content(t, path)
	}
	if err != nil {
		return nil, at(path, err)
	}
	if len(d.defs.names) > 0 {
		s = s.annotated()
		s.Defs = d.defs
	}
	return s, nil
}

// placed is an error that already names its place.
type placed struct {
	path string
	err  error
}

func (e *placed) Error() string { return e.path + ": " + e.err.Error() }

func (e *placed) Unwrap() error { return e.err }

// at adds the place to err, unless it has one.
func at(path string, err error) error {
	if _, ok := err.(*placed); err == nil || ok {
		return err
	}
	return &placed{path, err}
}

// of returns the schema of t where it is used: a reference where t has a name of its own.
func (d *deriver) of(t reflect.Type, path string) (*schema, error) {
	if s, known, err := d.special(t); known || err != nil {
		return s, at(path, err)
	}
	if t.Name() != "" && !isBytes(t) {
		switch t.Kind() {
		case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
			return d.define(t, path)
		case reflect.Pointer:
			return nil, at(path, fmt.Errorf("%s is a named pointer type, which can't be described: use a pointer to a named type", t))
		}
	}
	return d.content(t, path)
}

// define puts t among the definitions, once, and returns a reference to it.
func (d *deriver) define(t reflect.Type, path string) (*schema, error) {
	name, ok := d.names[t]
	if !ok {
		name = d.name(t)
		d.names[t] = name
		place := len(d.defs.names)
		d.defs.add(name, nil)
		s, err := d.content(t, path)
		if err != nil {
			return nil, err
		}
		d.defs.schemas[place] = s
	}
	return &schema{Ref: "#/$defs/" + name}, nil
}

// name returns a name for t that no other definition has. The name of a generic type leaves out its arguments: TinyGo doesn't keep them, and Go
// writes them with the path of a package, which differs between a test and the module.
func (d *deriver) name(t reflect.Type) string {
	own, _, _ := strings.Cut(t.Name(), "[")
	name := own
	for n := 2; d.taken[name]; n++ {
		name = own + strconv.Itoa(n)
	}
	d.taken[name] = true
	return name
}

var (
	timeType     = reflect.TypeOf(time.Time{})
	durationType = reflect.TypeOf(time.Duration(0))
	rawType      = reflect.TypeOf(json.RawMessage(nil))
	numberType   = reflect.TypeOf(json.Number(""))
)

// special returns the schema of a type whose JSON form does not follow from its kind.
func (d *deriver) special(t reflect.Type) (s *schema, known bool, err error) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return nil, false, nil
	}
	switch t {
	case timeType:
		return &schema{Type: "string", Format: "date-time"}, true, nil
	case durationType:
		return &schema{Type: "integer", Description: "A duration in nanoseconds."}, true, nil
	case rawType:
		return &schema{}, true, nil
	case numberType:
		return &schema{Type: "number"}, true, nil
	}
	zero := reflect.New(t).Interface()
	if v, ok := zero.(describer); ok {
		s, err := custom(v)
		if err != nil {
			err = fmt.Errorf("%s: %w", t, err)
		}
		return s, true, err
	}
	ownJSON, ownText, method := false, false, "MarshalJSON"
	if d.arguments {
		_, ownJSON = zero.(json.Unmarshaler)
		_, ownText = zero.(encoding.TextUnmarshaler)
		method = "UnmarshalJSON"
	} else {
		_, ownJSON = zero.(json.Marshaler)
		_, ownText = zero.(encoding.TextMarshaler)
	}
	switch {
	case ownJSON:
		return nil, true, fmt.Errorf("%s has a method %s: also give it a method JSONSchema() string that returns its JSON Schema", t, method)
	case ownText:
		return &schema{Type: "string"}, true, nil
	}
	return nil, false, nil
}

// content returns the schema of t by its kind.
func (d *deriver) content(t reflect.Type, path string) (*schema, error) {
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int64: // an int of TinyGo has 32 bits, but a tool's contract is the same from all compilers
		return &schema{Type: "integer"}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32:
		top := int64(1)<<(t.Bits()-1) - 1
		return &schema{Type: "integer", Minimum: number(-top - 1), Maximum: number(top)}, nil
	case reflect.Uint, reflect.Uint64:
		return &schema{Type: "integer", Minimum: number(0)}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &schema{Type: "integer", Minimum: number(0), Maximum: number(int64(1)<<t.Bits() - 1)}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Pointer:
		s, err := d.of(t.Elem(), path)
		if err != nil {
			return nil, err
		}
		return d.nullable(s), nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return nil, at(path, fmt.Errorf("%s is an interface with methods, which JSON can't hold: use a concrete type, or any", t))
		}
		return &schema{}, nil
	case reflect.Slice, reflect.Array:
		return d.list(t, path)
	case reflect.Map:
		return d.mapping(t, path)
	case reflect.Struct:
		return d.object(t, path)
	}
	return nil, at(path, fmt.Errorf("%s is a %s, which JSON can't hold: use another type, or leave the field out with json:\"-\"", t, t.Kind()))
}

// nullable returns s, or null. Arguments of a definition stay as they are: that would take an anyOf, and no default is
// filled in below one.
func (d *deriver) nullable(s *schema) *schema {
	if d.arguments && !s.inline() {
		return s
	}
	return s.nullable()
}

func number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// isBytes reports whether t is a slice of bytes. Its schema is written where it is used, even if the type has a name: clients that look only at the
// member would not see the content of a definition.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem() == reflect.TypeOf(byte(0))
}

// list returns the schema of a slice or an array.
func (d *deriver) list(t reflect.Type, path string) (*schema, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		if _, known, _ := d.special(t.Elem()); !known {
			return &schema{Type: "string", ContentEncoding: "base64"}, nil
		}
	}
	items, err := d.of(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	s := &schema{Type: "array"}
	if !items.free() {
		s.Items = items
	}
	if t.Kind() == reflect.Array {
		s.MinItems, s.MaxItems = number(int64(t.Len())), number(int64(t.Len()))
	}
	return s, nil
}

// mapping returns the schema of a map.
func (d *deriver) mapping(t reflect.Type, path string) (*schema, error) {
	s := &schema{Type: "object"}
	key := reflect.New(t.Key()).Interface()
	var text bool
	if d.arguments {
		_, text = key.(encoding.TextUnmarshaler)
	} else {
		_, text = key.(encoding.TextMarshaler)
	}
	switch t.Key().Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.PropertyNames = &schema{Pattern: "^-?[0-9]+$"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.PropertyNames = &schema{Pattern: "^[0-9]+$"}
	case reflect.String:
	default:
		if !text {
			return nil, at(path, fmt.Errorf("%s has keys that JSON can't hold: use strings or integers, or a type with MarshalText and UnmarshalText", t))
		}
	}
	if text {
		s.PropertyNames = nil
	}
	values, err := d.of(t.Elem(), path+"{}")
	if err != nil {
		return nil, err
	}
	if !values.free() {
		s.AdditionalProperties = values
	}
	return s, nil
}

// object returns the schema of a struct.
func (d *deriver) object(t reflect.Type, path string) (*schema, error) {
	s := &schema{Type: "object"}
	if d.arguments {
		s.AdditionalProperties = false // a misspelt member is an error, not dropped
	}
	fields, err := fieldsOf(t, path)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		member, required, err := d.member(f, path+"."+f.name)
		if err != nil {
			return nil, err
		}
		if s.Properties == nil {
			s.Properties = &definitions{}
		}
		s.Properties.add(f.name, member)
		if required {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

// member returns the schema of a struct's field, and whether the field is required.
func (d *deriver) member(f field, path string) (s *schema, required bool, err error) {
	t, pointer := f.typ, false
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t, pointer = t.Elem(), true
	}
	if s, err = d.of(t, path); err != nil {
		return nil, false, err
	}
	tags, err := readTags(f.tag)
	if err != nil {
		return nil, false, at(path, err)
	}
	if f.quoted {
		if s, err = quote(s, tags); err != nil {
			return nil, false, at(path, err)
		}
	}
	if tags.any() {
		s = s.annotated()
	}
	if err := tags.constrain(s, kindOf(s, t), t); err != nil {
		return nil, false, at(path, err)
	}
	if pointer {
		s = d.nullable(s)
	}
	if err := tags.annotate(s, t); err != nil {
		return nil, false, at(path, err)
	}
	if !d.arguments {
		return s, !f.omitted && !f.optional, nil
	}
	required = !f.omitted && !f.optional && !pointer && s.Default == nil
	if value, ok := tags["required"]; ok {
		switch {
		case value != "true" && value != "false":
			return nil, false, at(path, fmt.Errorf("required:%q is neither \"true\" nor \"false\"", value))
		case value == "true" && s.Default != nil:
			return nil, false, at(path, errors.New("it has a default and is required: remove one of the two tags"))
		}
		required = value == "true"
	}
	return s, required, nil
}
