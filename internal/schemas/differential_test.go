package schemas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// The library's check is the plain twin of ours. Here both check the same bodies.

// library compiles a schema with the library alone, and returns the library's check of a body.
func library(text string) (judge func(body []byte) (bool, error), err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.AssertFormat, c.AssertContent = true, true
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errors.New("nothing is fetched") }
	if err := c.AddResource("https://schema.invalid/", strings.NewReader(text)); err != nil {
		return nil, err
	}
	s, err := c.Compile("https://schema.invalid/")
	if err != nil {
		return nil, err
	}
	return func(body []byte) (ok bool, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		var v any
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.UseNumber()
		if err := decoder.Decode(&v); err != nil {
			return false, err
		}
		err = s.Validate(v)
		var wrong *jsonschema.ValidationError
		if errors.As(err, &wrong) {
			return false, nil
		}
		return err == nil, err
	}, nil
}

// unlike matches schemas that the library checks differently, and numbers that it would write out.
var unlike = regexp.MustCompile(`contentMediaType|contentSchema|"(ipv4|ip-address|uri-template|regex|duration|period)"|\\u|\\c|[0-9][eE][-+]?[0-9]{3}`)

// compare checks a body against a schema with our check and the library's, and also against the document that we make of the schema.
func compare(t *testing.T, text, body string) {
	t.Helper()
	s, err := schemas.Compile(json.RawMessage(text))
	if err != nil {
		return
	}
	out, err := s.Validate([]byte(body))
	accepted := err == nil
	violations := ""
	if !accepted {
		violations = violationsOf(t, err)
	} else if !json.Valid(out) {
		t.Fatalf("schema %s\nmade %s\nof %s", text, out, body)
	}
	checkDocument(t, s, text, body, accepted)
	if unlike.MatchString(text) || unlike.MatchString(body) || strings.Contains(violations, "json_invalid") || strings.Contains(violations, "too much work") ||
		strings.Contains(violations, "model_attributes_type") {
		return
	}
	judge, err := library(text)
	if err != nil {
		return
	}
	if accepted {
		if ok, err := judge(out); err == nil && !ok {
			t.Fatalf("schema %s\nwe accept %s, the library doesn't", text, out)
		}
	} else if !strings.Contains(text, `"default"`) {
		if ok, err := judge([]byte(body)); err == nil && ok {
			t.Fatalf("schema %s\nwe reject %s, the library doesn't: %s", text, body, violations)
		}
	}
}

var componentName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// assemble puts the parts of a document where its references expect them.
func assemble(t *testing.T, root json.RawMessage, definitions map[string]json.RawMessage) string {
	t.Helper()
	if root[0] != '{' {
		return string(root)
	}
	all, err := json.Marshal(map[string]any{"schemas": definitions})
	if err != nil {
		t.Fatal(err)
	}
	comma := ","
	if string(root) == "{}" {
		comma = ""
	}
	return `{"components":` + string(all) + comma + string(root[1:])
}

// checkDocument checks that the document of a schema is complete and means the same as the schema.
func checkDocument(t *testing.T, s *schemas.Schema, text, body string, accepted bool) {
	t.Helper()
	root, definitions := s.Document("the.tool")
	root2, definitions2 := s.Document("the.tool")
	if string(root) != string(root2) || !maps.EqualFunc(definitions, definitions2, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Fatalf("schema %s\nhas two documents", text)
	}
	for name, definition := range definitions {
		if !componentName.MatchString(name) || !strings.HasPrefix(name, "the.tool.") || !json.Valid(definition) {
			t.Fatalf("schema %s\nhas the component %q: %s", text, name, definition)
		}
	}
	document := assemble(t, root, definitions)
	d, err := schemas.Compile(json.RawMessage(document))
	if err != nil {
		if strings.Contains(err.Error(), "allowed") || strings.Contains(err.Error(), "more than") || strings.Contains(err.Error(), "too") || strings.Contains(err.Error(), "Nested") {
			return // the document is a little larger than the schema, and may exceed the bound
		}
		t.Fatalf("schema %s\ndocument %s\n%v", text, document, err)
	}
	_, err = d.Validate([]byte(body))
	if (err == nil) != accepted {
		var e *misfit.Error
		if errors.As(err, &e) && strings.Contains(violationsOf(t, err), "too much work") {
			return
		}
		t.Fatalf("schema %s\ndocument %s\nbody %s: accepted %v, by the document %v", text, document, body, accepted, err == nil)
	}
}

