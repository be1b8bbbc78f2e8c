package comment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// useSchema is what an author can do about any type.
const useSchema = "use tool({ parameters: … }) with a JSON Schema or a schema of zod"

// keywords are the types that have names of their own, with JSON's name.
var keywords = map[string]string{
	"string": "string", "String": "string", "number": "number", "Number": "number", "integer": "integer", "int": "integer",
	"boolean": "boolean", "Boolean": "boolean", "bool": "boolean", "object": "object", "Object": "object",
}

// remedies are types that are not read, with what to write.
var remedies = map[string]string{
	"Date":       "JSON has no Date: write string, and new Date(text) in the function",
	"bigint":     "JSON has no bigint: write number, or string and BigInt(text) in the function",
	"Uint8Array": "JSON has no Uint8Array: write string, and have it in base64",
	"Buffer":     "JSON has no Buffer: write string, and have it in base64",
	"Map":        "JSON has no Map: write Record<string, …>",
	"Set":        "JSON has no Set: write an array",
	"Function":   "JSON has no Function: a tool takes and returns JSON",
	"symbol":     "JSON has no symbol: a tool takes and returns JSON",
	"RegExp":     "JSON has no RegExp: write string, and new RegExp(text) in the function",
	"Partial":    "Partial is not read: write the members, each with a ? behind its name",
	"import":     "types of other files are not read: write the type here, or " + useSchema,
}

// A types makes JSON Schemas of types. Arguments are closed: they refuse members that a type does not have.
type types struct {
	reader
	script *script
	closed bool
	depth  int
	within []string // the named types that it is in
}

// refuse returns the error for what is not read, with what to write.
func refuse(what string, remedies ...string) error {
	return fmt.Errorf("%s is not read: %s", what, strings.Join(append(remedies, useSchema), ", or "))
}

// misread is the error for a token that no type has at its place.
func (r *types) misread() error {
	if t := r.peek(); t.kind != end {
		return refuse(strconv.Quote(t.text) + " in a type")
	}
	return refuse("a type without its end")
}

func (r *types) need(what string) error {
	if !r.take(what) {
		return r.misread()
	}
	return nil
}

// union reads "A | B". It returns whether the type may be undefined, too.
func (r *types) union() (_ *schema, optional bool, err error) {
	if r.depth++; r.depth > maxDepth {
		return nil, false, errors.New("types are nested too deep")
	}
	defer func() { r.depth-- }()
	r.take("|")
	var all []*schema
	for null := false; ; {
		if r.take("null") {
			null = true
		} else if r.take("undefined") || r.take("void") {
			optional = true
		} else {
			one, err := r.array()
			if err != nil {
				return nil, false, err
			}
			all = append(all, one)
		}
		if !r.take("|") {
			return union(all, null), optional, nil
		}
	}
}

// array reads "A[]".
func (r *types) array() (*schema, error) {
	r.take("readonly")
	one, err := r.primary()
	for err == nil && r.peek().is("[") && !r.peek().lines {
		r.at++
		if !r.take("]") {
			return nil, refuse("a type of a member, as in A[…]", "write that type itself")
		}
		one = list(one)
	}
	return one, err
}

func list(items *schema) *schema {
	if items.isAny() {
		items = nil
	}
	return &schema{Type: kinds{"array"}, Items: items}
}

// primary reads a type without what follows it.
func (r *types) primary() (*schema, error) {
	begin := r.reader
	t := r.next()
	switch {
	case t.is("("):
		if begin.brackets(); begin.peek().is("=>") {
			return nil, errors.New("a function is not JSON: a tool takes and returns JSON")
		}
		inner, optional, err := r.union()
		if err == nil && optional {
			err = refuse("undefined within ( )", "write ? behind the name")
		}
		if err == nil {
			err = r.need(")")
		}
		return inner, err
	case t.is("{"):
		return r.members()
	case t.is("["):
		return nil, refuse("a tuple [A, B]", "write an array, as in string[]")
	case t.is("*"):
		return &schema{}, nil
	case t.kind == text:
		value, err := unquoted(t.text)
		return &schema{Type: kinds{"string"}, Enum: []any{value}}, err
	case t.kind == number || t.is("-") && r.peek().kind == number:
		digits := t.text
		if t.is("-") {
			digits += r.next().text
		}
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is not read: write it in decimal digits", digits)
		}
		if n == float64(int64(n)) {
			return &schema{Type: kinds{"integer"}, Enum: []any{n}}, nil
		}
		return &schema{Type: kinds{"number"}, Enum: []any{n}}, nil
	case t.is("true") || t.is("false"):
		return &schema{Type: kinds{"boolean"}, Enum: []any{t.is("true")}}, nil
	case t.kind == word:
		return r.named(t)
	}
	r.reader = begin
	return nil, r.misread()
}

