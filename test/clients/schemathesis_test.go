package clients_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// schemas are the kinds of schemas for which the document and the validation must agree, with a tool for each.
var schemas = []string{
	`{"type":"object"}`,
	`{"type":"object","properties":{},"additionalProperties":false}`,
	`{"type":"object","properties":{"id":{"type":"string","format":"uuid"},"mail":{"type":"string","format":"email"},
		"url":{"type":"string","format":"uri"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
		"ip":{"type":"string","format":"ipv4"},"ip6":{"type":"string","format":"ipv6"},"host":{"type":"string","format":"hostname"}}}`,
	`{"type":"object","properties":{"n":{"type":"integer","minimum":-5,"exclusiveMaximum":10,"multipleOf":3},"f":{"type":"number"},
		"s":{"type":"string","pattern":"^[a-z]{2,5}$"},
		"list":{"type":"array","minItems":1,"maxItems":3,"uniqueItems":true,"items":{"type":"integer"}}},"required":["n","s"]}`,
	`{"type":"object","oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},
		{"properties":{"kind":{"const":"b"},"y":{"type":"boolean"}},"required":["kind","y"]}]}`,
	`{"type":"object","properties":{"o":{"anyOf":[{"type":"null"},{"type":"object","properties":{"q":{"type":"string","default":"z"}},"required":["q"]}]},
		"any":{},"not":{"not":{"type":"string"}}},"patternProperties":{"^x-":{"type":"string"}},"propertyNames":{"maxLength":8},
		"minProperties":1,"maxProperties":5}`,
	`{"type":"object","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}},
		"required":["v"],"unevaluatedProperties":false}},"properties":{"head":{"$ref":"#/$defs/node"}},"dependentRequired":{"head":["n"]},
		"if":{"properties":{"n":{"const":1}},"required":["n"]},"then":{"required":["one"]}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"p":{"type":"integer","exclusiveMinimum":0}},
		"properties":{"a":{"$ref":"#/definitions/p"},"b":{"type":"array","items":{"type":"string"}}},"required":["a"],"dependencies":{"b":["a"]}}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true}},"required":["a"]}`,
	`{"type":"object","properties":{"日本":{"type":"string","enum":["é","\u0000",""]},"a b":{"type":"boolean"},"$ref":{"type":"integer"}}}`,
}

// TestSchemathesis lets schemathesis send requests that the document allows and others that it forbids. Its checks fail if the service answers with a
// status, a content type, a header or a body that the document does not declare, if it breaks, accepts what the schema forbids or refuses what it
// allows, or lets in a caller without a token.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	t.Run("tools", func(t *testing.T) {
		t.Parallel()
		tools := t.TempDir()
		writeExamples(t, tools)
		for i, schema := range schemas {
			write(t, tools, "schemas", echo(fmt.Sprintf("n%d", i), schema))
		}
		s := start(t, tools, "")
		schemathesis(t, s, "--max-examples=60", "--checks=all")
	})
	// Tools that fail in every way must still answer as the document says; they decide themselves which arguments they refuse.
	t.Run("broken tools", func(t *testing.T) {
		t.Parallel()
		tools := t.TempDir()
		var all []tool
		for _, name := range []string{"echo", "refuse", "reject", "trap", "spin", "recurse", "grow", "garble", "silent"} {
			all = append(all, tool{Name: name, Description: "Do " + name + ".", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)})
		}
		write(t, tools, "broken", all...)
		s := start(t, tools, "[limits]\ntimeout = '50ms'")
		schemathesis(t, s, "--max-examples=5", "--checks=all", "--exclude-checks=not_a_server_error,positive_data_acceptance", "--warnings=off")
	})
}

// schemathesis runs the program of that name on a service. The seed is fixed, so that each run finds the same faults.
func schemathesis(t *testing.T, s *service, arguments ...string) {
	t.Helper()
	settings, err := filepath.Abs(filepath.Join("testdata", "schemathesis.toml"))
	if err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{
		"--config-file=" + settings, "--no-color", "run", s.url + "/openapi.json",
		"--header=Authorization: Bearer " + token, "--seed=1", "--continue-on-failure",
	}, arguments...)
	out, err := run(t, 3*time.Minute, t.TempDir(), nil, setting(t, "SCHEMATHESIS"), arguments...)
	if err != nil {
		t.Errorf("schemathesis: %v\n%s", err, out)
		return
	}
	if want := fmt.Sprintf("Tested: %d", s.tools); !strings.Contains(out, want) {
		t.Errorf("schemathesis did not test every tool, want %q:\n%s", want, out)
	}
	t.Log(out[strings.LastIndex(out, "Test cases:"):])
}
