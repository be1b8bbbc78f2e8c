package toolfile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

func TestLint(t *testing.T) {
	t.Parallel()
	const object = `"type":"object"`
	for _, c := range []struct {
		name, parameters, result string
		want                     string // rule and place of each finding
	}{
		{"nothing", `{"type":"object","properties":{"a":{"type":"string"}}}`, "", ""},
		{"reference alone", `{` + object + `,"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"$ref":"#"}`, ""},
		{"dynamic", `{` + object + `,"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}`, "", "dynamic-ref parameters/properties/a"},
		{"recursive, in the result", `{` + object + `}`, `{"items":{"$recursiveRef":"#"}}`, "dynamic-ref result/items"},
		{"sibling", `{` + object + `,"properties":{"a":{"$ref":"#/$defs/a","description":"The a."}},"$defs":{"a":true}}`, "", "ref-sibling parameters/properties/a"},
		{"anchor", `{` + object + `,"items":[{"$ref":"#a"}]}`, "", "ref-pointer parameters/items/0"},
		{"below every keyword", `{` + object + `,"anyOf":[{"not":{"prefixItems":[{"$ref":"#a"}]}}],"patternProperties":{"x/~":{"$ref":"#b"}}}`, "",
			"root-object parameters, ref-pointer parameters/anyOf/0/not/prefixItems/0, ref-pointer parameters/patternProperties/x~1~0"},
		{"no type at the top", `{"properties":{}}`, "", "root-object parameters"},
		{"a list of types", `{"type":["object"]}`, "", "root-object parameters"},
		{"a reference at the top", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, "", "root-object parameters, root-object parameters, ref-sibling parameters"},
		{"a long name", `{` + object + `,"properties":{"` + strings.Repeat("x", 65) + `":{}}}`, "", "name parameters/properties/" + strings.Repeat("x", 65)},
		{"a name with a blank", `{` + object + `,"properties":{"a":{"properties":{"b c":{}}}}}`, "", "name parameters/properties/a/properties/b c"},
		{"an empty name", `{` + object + `,"properties":{"":{}}}`, "", "name parameters/properties/"},
		{"data", `{` + object + `,"properties":{"a":{"enum":[{"$ref":"#a","b":1}],"default":{"properties":{"b c":1}},"const":{"$dynamicRef":1},"examples":[{"$ref":"#a"}]}}}`, "", ""},
		{"a property of that name", `{` + object + `,"properties":{"$ref":{"type":"string"},"enum":{"$ref":"#/$defs/a"}},"$defs":{"a":true}}`, "", "name parameters/properties/$ref"},
		{"odd values", `{` + object + `,"properties":[{"$ref":1}],"items":"x","allOf":{"$ref":"#a"}}`, "true", "root-object parameters, ref-pointer parameters/allOf"},
	} {
		m := &wasmtools.Manifest{Tools: []wasmtools.ManifestTool{{Name: "tool", Parameters: json.RawMessage(c.parameters)}}}
		if c.result != "" {
			m.Tools[0].Result = json.RawMessage(c.result)
		}
		var got []string
		for _, f := range toolfile.Lint(m) {
			got = append(got, f.Rule+" "+f.Place)
			if f.Tool != "tool" || f.Message == "" {
				t.Errorf("%s: got the finding %+v", c.name, f)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLintIsBounded has schemas that would take long paths and many findings.
func TestLintIsBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `"%d %s":{"$ref":"#x"},`, i, "x")
	}
	long := strings.Repeat("y", 400_000)
	m := &wasmtools.Manifest{}
	for range 3 {
		m.Tools = append(m.Tools, wasmtools.ManifestTool{Name: "tool", Parameters: json.RawMessage(
			`{"type":"object","properties":{"` + long + `":{"properties":{` + many.String() + `"z":{}}}}}`)})
	}
	begun := time.Now()
	findings := toolfile.Lint(m)
	if took := time.Since(begun); len(findings) != 100 || took > 5*time.Second {
		t.Errorf("got %d findings in %s, want 100 soon", len(findings), took)
	}
	for _, f := range findings {
		if len(f.Place)+len(f.Message) > 1000 {
			t.Errorf("a finding of %d bytes: %.200s", len(f.Place)+len(f.Message), f.Place)
		}
	}
}

// Whatever a manifest is taken with is linted without harm.
func FuzzLint(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a","b":1}},"$defs":{"a":{"$dynamicRef":"#x"}}}`)
	f.Add(`{"allOf":[{"not":{"items":[true,false,1]}}],"properties":{"a b":[]}}`)
	f.Fuzz(func(t *testing.T, parameters string) {
		m, err := wasmtools.ParseManifest([]byte(`{"abi":1,"tools":[{"name":"a","description":"b","parameters":` + parameters + `}]}`))
		if err != nil {
			return
		}
		if n := len(toolfile.Lint(m)); n > 100 {
			t.Errorf("%d findings", n)
		}
	})
}
