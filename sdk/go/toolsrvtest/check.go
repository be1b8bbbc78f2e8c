package toolsrvtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A checker checks arguments against a schema that the SDK derived. It knows the keywords that the SDK writes; a
// schema that a Describer wrote may say more, and the rest of it is left to the server.
type checker struct {
	root       map[string]any
	violations []string
}

func newChecker(parameters map[string]any) *checker { return &checker{root: parameters} }

// check returns the arguments with the schema's defaults filled in, or an *ArgumentsError.
func (c *checker) check(arguments string) ([]byte, error) {
	if arguments == "" { // a request without a body
		arguments = "{}"
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("there is more after the value")
		}
	}
	if err != nil {
		return nil, &ArgumentsError{[]string{"no JSON: " + err.Error()}}
	}
	c.fill(c.root, v)
	c.value(c.root, v, "")
	if c.violations != nil {
		return nil, &ArgumentsError{c.violations}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(v)
	return out.Bytes(), err
}

func (c *checker) fault(path, format string, args ...any) {
	if path == "" {
		path = "arguments"
	}
	c.violations = append(c.violations, path+": "+fmt.Sprintf(format, args...))
}

// resolve follows a reference.
func (c *checker) resolve(s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	defs, _ := c.root["$defs"].(map[string]any)
	target, _ := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	return target
}

// parts are the schemas that v must fit besides s itself.
func parts(s map[string]any) (out []map[string]any) {
	list, _ := s["allOf"].([]any)
	for _, e := range list {
		if part, ok := e.(map[string]any); ok {
			out = append(out, part)
		}
	}
	return out
}

// fill sets missing members that have a default, at any depth.
func (c *checker) fill(s map[string]any, v any) {
	s = c.resolve(s)
	for _, part := range parts(s) {
		c.fill(part, v)
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			member, _ := p.(map[string]any)
			if _, there := v[name]; !there {
				if d, ok := member["default"]; ok {
					v[name] = d
				}
			}
			if value, there := v[name]; there {
				c.fill(member, value)
			}
		}
		if rest, ok := s["additionalProperties"].(map[string]any); ok {
			for name, value := range v {
				if _, declared := properties[name]; !declared {
					c.fill(rest, value)
				}
			}
		}
	case []any:
		if items, ok := s["items"].(map[string]any); ok {
			for _, e := range v {
				c.fill(items, e)
			}
		}
	}
}

// value checks v, which stands at path.
func (c *checker) value(s map[string]any, v any, path string) {
	s = c.resolve(s)
	for _, part := range parts(s) {
		c.value(part, v, path)
	}
	if choices, ok := s["anyOf"].([]any); ok && !slices.ContainsFunc(choices, func(choice any) bool { return c.accepts(choice, v) }) {
		c.fault(path, "fits none of the alternatives")
	}
	if want, ok := s["type"]; ok && !hasType(want, v) {
		c.fault(path, "is %s, not of the type %v", kind(v), want)
		return
	}
	if enum, ok := s["enum"].([]any); ok && !slices.ContainsFunc(enum, func(e any) bool { return equal(e, v) }) {
		c.fault(path, "is not one of %v", enum)
	}
	switch v := v.(type) {
	case string:
		c.text(s, v, path)
	case json.Number:
		c.number(s, v, path)
	case []any:
		c.count(s, "minItems", "maxItems", len(v), "elements", path)
		if items, ok := s["items"].(map[string]any); ok {
			for i, e := range v {
				c.value(items, e, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	case map[string]any:
		c.object(s, v, path)
	}
}

// accepts reports whether a schema accepts v.
func (c *checker) accepts(s, v any) bool {
	aside := &checker{root: c.root}
	if s, ok := s.(map[string]any); ok {
		aside.value(s, v, "")
	}
	return aside.violations == nil
}

func (c *checker) object(s map[string]any, v map[string]any, path string) {
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	required, _ := s["required"].([]any)
	for _, r := range required {
		if name, _ := r.(string); !has(v, name) {
			c.fault(below(name), "is missing")
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range sortedKeys(v) {
		if names, ok := s["propertyNames"].(map[string]any); ok {
			c.value(names, name, below(name))
		}
		if member, ok := properties[name].(map[string]any); ok {
			c.value(member, v[name], below(name))
			continue
		}
		switch rest := s["additionalProperties"].(type) {
		case bool:
			if !rest {
				c.fault(below(name), "is not a member that the tool takes")
			}
		case map[string]any:
			c.value(rest, v[name], below(name))
		}
	}
}

func (c *checker) text(s map[string]any, v, path string) {
	c.count(s, "minLength", "maxLength", utf8.RuneCountInString(v), "characters", path)
	if pattern, ok := s["pattern"].(string); ok {
		re, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			c.fault(path, "its schema has a broken pattern: %v", err)
		case !re.MatchString(v):
			c.fault(path, "does not match %s", pattern)
		}
	}
	if s["contentEncoding"] == "base64" {
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			c.fault(path, "is not base64 with its padding")
		}
	}
	if format, ok := s["format"].(string); ok && !hasFormat(format, v) {
		c.fault(path, "is not a valid %s", format)
	}
}

func (c *checker) number(s map[string]any, v json.Number, path string) {
	n := rational(v)
	for _, bound := range []struct {
		key   string
		fails func(cmp int) bool
	}{
		{"minimum", func(cmp int) bool { return cmp < 0 }},
		{"maximum", func(cmp int) bool { return cmp > 0 }},
		{"exclusiveMinimum", func(cmp int) bool { return cmp <= 0 }},
		{"exclusiveMaximum", func(cmp int) bool { return cmp >= 0 }},
	} {
		limit, ok := s[bound.key].(json.Number)
		if !ok {
			continue
		}
		if l := rational(limit); n == nil || l != nil && bound.fails(n.Cmp(l)) {
			c.fault(path, "%s is beyond the %s %s", v, bound.key, limit)
		}
	}
}

func (c *checker) count(s map[string]any, least, most string, n int, of, path string) {
	number := func(key string) (int, bool) {
		limit, _ := s[key].(json.Number)
		v, err := strconv.Atoi(limit.String())
		return v, err == nil
	}
	if limit, ok := number(least); ok && n < limit {
		c.fault(path, "has %d %s, and %d is the least", n, of, limit)
	}
	if limit, ok := number(most); ok && n > limit {
		c.fault(path, "has %d %s, and %d is the most", n, of, limit)
	}
}

// rational returns the exact value of a number, or nil where it has an exponent that no argument needs.
func rational(v json.Number) *big.Rat {
	if f, err := v.Float64(); err != nil || f != 0 && math.Abs(f) < 1e-300 {
		return nil
	}
	n, ok := new(big.Rat).SetString(v.String())
	if !ok {
		return nil
	}
	return n
}

func hasType(want, v any) bool {
	switch want := want.(type) {
	case string:
		n, isNumber := v.(json.Number)
		if want == "integer" && isNumber {
			r := rational(n)
			return r != nil && r.IsInt()
		}
		return kind(v) == want
	case []any:
		return slices.ContainsFunc(want, func(w any) bool { return hasType(w, v) })
	}
	return true
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// equal compares two values; numbers by their numeric value.
func equal(a, b any) bool {
	m, ok := a.(json.Number)
	n, also := b.(json.Number)
	if ok && also {
		x, y := rational(m), rational(n)
		return x != nil && y != nil && x.Cmp(y) == 0
	}
	return reflect.DeepEqual(a, b)
}

func has(v map[string]any, name string) bool {
	_, ok := v[name]
	return ok
}

func sortedKeys(v map[string]any) []string {
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