// named reads what a word stands for.
func (r *types) named(t token) (*schema, error) {
	if d := r.script.types[t.text]; d != nil {
		return r.defined(t.text, d)
	}
	kind, isKeyword := keywords[t.text]
	remedy, isForeign := remedies[t.text]
	switch generic := r.peek().is("<"); {
	case t.is("Array") || t.is("ReadonlyArray") || t.is("array"):
		if !generic {
			return list(&schema{}), nil
		}
		items, err := r.argument()
		if err != nil {
			return nil, err
		}
		return list(items), nil
	case t.is("Promise") && generic:
		return r.argument()
	case t.is("Record") && generic:
		r.at++
		if !r.take("string") || !r.peek().is(",") {
			return nil, refuse("a Record with keys other than string", "write Record<string, …>")
		}
		values, err := r.argument()
		out := &schema{Type: kinds{"object"}}
		if err == nil && !values.isAny() {
			out.Others = values
		}
		return out, err
	case isForeign:
		return nil, errors.New(remedy)
	case generic || r.peek().is("."):
		return nil, refuse(t.text+r.peek().text+"…", "write string[] or Record<string, …>", "write the type itself")
	case t.is("any") || t.is("unknown"):
		return &schema{}, nil
	case isKeyword:
		return &schema{Type: kinds{kind}}, nil
	}
	return nil, fmt.Errorf("the type %s is not in this file: write its members here, as { name: string }, or as an interface or a type, or %s", t.text, useSchema)
}

// argument reads the last argument of a generic type, behind < or a comma.
func (r *types) argument() (*schema, error) {
	r.at++
	one, _, err := r.union()
	if err == nil {
		err = r.need(">")
	}
	return one, err
}

// defined reads a type of the file.
func (r *types) defined(name string, d *definition) (*schema, error) {
	switch {
	case d.wrong != "":
		return nil, fmt.Errorf("the type %s %s, or %s", name, d.wrong, useSchema)
	case slices.Contains(r.within, name):
		return nil, fmt.Errorf("the type %s holds itself, which is not read: %s", name, useSchema)
	case r.peek().is("<") || d.end == 0:
		return nil, refuse("the type " + name)
	}
	if r.script.work += r.script.tokens[d.end].at - r.script.tokens[d.begin].at + len(d.doc); r.script.work > maxWork {
		return nil, errors.New("its types are too large: " + useSchema)
	}
	inner := &types{reader: reader{r.script.tokens, d.begin}, script: r.script, closed: r.closed, depth: r.depth, within: append(r.within[:len(r.within):len(r.within)], name)}
	out, optional, err := inner.union()
	switch {
	case err != nil:
		return nil, err
	case inner.at != d.end:
		return nil, fmt.Errorf("the type %s: %w", name, inner.misread())
	case optional:
		return nil, fmt.Errorf("the type %s may be undefined: write ? behind the names of the members that have it", name)
	}
	out.describe(description(d.doc))
	return out, nil
}

// members reads the members of an object from behind its bracket to the closing one.
func (r *types) members() (*schema, error) {
	out := r.object()
	for !r.take("}") {
		t := r.next()
		doc := t.doc
		if t.is("readonly") && (r.peek().kind == word || r.peek().kind == text) {
			t = r.next()
		}
		name := t.text
		switch {
		case t.kind == text:
			var err error
			if name, err = unquoted(t.text); err != nil {
				return nil, err
			}
		case t.is("["):
			return nil, refuse("[key: …]", "write Record<string, …>")
		case t.kind != word:
			return nil, refuse(strconv.Quote(t.text) + " as a name")
		}
		optional := r.take("?")
		if r.peek().is("(") || r.peek().is("<") {
			return nil, fmt.Errorf("%s is a function: a tool takes and returns JSON", name)
		}
		one, maybe := &schema{}, false
		if r.take(":") {
			var err error
			if one, maybe, err = r.union(); err != nil {
				return nil, err
			}
		}
		one.describe(description(doc))
		if err := out.add(name, one, optional || maybe); err != nil {
			return nil, err
		}
		if !r.take(";") && !r.take(",") && !r.peek().is("}") && !r.peek().lines {
			return nil, r.misread()
		}
	}
	return out, nil
}

// object returns the schema of an object without members.
func (r *types) object() *schema {
	out := &schema{Type: kinds{"object"}, Properties: properties{}}
	if r.closed {
		out.Others = false
	}
	return out
}

// add adds a member to an object.
func (s *schema) add(name string, one *schema, optional bool) error {
	if len(s.Properties) == maxNames {
		return fmt.Errorf("an object has more than %d members", maxNames)
	}
	if slices.ContainsFunc(s.Properties, func(p property) bool { return p.name == name }) {
		return fmt.Errorf("%s is named twice: name it once", name)
	}
	if s.Properties = append(s.Properties, property{name, one}); !optional {
		s.Required = append(s.Required, name)
	}
	return nil
}

func (s *schema) describe(text string) {
	if text != "" {
		s.Description = text
	}
}