// pairs are schemas with bodies. Each pair is a seed.
var pairs = [][2]string{
	{orderSchema, `{"customer":"Ada","quantity":3,"items":[{"sku":"ABC-1","price":2.5}]}`},
	{orderSchema, smallOrder},
	{`{"type":"object","properties":{"a":{"default":{},"properties":{"b":{"default":1}}}}}`, `{}`},
	{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","additionalProperties":{"$ref":"#"},"default":{}}}}`, `{"a":{"b":{}}}`},
	{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true},"b":{"maximum":2,"exclusiveMaximum":false}},"dependencies":{"a":["b"]}}`, `{"a":1,"b":2}`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{"$ref":"#/definitions/s"},{"description":"x","$ref":"#/definitions/s","minLength":9}],"additionalItems":false}},"definitions":{"s":{"type":"string"}}}`, `{"a":["x","y"]}`},
	{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"unevaluatedProperties":false}`, `{"a":{"a":{"b":1}}}`},
	{`{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n","minProperties":1}},"allOf":[{"$ref":"#/$defs/b"}],"$defs":{"b":{"maxProperties":3}}}`, `{"a":{"a":{}}}`},
	{`{"$id":"https://example.com/x","properties":{"a":{"$ref":"y#z"},"b":{"$ref":"#/properties/a"}},"$defs":{"y":{"$id":"y","$defs":{"w":{"$anchor":"z","type":"string"}}}}}`, `{"a":"1","b":2}`},
	{`{"anyOf":[{"required":["a"]},{"properties":{"b":{"enum":[1,"x",null,[1],{"y":1.0}]}},"minProperties":1}],"patternProperties":{"^c":{"multipleOf":0.5}},"propertyNames":{"maxLength":3},"unevaluatedProperties":{"type":"integer"}}`, `{"b":{"y":1},"cc":1.5,"d":7}`},
	{`{"properties":{"a":{"contains":{"const":1},"minContains":2,"maxContains":3,"uniqueItems":true,"unevaluatedItems":{"type":"string"},"prefixItems":[{"type":"null"}]}}}`, `{"a":[null,1,1.0,"x"]}`},
	{`{"if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["x"]},"else":{"not":{"required":["x"]}},"dependentSchemas":{"y":{"minProperties":2}},"dependentRequired":{"z":["k"]}}`, `{"k":"a","x":1,"z":null}`},
	{`{"properties":{"a":{"format":"date-time"},"b":{"format":"email"},"c":{"contentEncoding":"base64"},"d":{"pattern":"^[a-z]+$","minLength":2,"maxLength":3}}}`, `{"a":"2024-01-01T00:00:00Z","b":"a@b.c","c":"YQ==","d":"abc"}`},
	{`{"type":["object","null"],"properties":{"a":{"oneOf":[{"type":"integer"},{"type":"number","exclusiveMaximum":3},{"type":"string"}]}}}`, `{"a":2.5}`},
}

func FuzzValidate(f *testing.F) {
	for _, pair := range pairs {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, text, body string) {
		if len(text) > 2<<10 || len(body) > 2<<10 {
			return // the library may take too long
		}
		compare(t, text, body)
	})
}

// Proves: Limits hold, one by one and in sum
func FuzzCompile(f *testing.F) {
	for _, pair := range pairs {
		f.Add(pair[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schemas.Compile(json.RawMessage(text))
		if err != nil {
			if s != nil || len(err.Error()) > 4<<10 {
				t.Fatalf("got %v and an error of %d bytes", s, len(err.Error()))
			}
			return
		}
		checkDocument(t, s, text, `{}`, func() bool { _, err := s.Validate(nil); return err == nil }())
	})
}

// FuzzDocument makes schemas from two numbers, so that they are meaningful, and bodies that often fit.
func FuzzDocument(f *testing.F) {
	if testkit.Race(f) {
		f.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	for i := range uint64(150) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		m := maker{rand.New(rand.NewPCG(a, b))}
		text := m.root()
		for range 8 {
			compare(t, text, m.object(3))
		}
	})
}

