package schemas_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

func TestFlat(t *testing.T) {
	t.Parallel()
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for _, test := range []struct{ name, schema, want, rest string }{
		{"as it is", `{"type":"object", "properties":{"a":{"anyOf":[true]}}}`, `{"type":"object", "properties":{"a":{"anyOf":[true]}}}`, ""},
		{"no properties", `{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{"a root that is a reference", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"$ref":"#/$defs/B"}},"required":["a"]},"B":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/B"}},"required":["a"],"$defs":{"B":{"type":"string"}}}`, ""},
		{"parts that fit", `{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"properties":{"a":{"minLength":1},"b":true},"required":["b"]},{"required":["a","b"]}]}`,
			`{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"minLength":1}]},"b":true},"required":["b","a"]}`, ""},
		{"a part that is closed", `{"type":"object","required":["a"],"allOf":[{"properties":{"a":true}},{"properties":{"a":true,"b":true},"additionalProperties":false}]}`,
			`{"type":"object","properties":{"a":{"allOf":[true,true]},"b":true},"required":["a"],"additionalProperties":false}`, ""},
		{"two parts that are closed", `{"type":"object","required":["a"],"allOf":[{"properties":{"a":true},"additionalProperties":false},{"properties":{"b":true},"additionalProperties":false}]}`,
			`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false,"dependentSchemas":{"a":{"properties":{"b":true},"additionalProperties":false}}}`, ""},
		{"alternatives with a member in common", `{"type":"object","oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string","description":"the x"}},"required":["kind","x"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}`,
			`{"type":"object","properties":{"kind":{},"x":{"description":"the x"}},"required":["kind"],"dependentSchemas":{"kind":{"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string","description":"the x"}},"required":["kind","x"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}}}`, ""},
		{"closed", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false,"minProperties":1,"dependentSchemas":{"a":{"$ref":"#/$defs/whole"},"b":{"$ref":"#/$defs/whole"}},"$defs":{"whole":{"anyOf":[{"required":["a"]},{"required":["b"]}]}}}`, ""},
		{"closed, and may be empty", `{"type":"object","properties":{"a":{}},"not":{"required":["a"]},"additionalProperties":false,"minProperties":0}`,
			`{"type":"object","properties":{"a":{}},"additionalProperties":false,"minProperties":0,"dependentSchemas":{"a":{"$ref":"#/$defs/whole"}},"$defs":{"whole":{"not":{"required":["a"]}}}}`, ""},
		{"open", `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"$ref":"#/$defs/B"}],"$defs":{"B":{"required":["b"],"properties":{"b":{}}}}}`,
			`{"type":"object","properties":{"a":{}},"$defs":{"B":{"required":["b"],"properties":{"b":{}}}}}`, `{"anyOf":[{"required":["a"]},{"$ref":"#/$defs/B"}]}`},
		{"a condition", `{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`,
			`{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"dependentSchemas":{"a":{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}}}`, ""},
		{"a list of types", `{"type":["object"],"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, ""},
		{"another draft", `{` + draft7 + `"type":"object","properties":{"a":{"items":[{"$ref":"#/definitions/A"}]}},"dependencies":{"a":["b"]},"definitions":{"A":{"type":"string"}}}`,
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"prefixItems":[{"$ref":"#/$defs/A"}]}},"dependentRequired":{"a":["b"]},"$defs":{"A":{"type":"string"}}}`, ""},
		{"addresses", `{"$id":"https://example.com/x","type":"object","properties":{"a":{"$ref":"#z"}},"$defs":{"Z":{"$anchor":"z"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/Z"}},"$defs":{"Z":{}}}`, ""},
		{"never", `{"type":"object","allOf":[{"type":"string"}],"required":["a"]}`, `{"type":"object","properties":{},"required":["a"],"dependentSchemas":{"a":false}}`, ""},
	} {
		s, err := schemas.CompileParameters(json.RawMessage(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if text, rest := s.Flat(); string(text) != test.want || string(rest) != test.rest {
			t.Errorf("%s: got\n%s\n%s, want\n%s\n%s", test.name, text, rest, test.want, test.rest)
		}
		sameValues(t, s, objects())
	}
	if text, _ := resultOf(t, `{"type":"string"}`).Flat(); text != nil {
		t.Errorf("the schema of a string says object: %s", text)
	}
}

func TestStandalone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type": "object", "allOf": [true]}`:                                                            `{"type": "object", "allOf": [true]}`,
		`{"type":["object"],"title":"type"}`:                                                             `{"type":"object","title":"type"}`,
		`{"anyOf":[{"type":"object"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"type":"object"}}}`:             `{"type":"object","anyOf":[{"type":"object"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"type":"object"}}}`,
		`{"$id":"https://example.com/x","$ref":"#/$defs/A","$defs":{"A":{"type":"object","title":"A"}}}`: `{"type":"object","title":"A"}`,
		`{"type":["object","null"]}`:                                                                     "",
		`{"type":"string"}`:                                                                              "",
		`false`:                                                                                          "",
	} {
		if got := string(resultOf(t, text).Standalone()); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func resultOf(t testing.TB, text string) *schemas.Schema {
	t.Helper()
	s, err := schemas.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// sameValues checks that the forms of a schema, together with the rest, allow the same values as the schema.
func sameValues(t *testing.T, s *schemas.Schema, values []string) (exact bool) {
	t.Helper()
	text, rest := s.Flat()
	all := string(text)
	if rest != nil {
		all = strings.TrimSuffix(all, "}") + `,"allOf":[` + string(rest) + `]}`
	}
	flat, err := schemas.CompileParameters(json.RawMessage(all))
	if err != nil {
		t.Fatalf("%.500s became %.500s, rest %.100s: %v", s.JSON(), text, rest, err)
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal(text, &root); err != nil || string(root["type"]) != `"object"` || root["properties"] == nil {
		t.Fatalf("%s became %s: %v", s.JSON(), text, err)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "enum", "const", "$id"} {
		if root[key] != nil {
			t.Fatalf("%s became %s, with %s at the root", s.JSON(), text, key)
		}
	}
	standalone, err := schemas.CompileParameters(s.Standalone())
	if err != nil {
		t.Fatalf("%s became %s: %v", s.JSON(), s.Standalone(), err)
	}
	for _, value := range values {
		want := s.Check([]byte(value)) == nil
		if got := flat.Check([]byte(value)) == nil; got != want {
			t.Errorf("%.500s of %.500s, rest %.200s: %s is admitted: %t, want %t", text, s.JSON(), rest, value, got, want)
			return false
		}
		if got := standalone.Check([]byte(value)) == nil; got != want {
			t.Errorf("%.500s of %.500s: %s is admitted: %t, want %t", s.Standalone(), s.JSON(), value, got, want)
			return false
		}
	}
	return rest == nil
}

// objects returns all objects of a few members with a few values.
func objects() []string {
	all := []string{""}
	for _, name := range []string{"a", "b", "c", "x"} {
		var more []string
		for _, members := range all {
			for _, value := range []string{"", `1`, `"s"`} {
				member := fmt.Sprintf("%q:%s", name, value)
				switch {
				case value == "":
					member = members
				case members != "":
					member = members + "," + member
				}
				more = append(more, member)
			}
		}
		all = more
	}
	for i := range all {
		all[i] = "{" + all[i] + "}"
	}
	return all
}

// randomSchema returns a schema for an object with these members.
func randomSchema(r *rand.Rand, depth int) string {
	if r.IntN(12) == 0 {
		return []string{"true", "false"}[r.IntN(2)]
	}
	name := func() string { return []string{"a", "b", "c"}[r.IntN(3)] }
	inner := func() string {
		return []string{"true", "false", `{"type":"string"}`, `{"const":1}`, "{}"}[r.IntN(5)]
	}
	below := func() string {
		if depth == 0 {
			return fmt.Sprintf(`{"required":[%q]}`, name())
		}
		return randomSchema(r, depth-1)
	}
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	for _, keyword := range r.Perm(20)[:r.IntN(5)] {
		switch keyword {
		case 0, 1:
			add(`"properties":{"a":%s,"b":%s}`, inner(), inner())
			if keyword == 1 {
				parts[len(parts)-1] = fmt.Sprintf(`"properties":{%q:%s}`, name(), inner())
			}
		case 2:
			add(`"required":[%q]`, name())
		case 3:
			add(`"additionalProperties":%s`, []string{"false", inner()}[r.IntN(2)])
		case 4:
			add(`"patternProperties":{"^[%sx]":%s}`, name(), inner())
		case 5:
			add(`"allOf":[%s,%s]`, below(), below())
		case 6:
			add(`"anyOf":[%s,%s]`, below(), below())
		case 7:
			add(`"oneOf":[%s,%s]`, below(), below())
		case 8:
			add(`"not":%s`, below())
		case 9:
			add(`"if":%s,"then":%s,"else":%s`, below(), below(), below())
		case 10:
			add(`"if":%s`, below())
		case 11:
			add(`"minProperties":%d`, r.IntN(3))
		case 12:
			add(`"maxProperties":%d`, 1+r.IntN(3))
		case 13:
			add(`"propertyNames":{"enum":["a","b","x"]}`)
		case 14:
			add(`"dependentRequired":{%q:[%q]}`, name(), name())
		case 15:
			add(`"dependentSchemas":{%q:%s}`, name(), below())
		case 16:
			add(`"unevaluatedProperties":%s`, inner())
		case 17:
			add(`"$ref":"#/$defs/%s"`, []string{"one", "two"}[r.IntN(2)])
		case 18:
			add(`"type":%s`, []string{`"object"`, `["object","null"]`, `"string"`}[r.IntN(3)])
		case 19:
			add(`"enum":[{},{"a":1}]`)
		}
	}
	// A schema can't have two members named properties or two named if.
	slices.SortFunc(parts, func(a, b string) int { return strings.Compare(a[:5], b[:5]) })
	parts = slices.CompactFunc(parts, func(a, b string) bool {
		return strings.HasPrefix(a, `"properties"`) && strings.HasPrefix(b, `"properties"`) || strings.HasPrefix(a, `"if"`) && strings.HasPrefix(b, `"if"`)
	})
	return "{" + strings.Join(parts, ",") + "}"
}

// checkRandom compares the forms of a schema with the schema, and returns whether the flat form needs no rest.
func checkRandom(t *testing.T, seed uint64) (compiled, exact bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	text := randomSchema(r, 2)
	if strings.HasPrefix(text, "{") && !strings.Contains(text, `"type"`) {
		text = `{"type":"object"` + strings.TrimSuffix(","+text[1:], ",}")
		if !strings.HasSuffix(text, "}") {
			text += "}"
		}
	}
	if !strings.HasPrefix(text, "{") {
		return false, false
	}
	text = strings.TrimSuffix(text, "}") + fmt.Sprintf(`,"$defs":{"one":%s,"two":{"required":["a"],"properties":{"c":{}}}}}`, randomPlain(r))
	s, err := schemas.CompileParameters(json.RawMessage(text))
	if err != nil {
		return false, false
	}
	return true, sameValues(t, s, objects())
}

// randomPlain returns a schema without references.
func randomPlain(r *rand.Rand) string {
	for {
		if text := randomSchema(r, 1); !strings.Contains(text, "$ref") {
			return text
		}
	}
}

// TestFlatOfMany compares the forms of random schemas with the schemas, for all objects with a few members.
func TestFlatOfMany(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	compiled, exact := 0, 0
	for seed := range uint64(400) {
		c, e := checkRandom(t, seed)
		if c {
			compiled++
		}
		if e {
			exact++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if compiled < 200 || exact < compiled/2 {
		t.Errorf("only %[2]d of %[1]d schemas could be flattened: the comparison means little", compiled, exact)
	}
	t.Logf("%d schemas, %d of them flat", compiled, exact)
}

func FuzzFlat(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkRandom(t, seed) })
}

// TestFlatOfSuite compares the forms of the official tests' schemas with these schemas, for the values of these tests.
func TestFlatOfSuite(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	compared := 0
	for _, g := range schemas.SuiteOfModule(t) {
		text := string(g.Schema)
		s, err := schemas.CompileParameters(g.Schema)
		if err != nil && strings.HasPrefix(text, "{") {
			s, err = schemas.CompileParameters(json.RawMessage(`{"type":"object",` + text[1:]))
		}
		if err != nil {
			continue
		}
		values := []string{"{}"}
		for _, test := range g.Tests {
			values = append(values, string(test.Data))
		}
		sameValues(t, s, values)
		compared++
	}
	if compared < 300 {
		t.Errorf("%d schemas: the comparison means little", compared)
	}
}

// TestFlatOfLarge: schemas with many rules for few members cost little.
func TestFlatOfLarge(t *testing.T) {
	t.Parallel()
	var parts []string
	for i := range 2000 {
		parts = append(parts, fmt.Sprintf(`{"properties":{"a":{"maximum":%d}}}`, i+10))
	}
	sameValues(t, resultOf(t, `{"type":"object","allOf":[`+strings.Join(parts, ",")+`]}`), []string{`{"a":1}`, `{"a":10}`, `{"a":11}`})
	var alternatives, properties []string
	for i := range 1000 {
		alternatives = append(alternatives, fmt.Sprintf(`{"required":["p%d"]}`, i))
		properties = append(properties, fmt.Sprintf(`"p%d":{}`, i))
	}
	sameValues(t, resultOf(t, `{"type":"object","additionalProperties":false,"anyOf":[`+strings.Join(alternatives, ",")+`],"properties":{`+strings.Join(properties, ",")+`}}`), []string{`{}`, `{"p999":1}`, `{"q":1}`})
}
