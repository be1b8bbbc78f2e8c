package typed

import (
	"fmt"
	"reflect"
	"strings"
)

// A field is a member of a struct's JSON object, found by the rules of encoding/json.
type field struct {
	name     string
	typ      reflect.Type
	tag      reflect.StructTag
	quoted   bool // the string option
	omitted  bool // omitempty or omitzero
	optional bool // below an embedded pointer, which may be nil

	goName string // for messages
	depth  int    // of embedding
	named  bool   // by its tag
}

// fieldsOf returns the fields of a struct in their order.
func fieldsOf(t reflect.Type, path string) ([]field, error) {
	c := &collector{path: path}
	if err := c.collect(t, field{}); err != nil {
		return nil, err
	}
	byName := make(map[string][]field, len(c.fields))
	for _, f := range c.fields {
		byName[f.name] = append(byName[f.name], f)
	}
	var out []field
	for _, f := range c.fields {
		winner, clash := dominant(byName[f.name])
		if clash != nil {
			return nil, at(path, fmt.Errorf("the fields %s and %s are both called %q in JSON, which drops them: rename one", winner.goName, clash.goName, f.name))
		}
		if winner.goName == f.goName {
			out = append(out, f)
		}
	}
	return out, nil
}

// dominant returns the field that encoding/json uses for a name: the least deeply embedded one, or among several the one named by its tag. clash is
// another field with the same claim to the name.
func dominant(fields []field) (winner field, clash *field) {
	winner = fields[0]
	for _, f := range fields[1:] {
		switch {
		case f.depth < winner.depth, f.depth == winner.depth && f.named && !winner.named:
			winner, clash = f, nil
		case f.depth == winner.depth && f.named == winner.named:
			clash = &f
		}
	}
	return winner, clash
}

// A collector gathers the fields of a struct and of those it embeds.
type collector struct {
	path   string
	above  []reflect.Type
	fields []field
}

// collect adds the fields of t, which is embedded as outer says.
func (c *collector) collect(t reflect.Type, outer field) error {
	for _, a := range c.above {
		if a == t {
			return nil // a struct that embeds itself adds nothing
		}
	}
	c.above = append(c.above, t)
	defer func() { c.above = c.above[:len(c.above)-1] }()
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		goName := outer.goName + f.Name
		if err := checkTag(f.Tag); err != nil {
			return at(c.path, fmt.Errorf("the field %s: %w", goName, err))
		}
		inner, pointer := f.Type, false
		if f.Anonymous && inner.Kind() == reflect.Pointer {
			inner, pointer = inner.Elem(), true
		}
		exported := f.PkgPath == ""
		if f.Anonymous && inner.Kind() == reflect.Struct && name == "" {
			if pointer && !exported {
				return at(c.path, fmt.Errorf("the field %s embeds a pointer to an unexported struct, which JSON can't fill: embed the struct", goName))
			}
			if key := ownKey(f.Tag); key != "" && key != "json" {
				return at(c.path, fmt.Errorf("the field %s has the tag %s, but is replaced by its own fields: put the tag there", goName, key))
			}
			below := field{goName: goName + ".", depth: outer.depth + 1, optional: outer.optional || pointer}
			if err := c.collect(inner, below); err != nil {
				return err
			}
			continue
		}
		if !exported {
			if key := ownKey(f.Tag); key != "" {
				return at(c.path, fmt.Errorf("the field %s has the tag %s, but JSON leaves it out: begin its name with a capital letter, or remove its tags", goName, key))
			}
			continue
		}
		out := field{name: name, typ: f.Type, tag: f.Tag, goName: goName, depth: outer.depth, named: name != "", optional: outer.optional}
		switch {
		case name == "":
			out.name = f.Name
		case !validName(name):
			return at(c.path, fmt.Errorf("the field %s: %q is not a name that encoding/json takes: use letters, digits and _", goName, name))
		}
		for _, option := range strings.Split(options, ",") {
			switch option {
			case "omitempty", "omitzero":
				out.omitted = true
			case "string":
				out.quoted = quotable(f.Type)
			}
		}
		c.fields = append(c.fields, out)
	}
	return nil
}

// quotable reports whether the string option does anything for a type.
func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); k {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	default:
		return k >= reflect.Int && k <= reflect.Uint64
	}
}

// validName reports whether encoding/json takes a name from a tag.
func validName(name string) bool {
	for _, c := range name {
		if c < ' ' || c == '"' || c == '\\' || c == '\'' || c == '`' || c == 0xFFFD {
			return false
		}
	}
	return true
}