// A maker makes random schemas and values from a small set of names and values, so that they often match.
type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m maker) name() string { return m.one("a", "b", "c", "ab") }

func (m maker) value(depth int) string {
	switch n := m.IntN(10); {
	case n < 3 && depth > 0:
		return m.object(depth - 1)
	case n < 5 && depth > 0:
		var items []string
		for range m.IntN(4) {
			items = append(items, m.value(depth-1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return m.one("null", "true", "false", "0", "1", "2.0", "2.5", "-3", "1e1", `""`, `"a"`, `"ab"`, `"\u00e9"`)
}

func (m maker) object(depth int) string {
	members := map[string]string{}
	for range m.IntN(4) {
		members[m.name()] = m.value(depth)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, `"`+name+`": `+members[name])
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (m maker) schema(depth int, newer bool) string {
	if depth == 0 || m.IntN(12) == 0 {
		return m.one("true", "false", "{}", `{"type":"string"}`, `{"$ref":"#/$defs/x"}`, `{"$ref":"#/$defs/y"}`, `{"type":"object"}`)
	}
	sub := func() string { return m.schema(depth-1, newer) }
	list := func() string { return "[" + sub() + "," + sub() + "]" }
	members := func() string { return `{"a":` + sub() + `,"b":` + sub() + `}` }
	words := map[string]func() string{
		"type": func() string {
			return m.one(`"object"`, `"array"`, `["string","integer"]`, `["object","null","array"]`)
		},
		"properties":            members,
		"required":              func() string { return `["` + m.name() + `"]` },
		"additionalProperties":  sub,
		"patternProperties":     func() string { return `{"^a":` + sub() + `}` },
		"propertyNames":         func() string { return m.one(`{"maxLength":1}`, `{"pattern":"a"}`) },
		"minProperties":         func() string { return m.one("0", "1", "2") },
		"maxProperties":         func() string { return m.one("1", "2") },
		"items":                 sub,
		"contains":              sub,
		"minItems":              func() string { return "1" },
		"maxItems":              func() string { return "2" },
		"uniqueItems":           func() string { return "true" },
		"minLength":             func() string { return "1" },
		"maxLength":             func() string { return "1" },
		"minimum":               func() string { return m.one("1", "2.5") },
		"exclusiveMaximum":      func() string { return m.one("2", "3") },
		"multipleOf":            func() string { return m.one("2", "0.5") },
		"enum":                  func() string { return "[" + m.value(1) + "," + m.value(1) + "]" },
		"const":                 func() string { return m.value(1) },
		"allOf":                 list,
		"anyOf":                 list,
		"oneOf":                 list,
		"not":                   sub,
		"if":                    sub,
		"then":                  sub,
		"else":                  sub,
		"default":               func() string { return m.value(1) },
		"dependencies":          func() string { return `{"a":["b"],"b":` + sub() + `}` },
		"description":           func() string { return `"x"` },
		"$ref":                  func() string { return m.one(`"#"`, `"#/$defs/x"`, `"#/$defs/y"`, `"#/properties/a"`) },
		"unevaluatedProperties": sub,
		"unevaluatedItems":      sub,
		"dependentSchemas":      members,
		"dependentRequired":     func() string { return `{"a":["b"]}` },
		"minContains":           func() string { return m.one("0", "2") },
		"prefixItems":           list,
	}
	if !newer {
		words["items"] = func() string {
			if m.IntN(2) == 0 {
				return list()
			}
			return sub()
		}
		words["additionalItems"] = sub
	}
	names := slices.Sorted(maps.Keys(words))
	chosen := map[string]string{}
	for range 1 + m.IntN(4) {
		name := names[m.IntN(len(names))]
		chosen[name] = words[name]()
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		out = append(out, `"`+name+`":`+chosen[name])
	}
	return "{" + strings.Join(out, ",") + "}"
}

func (m maker) root() string {
	draft := m.one("http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
		"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema")
	newer := strings.Contains(draft, "2020")
	body := m.schema(3, newer)
	for body[0] != '{' || body == "{}" {
		body = m.schema(3, newer)
	}
	return `{"$schema":"` + draft + `","$defs":{"x":` + m.schema(2, newer) + `,"y":` + m.schema(1, newer) + `},` + body[1:]
}
