package comment

import (
	"errors"
	"fmt"
	"strings"
)

// keywords are the types that have names of their own, with their schemas.
var keywords = map[string]object{
	"string": {{"type", "string"}}, "String": {{"type", "string"}},
	"number": {{"type", "number"}}, "Number": {{"type", "number"}},
	"integer": {{"type", "integer"}}, "int": {{"type", "integer"}},
	"boolean": {{"type", "boolean"}}, "Boolean": {{"type", "boolean"}}, "bool": {{"type", "boolean"}},
	"any": {}, "unknown": {}, "*": {},
	"object": {{"type", "object"}}, "Object": {{"type", "object"}},
	"null": {{"type", "null"}},
}

// remedies are types that no JSON has, with what to write.
var remedies = map[string]string{
	"Date":       "write string, and new Date(text) in the function",
	"bigint":     "write number, or string and BigInt(text) in the function",
	"Uint8Array": "write string, and have it in base64",
	"Buffer":     "write string, and have it in base64",
	"Map":        "write Record<string, …>",
	"Set":        "write an array",
	"Function":   "a tool takes and returns JSON",
	"symbol":     "a tool takes and returns JSON",
	"RegExp":     "write string, and new RegExp(text) in the function",
}

// named reads what a word stands for, with its arguments: Array<string>, or Array.<string> as older comments have it.
func (r *reader) named(name string) (object, error) {
	arguments := []object{}
	if r.peek().is(".") && r.at+1 < len(r.tokens) && r.tokens[r.at+1].is("<") {
		r.at++
	}
	if r.take("<") {
		for {
			argument, _, err := r.union()
			if err != nil {
				return nil, err
			}
			arguments = append(arguments, argument)
			if r.take(">") {
				break
			}
			if err := r.need(","); err != nil {
				return nil, err
			}
		}
	}
	last := object{}
	if len(arguments) > 0 {
		last = arguments[len(arguments)-1]
	}
	switch name {
	case "Array", "ReadonlyArray", "array":
		return list(last), nil
	case "Promise", "PromiseLike", "Readonly", "NonNullable", "Awaited":
		return last, nil
	case "Record", "Object", "object":
		if len(arguments) == 0 {
			return keywords["object"], nil
		}
		out := object{{"type", "object"}}
		if values, ok := arguments[0].get("enum").([]any); ok && len(arguments) == 2 {
			out = out.with("propertyNames", object{{"enum", values}})
		}
		if len(last) > 0 {
			out = out.with("additionalProperties", last)
		}
		return out, nil
	case "Partial", "Required":
		return r.changed(name, last)
	}
	if known, ok := keywords[name]; ok {
		return known, nil
	}
	if remedy, ok := remedies[name]; ok {
		return nil, fmt.Errorf("JSON has no %s: %s", name, remedy)
	}
	return r.reference(name)
}

// changed makes all members of an object optional, or required.
func (r *reader) changed(how string, one object) (object, error) {
	if name, ok := strings.CutPrefix(fmt.Sprint(one.get("$ref")), "#/$defs/"); ok {
		one, _ = r.defs.get(name).(object)
	}
	members, ok := one.get("properties").(object)
	if !ok {
		return nil, fmt.Errorf("%s needs an object in the type %s", how, source(r.tokens))
	}
	var required []any
	for _, m := range members {
		if how == "Required" {
			required = append(required, m.name)
		}
	}
	return r.object(members, required), nil
}

// reference reads a type of the file.
func (r *reader) reference(name string) (object, error) {
	d, ok := r.file.types[name]
	if name == "import" {
		return nil, errors.New("types of other files are not read: write it here, with @typedef or as a type, or use tool({ parameters: … })")
	}
	if !ok {
		return nil, fmt.Errorf("the type %s is not in this file: write it here, with @typedef or as a type, or use tool({ parameters: … })", name)
	}
	ref := object{{"$ref", "#/$defs/" + name}}
	if r.defs.get(name) != nil {
		return ref, nil
	}
	if len(r.defs) == maxNames {
		return nil, fmt.Errorf("it names more than %d types", maxNames)
	}
	r.defs = r.defs.with(name, object{}) // a type may hold itself
	schema, err := r.define(d)
	if err != nil {
		return nil, err
	}
	if d.description != "" {
		schema = described(schema, d.description)
	}
	r.defs = r.defs.with(name, schema)
	return ref, nil
}

func (r *reader) define(d definition) (object, error) {
	if d.members != nil {
		properties, required, err := r.list(d.members)
		if err != nil {
			return nil, err
		}
		return r.object(properties, required), nil
	}
	schema, _, err := r.schemaOf(d.written)
	if err != nil || len(d.extends) == 0 {
		return schema, err
	}
	all := []object{}
	for _, name := range d.extends {
		base, err := r.named(name)
		if err != nil {
			return nil, err
		}
		all = append(all, base)
	}
	return r.merged(append(all, schema))
}
