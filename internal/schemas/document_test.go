package schemas_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	const (
		draft4    = `"$schema":"http://json-schema.org/draft-04/schema#",`
		draft7    = `"$schema":"http://json-schema.org/draft-07/schema#",`
		draft2019 = `"$schema":"https://json-schema.org/draft/2019-09/schema",`
	)
	for _, test := range []struct{ name, schema, want string }{ // want has the root, then each definition on a line
		{"plain", `{"type": "object", "properties": {"b": {"type": "string"}, "a": {"default": [1, 2]}}, "required": ["b"]}`,
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"default":[1,2]}},"required":["b"]}`},
		{"names of the schema itself are dropped", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/x","$anchor":"y","type":"object","$defs":{"unused":{}}}`,
			`{"type":"object"}`},
		{"$defs", `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"items":{"$ref":"#/$defs/A"}}},"$defs":{"A":{"type":"string"}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.A"},"b":{"items":{"$ref":"#/components/schemas/t.A"}}}}
t.A {"type":"string"}`},
		{"recursive", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"next":{"$ref":"#/$defs/A"}}}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.A"}}}
t.A {"properties":{"next":{"$ref":"#/components/schemas/t.A"}}}`},
		{"the root", `{"properties":{"next":{"$ref":"#"}}}`,
			`{"properties":{"next":{"$ref":"#/components/schemas/t.root"}}}
