package schemas_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       []string // parts of the error
	}{
		{"no JSON", `{"type":`, []string{"not JSON", "byte 8"}},
		{"duplicate keyword", `{"type":"object","type":"string"}`, []string{"Duplicate property name", "byte 17"}},
		{"unknown draft", `{"$schema":"https://example.com/mine"}`, []string{"/$schema", "https://example.com/mine", "https://json-schema.org/draft/2020-12/schema"}},
		{"second draft", `{"$defs":{"a":{"$schema":"http://json-schema.org/draft-07/schema#"}}}`, []string{"/$defs/a/$schema", "one draft"}},
		{"wrong type of keyword", `{"properties":{"a":{"type":5}}}`, []string{"/properties/a/type"}},
		{"unknown type", `{"properties":{"a":{"type":"text"}}}`, []string{"/properties/a/type", `must be one of "array", "boolean"`}},
		{"unknown type in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"text"}`, []string{"/type", `must be one of "array", "boolean"`}},
		{"type in another case", `{"type":"String","minLength":"a"}`, []string{"/type", `must be one of "array", "boolean"`}},
		{"negative length", `{"minLength":-1}`, []string{"/minLength"}},
		{"no schema", `[]`, []string{"the top"}},
		{"a number", `5`, []string{"the top"}},
		{"boolean in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":true}}`, []string{"/properties/a"}},
		{"reference to the network", `{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, []string{"/properties/a/$ref", `"https://example.com/a.json"`, "outside the file", "$defs"}},
		{"reference to a file", `{"$ref":"file:///etc/passwd"}`, []string{"/$ref", "file:///etc/passwd", "outside the file"}},
		{"relative reference", `{"$ref":"other.json#/a"}`, []string{"other.json", "outside the file"}},
		{"reference to a metaschema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, []string{"outside the file"}},
		{"reference that is not reached", `{"$defs":{"a":{"$ref":"b.json"}}}`, []string{"/$defs/a/$ref", "outside the file"}},
		{"reference to nothing", `{"$ref":"#/$defs/a"}`, []string{"/$ref", "points to nothing"}},
		{"reference to an anchor that is missing", `{"$ref":"#a"}`, []string{"points to nothing"}},
		{"reference to something that is not a schema", `{"$ref":"#/x","x":5}`, []string{"doesn't point to a schema"}},
		{"reference to a bad schema", `{"$ref":"#/x","x":{"type":5}}`, []string{"/$ref", "/x/type"}},
		{"bad escape in a reference", `{"$ref":"#/%zz"}`, []string{"/$ref"}},
		{"address that is not a URI", `{"$id":"%zz"}`, []string{"/$id", `"%zz" is not a valid address`}},
		{"two schemas with one address", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, []string{"names two schemas"}},
		{"two anchors with one name", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, []string{"names two schemas"}},
		{"cycle", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, []string{"/$defs/a", "never ends"}},
		{"dynamic reference", `{"$dynamicRef":"#a","$defs":{"x":{"$id":"x","$dynamicAnchor":"a"},"y":{"$dynamicAnchor":"a"}}}`, []string{"/$dynamicRef", `use "$ref"`}},
		{"recursive reference", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"$defs":{"x":{"$id":"x","$recursiveAnchor":true}}}`, []string{`use "$ref"`}},
		{"look-ahead", `{"properties":{"a":{"pattern":"^(?=a)b"}}}`, []string{"/properties/a/pattern", "(?=", "look-around", "RE2"}},
		{"back-reference", `{"pattern":"(a)\\1"}`, []string{"/pattern", "back-references"}},
		{"pattern of a name", `{"patternProperties":{"(":{}}}`, []string{"/patternProperties/("}},
		{"default of a wrong type", `{"properties":{"a":{"type":"string","default":5}}}`, []string{"/properties/a/default", "valid string"}},
		{"default through a reference", `{"properties":{"a":{"$ref":"#/$defs/a","default":"x"}},"$defs":{"a":{"type":"integer"}}}`, []string{"/properties/a/default", "valid integer"}},
		{"multipleOf 0", `{"multipleOf":0}`, []string{"/multipleOf"}},
		{"long multipleOf", `{"multipleOf":12345678901234567890.5}`, []string{"/multipleOf", "19 digits"}},
		{"keyword of a later draft is not a reference", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":5}`, []string{"/$ref"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := schemas.Compile(json.RawMessage(test.text))
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to contain %q", err, want)
				}
			}
		})
	}
}

