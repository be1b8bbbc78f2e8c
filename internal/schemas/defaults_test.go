package schemas_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, test := range []edited{
		{"empty body", `{"properties":{"a":{"default":1}}}`, ``, `{"a":1}`},
		{"white space", `{"properties":{"a":{"default":1}}}`, ` `, `{"a":1}`},
		{"nothing missing", `{"properties":{"a":{"default":1}}}`, ` { "a" : 2.50 } `, ` { "a" : 2.50 } `},
		{"null is a value", `{"properties":{"a":{"default":1}}}`, `{"a":null}`, `{"a":null}`},
		{"the rest stays the same", `{"properties":{"a":{"default":[1, 2]},"b\"":{"default":"x"}}}`, "{ \"n\": 1.000e2 ,\n \"é\":\"\\u00e9\" }\n", "{ \"n\": 1.000e2 ,\n \"é\":\"\\u00e9\" ,\"a\":[1, 2],\"b\\\"\":\"x\"}\n"},
		{"required", `{"properties":{"a":{"default":1}},"required":["a"]}`, `{}`, `{"a":1}`},
		{"a default of null", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`, `{}`, `{"a":null}`},
		{"in an object", `{"properties":{"a":{"properties":{"b":{"default":1}}}}}`, `{"a":{ }}`, `{"a":{ "b":1}}`},
		{"in items", `{"properties":{"a":{"items":{"properties":{"b":{"default":1}}}}}}`, `{"a":[{},{"b":2},{"c":3},7]}`, `{"a":[{"b":1},{"b":2},{"c":3,"b":1},7]}`},
		{"in prefixItems", `{"properties":{"a":{"prefixItems":[{"properties":{"b":{"default":1}}}]}}}`, `{"a":[{},{}]}`, `{"a":[{"b":1},{}]}`},
		{"in additionalProperties", `{"additionalProperties":{"properties":{"b":{"default":1}}},"properties":{"x":{}}}`, `{"a":{},"x":{}}`, `{"a":{"b":1},"x":{}}`},
		{"in patternProperties", `{"patternProperties":{"^a":{"properties":{"b":{"default":1}}}}}`, `{"ab":{},"x":{}}`, `{"ab":{"b":1},"x":{}}`},
		{"through $ref", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"default":{"x":1}}}}`, `{}`, `{"a":{"x":1}}`},
		{"a default beside $ref wins", `{"properties":{"a":{"$ref":"#/$defs/a","default":2}},"$defs":{"a":{"default":1}}}`, `{}`, `{"a":2}`},
		{"through allOf, the first wins", `{"allOf":[{"properties":{"a":{"default":1}}},{"properties":{"a":{"default":2},"b":{"default":3}}}]}`, `{}`, `{"a":1,"b":3}`},
		{"not in alternatives", `{"anyOf":[{"properties":{"a":{"default":1}}}],"oneOf":[{"properties":{"b":{"default":1}}}],"if":true,"then":{"properties":{"c":{"default":1}}}}`, `{}`, `{}`},
		{"a default of defaults", `{"properties":{"a":{"default":{},"properties":{"b":{"default":{"x":1},"properties":{"c":{"default":true}}}}}}}`, `{}`, `{"a":{"b":{"x":1,"c":true}}}`},
		{"recursive", `{"properties":{"next":{"$ref":"#"},"n":{"default":0}}}`, `{"next":{"next":{}}}`, `{"next":{"next":{"n":0},"n":0},"n":0}`},
		{"inner and outer", `{"properties":{"a":{"properties":{"b":{"default":1}}},"c":{"default":2}}}`, `{"a":{}}`, `{"a":{"b":1},"c":2}`},
		{"a filled object counts", `{"properties":{"a":{"default":1}},"minProperties":1}`, `{}`, `{"a":1}`},
		{"values of a wrong type stay the same", `{"properties":{"a":{"properties":{"b":{"default":1}}}}}`, `{"a":[]}`, `{"a":[]}`},
	} {
		test.check(t)
	}
}

func TestBodyIsNotCopied(t *testing.T) {
	t.Parallel()
	s := schemas.MustCompile(`{"type":"object","properties":{"a":{"default":1}}}`)
	body := []byte(`{"a":2}`)
	got, err := s.Validate(body)
	if err != nil || &got[0] != &body[0] {
		t.Errorf("got %p %s and %v, want the body %p itself", got, got, err, body)
	}
}

// The hot path must not start to allocate unnoticed.
func TestAllocations(t *testing.T) {
	// The schema has no pattern, since the pool of package regexp must not be counted.
	s := schemas.MustCompile(strings.Replace(orderSchema, `"pattern"`, `"title"`, 1))
	body := order(1 << 10)
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := s.Validate(body); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 4 {
		t.Errorf("got %v allocations for a body of 1 KiB, want at most 4", allocations)
	}
}