t.root {"properties":{"next":{"$ref":"#/components/schemas/t.root"}}}`},
		{"a root that is a reference", `{"description":"mine","$ref":"#/$defs/A","$defs":{"A":{"description":"its","type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}}}`,
			`{"description":"mine","type":"object","properties":{"a":{"$ref":"#/components/schemas/t.A"}}}
t.A {"description":"its","type":"object","properties":{"a":{"$ref":"#/components/schemas/t.A"}}}`},
		{"a place in the schema", `{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.properties.a"},"b":{"$ref":"#/components/schemas/t.properties.a"}}}
t.properties.a {"type":"string"}`},
		{"siblings", `{"properties":{"a":{"description":"x","$ref":"#/$defs/A"},"b":{"allOf":[{"minimum":1}],"$ref":"#/$defs/A"}},"$defs":{"A":{}}}`,
			`{"properties":{"a":{"description":"x","allOf":[{"$ref":"#/components/schemas/t.A"}]},"b":{"allOf":[{"$ref":"#/components/schemas/t.A"},{"minimum":1}]}}}
t.A {}`},
		{"siblings in draft 7", `{` + draft7 + `"properties":{"a":{"title":"x","minimum":5,"$ref":"#/definitions/A"}},"definitions":{"A":true}}`,
			`{"properties":{"a":{"title":"x","allOf":[{"$ref":"#/components/schemas/t.A"}]}}}
t.A true`},
		{"names collide and need other characters", `{"properties":{"a":{"$ref":"#/$defs/a~1b"},"b":{"$ref":"#/$defs/a_b"},"c":{"$ref":"#/$defs/x/$defs/a_b"}},"$defs":{"a/b":{"minimum":1},"a_b":{"minimum":2},"x":{"$defs":{"a_b":{"minimum":3}}}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.a_1b"},"b":{"$ref":"#/components/schemas/t.a_b"},"c":{"$ref":"#/components/schemas/t.a_b-2"}}}
t.a_1b {"minimum":1}
t.a_b {"minimum":2}
t.a_b-2 {"minimum":3}`},
		{"anchors and addresses", `{"$id":"https://example.com/x","properties":{"a":{"$ref":"y#z"},"b":{"$ref":"y"}},"$defs":{"y":{"$id":"y","$defs":{"w":{"$anchor":"z","type":"string"}}}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.w"},"b":{"$ref":"#/components/schemas/t.y"}}}
t.w {"type":"string"}
t.y {}`},
		{"$dynamicRef", `{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.root"}}}
t.root {"properties":{"a":{"$ref":"#/components/schemas/t.root"}}}`},
		{"$recursiveRef", `{` + draft2019 + `"$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`,
			`{"properties":{"a":{"$ref":"#/components/schemas/t.root"}}}
t.root {"properties":{"a":{"$ref":"#/components/schemas/t.root"}}}`},
		{"draft 4", `{` + draft4 + `"id":"https://example.com/x","properties":{"id":{"minimum":1,"exclusiveMinimum":true,"maximum":3,"exclusiveMaximum":false},"c":{"const":1,"if":{}}}}`,
			`{"properties":{"id":{"exclusiveMinimum":1,"maximum":3},"c":{}}}`},
		{"lists of items", `{` + draft7 + `"properties":{"a":{"items":[{"type":"string"},true],"additionalItems":{"type":"null"}},"b":{"items":{},"additionalItems":false}}}`,
			`{"properties":{"a":{"prefixItems":[{"type":"string"},true],"items":{"type":"null"}},"b":{"items":{}}}}`},
		{"arrays of anything", `{"properties":{"a":{"type":"array"},"b":{"type":["null","array"],"prefixItems":[{}]},"c":{"type":"array","items":false},"d":{"type":"string"}}}`,
			`{"properties":{"a":{"type":"array","items":{}},"b":{"type":["null","array"],"prefixItems":[{}],"items":{}},"c":{"type":"array","items":false},"d":{"type":"string"}}}`},
		{"arrays whose items are counted", `{"allOf":[{"type":"array"}],"unevaluatedItems":false}`, `{"allOf":[{"type":"array"}],"unevaluatedItems":false}`},
		{"dependencies", `{` + draft7 + `"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
			`{"allOf":[{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}]}`},
		{"contains beside unevaluatedItems: its items count as evaluated only in 2020-12", `{` + draft2019 + `"contains":{"const":1},"minContains":2,"unevaluatedItems":{"type":"string"}}`,
			`{"unevaluatedItems":{"type":"string"},"allOf":[{"not":{"not":{"contains":{"const":1},"minContains":2}}}]}`},
		{"contains alone", `{` + draft2019 + `"contains":{"const":1},"minContains":2}`, `{"contains":{"const":1},"minContains":2}`},
		{"values that look like schemas", `{"default":{"$ref":"x","$defs":1},"examples":[{"$id":1}],"not":{"const":{"$id":1},"enum":[{"$ref":"y"}]},"x-mine":{"$schema":1}}`,
			`{"default":{"$ref":"x","$defs":1},"examples":[{"$id":1}],"not":{"const":{"$id":1},"enum":[{"$ref":"y"}]},"x-mine":{"$schema":1}}`},
		{"boolean", `true`, `true`},
	} {
		s, err := schemas.Compile(json.RawMessage(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		root, definitions := s.Document("t")
		var got strings.Builder
		got.Write(root)
		for _, name := range slices.Sorted(maps.Keys(definitions)) {
			fmt.Fprintf(&got, "\n%s %s", name, definitions[name])
		}
		if got.String() != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.name, &got, test.want)
		}
	}
}

// Clients find type, properties and required at the top, wherever the author has put them.
func TestDocumentOfParameters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{`{"allOf":[{"type":"object"}]}`, `{"type":"object","allOf":[{"type":"object"}]}`},
		{`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"object","required":["x"]}}}`, `{"type":"object","required":["x"]}`},
		{`{"type":["object"]}`, `{"type":["object"]}`},
	} {
		if root, _ := schemas.MustCompile(test.text).Document(""); string(root) != test.want {
			t.Errorf("%s: got %s, want %s", test.text, root, test.want)
		}
	}
}

// Parts of a name come from the author, others from the namespace. All characters must be valid in OpenAPI.
func TestDocumentPrefix(t *testing.T) {
	t.Parallel()
	s := schemas.MustCompile(`{"type":"object","$ref":"#/$defs/ä ","$defs":{"ä ":{"properties":{"a":{"$ref":"#/$defs/ä "}}}}}`)
	_, definitions := s.Document("a/b c")
	if _, ok := definitions["a_b_c.__"]; !ok || len(definitions) != 1 {
		t.Errorf("got %v", definitions)
	}
}