func TestCompileParameters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		ok         bool
	}{
		{"object", `{"type":"object"}`, true},
		{"list of one", `{"type":["object"]}`, true},
		{"reference", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, true},
		{"reference in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","definitions":{"a":{"type":"object"}}}`, true},
		{"allOf", `{"allOf":[{},{"type":"object"}]}`, true},
		{"oneOf", `{"oneOf":[{"type":"object"},{"type":"object","required":["a"]}]}`, true},
		{"object or null", `{"type":["object","null"]}`, false},
		{"no type", `{"properties":{}}`, false},
		{"string", `{"type":"string"}`, false},
		{"true", `true`, false},
		{"false", `false`, false},
		{"anyOf", `{"anyOf":[{"type":"object"},{}]}`, false},
	} {
		_, err := schemas.CompileParameters(json.RawMessage(test.text))
		if (err == nil) != test.ok {
			t.Errorf("%s: got %v, want ok to be %v", test.name, err, test.ok)
		}
		if err != nil && !strings.Contains(err.Error(), `add "type": "object"`) {
			t.Errorf("%s: the error has no remedy: %v", test.name, err)
		}
	}
}

func TestMustCompile(t *testing.T) {
	t.Parallel()
	const text = `{"type": "object"}`
	if got := string(schemas.MustCompile(text).JSON()); got != text {
		t.Errorf("JSON: got %s, want %s", got, text)
	}
	defer func() {
		if r := recover(); r == nil {
			t.Error("a wrong schema does not panic")
		}
	}()
	schemas.MustCompile(`{"type": 5}`)
}

// The same keyword may have different meanings in different drafts.
func TestDrafts(t *testing.T) {
	t.Parallel()
	const (
		draft4    = "http://json-schema.org/draft-04/schema#"
		draft6    = "http://json-schema.org/draft-06/schema#"
		draft7    = "https://json-schema.org/draft-07/schema"
		draft2019 = "https://json-schema.org/draft/2019-09/schema"
		draft2020 = "https://json-schema.org/draft/2020-12/schema"
	)
	for _, test := range []struct {
		name, draft, schema, body string
		ok                        bool
	}{
		{"draft 4: exclusive", draft4, `"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}`, `{"a":1}`, false},
		{"draft 4: not exclusive", draft4, `"properties":{"a":{"maximum":1,"exclusiveMaximum":false}}`, `{"a":1}`, true},
		{"draft 4: id", draft4, `"properties":{"a":{"$ref":"#x"}},"definitions":{"b":{"id":"#x","type":"string"}}`, `{"a":1}`, false},
		{"draft 4 has no const", draft4, `"properties":{"a":{"const":2}}`, `{"a":1}`, true},
		{"draft 6 has const", draft6, `"properties":{"a":{"const":2}}`, `{"a":1}`, false},
		{"draft 6 has no if", draft6, `"if":true,"then":false`, `{}`, true},
		{"draft 7 has if", draft7, `"if":true,"then":false`, `{}`, false},
		{"draft 7: siblings of $ref mean nothing", draft7, `"properties":{"a":{"$ref":"#/definitions/b","minimum":5}},"definitions":{"b":{}}`, `{"a":1}`, true},
		{"draft 2019-09: siblings of $ref count", draft2019, `"properties":{"a":{"$ref":"#/$defs/b","minimum":5}},"$defs":{"b":{}}`, `{"a":1}`, false},
		{"draft 7: $defs is a place like any other", draft7, `"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}`, `{"a":1}`, false},
		{"draft 7: a list of items", draft7, `"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}`, `{"a":["x",1]}`, false},
		{"draft 7: dependencies", draft7, `"dependencies":{"a":["b"],"c":{"required":["d"]}}`, `{"a":1}`, false},
		{"draft 7: dependencies, a schema", draft7, `"dependencies":{"a":["b"],"c":{"required":["d"]}}`, `{"c":1}`, false},
		{"draft 2019-09: $recursiveRef", draft2019, `"additionalProperties":false,"properties":{"a":{"$recursiveRef":"#"}}`, `{"a":{"b":1}}`, false},
		{"draft 2019-09: unevaluated", draft2019, `"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false`, `{"a":1,"b":2}`, false},
		{"draft 2020-12: prefixItems", draft2020, `"properties":{"a":{"prefixItems":[{"type":"string"}],"items":false}}`, `{"a":["x",1]}`, false},
		{"draft 2020-12: $dynamicRef", draft2020, `"$dynamicAnchor":"n","additionalProperties":false,"properties":{"a":{"$dynamicRef":"#n"}}`, `{"a":{"b":1}}`, false},
		{"draft 2020-12: no additionalItems", draft2020, `"properties":{"a":{"prefixItems":[{}],"additionalItems":false}}`, `{"a":[1,2]}`, true},
		{"formats are asserted", draft2020, `"properties":{"a":{"format":"date"}}`, `{"a":"today"}`, false},
		{"formats are asserted in draft 4", draft4, `"properties":{"a":{"format":"date-time"}}`, `{"a":"today"}`, false},
		{"an unknown format is not asserted", draft2020, `"properties":{"a":{"format":"colour"}}`, `{"a":"today"}`, true},
		{"$id and an anchor", draft2020, `"$id":"https://example.com/x","properties":{"a":{"$ref":"y#z"}},"$defs":{"y":{"$id":"y","$defs":{"w":{"$anchor":"z","type":"string"}}}}`, `{"a":1}`, false},
		{"a pointer with escapes", draft2020, `"properties":{"a":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{"type":"string"}}`, `{"a":1}`, false},
		{"ECMA's escapes", draft2020, `"properties":{"a":{"pattern":"^[\\u4e00-\\u9fff]\\/\\u{1F600}\\cJ$"}}`, "{\"a\":\"中/😀\\n\"}", true},
	} {
		s, err := schemas.CompileParameters(json.RawMessage(`{"$schema":"` + test.draft + `","type":"object",` + test.schema + `}`))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if _, err := s.Validate([]byte(test.body)); (err == nil) != test.ok {
			t.Errorf("%s: got %v, want ok to be %v", test.name, err, test.ok)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, value, says string }{
		{`{"type":"number"}`, ` 1 `, ""},
		{`{"type":"number"}`, `"1"`, "Input should be a valid number"},
		{`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"]}`, `{}`, "Field required"}, // nothing is filled in
		{`{"type":"array","items":{"minimum":1}}`, `[1,0]`, "Input should be greater than or equal to 1"},
		{`true`, `{"a":1,"a":2}`, "JSON decode error"},
		{`true`, ``, "JSON decode error"},
		{`false`, `null`, "not permitted"},
	} {
		s, err := schemas.Compile(json.RawMessage(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		err = s.Check([]byte(c.value))
		var failed *misfit.Error
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s, %s: %v", c.schema, c.value, err)
		case c.says != "" && (!errors.As(err, &failed) || len(failed.Violations) != 1 || !strings.Contains(failed.Violations[0].Msg, c.says)):
			t.Errorf("%s, %s: got %v, want %q", c.schema, c.value, failed.Violations, c.says)
		}
	}
}
