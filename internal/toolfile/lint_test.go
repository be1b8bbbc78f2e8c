package toolfile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
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
		{"misspelt", `{` + object + `,"requierd":["a"],"properties":{"a":{"minimun":1,"maxlength":2,"min_length":2,"typ":"string","enmu":[1]}}}`, `{"item":{}}`,
			"keyword parameters, keyword parameters/properties/a, keyword parameters/properties/a, keyword parameters/properties/a, " +
				"keyword parameters/properties/a, keyword parameters/properties/a, keyword result"},
		{"remarks", `{` + object + `,"x-order":1,"unit":"m","nullable":true,"example":1,"i":1,"$id":"http://a.b/c","":1,"` + strings.Repeat("minimum", 9) + `":1}`, "", ""},
		{"misspelt formats", `{` + object + `,"properties":{"a":{"format":"datetime"},"b":{"format":"ip4"},"c":{"format":"UUID"}}}`, `{"format":"uri_reference"}`,
			"format parameters/properties/a, format parameters/properties/b, format parameters/properties/c, format result"},
		{"formats", `{` + object + `,"properties":{"a":{"format":"date"},"b":{"format":"time"},"c":{"format":"int32"},"d":{"format":"uint8"},"e":{"format":"double"},"f":{"format":"binary"},"g":{"format":7}}}`, `{"format":"uri"}`, ""},
		{"media", `{` + object + `,"properties":{"a":{"contentEncoding":"base64","contentMediaType":"image/png"},"b":{"contentMediaType":"text/html"},"c":{"contentEncoding":"base64"},` +
			`"d":{"contentMediaType":"image/svg+xml"},"e":{"contentMediaType":7,"contentEncoding":7}}}`, `{"contentEncoding":"base64","contentMediaType":"text/csv; charset=utf-8"}`, ""},
		{"odd media", `{` + object + `,"properties":{"a":{"contentEncoding":"base32"},"b":{"contentMediaType":"png"},"c":{"contentMediaType":"audio/wav"},"d":{"contentMediaType":""}}}`, `{"contentEncoding":"Base64","contentMediaType":"image/png"}`,
			"media parameters/properties/a, media parameters/properties/b, media parameters/properties/c, media parameters/properties/d, media result"},
		{"odd values", `{` + object + `,"properties":[{"$ref":1}],"items":"x","allOf":{"$ref":"#a"}}`, "true", "root-object parameters, ref-pointer parameters/allOf"},
	} {
		m := &manifest.Manifest{Tools: []manifest.Tool{{Name: "tool", Parameters: json.RawMessage(c.parameters)}}}
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

// TestLintExamples finds examples that don't fit, each checked against its own tool's schemas.
func TestLintExamples(t *testing.T) {
	t.Parallel()
	const text = `{"abi":1,"tools":[
		{"name":"a","description":"A.","parameters":{"type":"object","properties":{"n":{"type":"integer","default":1}},"additionalProperties":false},
			"result":{"type":"string"},"examples":[%s]},
		{"name":"b","description":"B.","parameters":{"type":"object"},"examples":[{"arguments":{"n":"x"},"result":1}]}]}`
	for _, c := range []struct{ name, examples, place, says string }{
		{"none", ``, "", ""},
		{"fit", `{"arguments":{},"result":"x"},{"arguments":{"n":1.0}}`, "", ""},
		{"arguments of another type", `{"arguments":{}},{"arguments":{"n":"one"}}`, "examples/1/arguments", "n: Input should be a valid integer"},
		{"arguments that are misspelt", `{"arguments":{"m":1}}`, "examples/0/arguments", "m: Extra inputs are not permitted"},
		{"a result", `{"arguments":{},"result":2}`, "examples/0/result", "(all): Input should be a valid string"},
		{"long", `{"arguments":{"` + strings.Repeat("m", 500_000) + `":1}}`, "examples/0/arguments", "mmm..."},
		{"many", strings.Repeat(`{"arguments":{"m":1},"result":2},`, 200) + `{"arguments":{}}`, "examples/0/arguments", "m: Extra"},
	} {
		m := built(t, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/echo"), fmt.Sprintf(text, c.examples)), limits.Limits{})
		got := m.Lint()
		if c.place == "" {
			if len(got) > 0 {
				t.Errorf("%s: got %+v, want nothing", c.name, got)
			}
			continue
		}
		want := 1
		if c.name == "many" {
			want = 100
		}
		if len(got) != want {
			t.Fatalf("%s: got %d findings, want %d", c.name, len(got), want)
		}
		if f := got[0]; f.Rule != "example" || f.Tool != "a" || f.Place != c.place || !strings.Contains(f.Message, c.says) || len(f.Message) > 400 {
			t.Errorf("%s: got %+v, want the rule example at %s, saying %q", c.name, f, c.place, c.says)
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
	m := &manifest.Manifest{}
	for range 3 {
		m.Tools = append(m.Tools, manifest.Tool{Name: "tool", Parameters: json.RawMessage(
			`{"type":"object","properties":{"` + long + `":{"properties":{` + many.String() + `"z":{}}}}}`)})
	}
	begun := time.Now()
	findings := toolfile.Lint(m)
	if took := time.Since(begun); len(findings) != 100 || took > time.Minute {
		t.Errorf("got %d findings in %s, want 100 within a minute", len(findings), took)
	}
	for _, f := range findings {
		if len(f.Place)+len(f.Message) > 1000 {
			t.Errorf("a finding of %d bytes: %.200s", len(f.Place)+len(f.Message), f.Place)
		}
	}
}

// FuzzLint checks that every manifest which is accepted can be linted safely.
func FuzzLint(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a","b":1}},"$defs":{"a":{"$dynamicRef":"#x"}}}`)
	f.Add(`{"allOf":[{"not":{"items":[true,false,1]}}],"properties":{"a b":[]}}`)
	f.Fuzz(func(t *testing.T, parameters string) {
		m, err := manifest.Parse([]byte(`{"abi":1,"tools":[{"name":"a","description":"b","parameters":` + parameters + `}]}`))
		if err != nil {
			return
		}
		if n := len(toolfile.Lint(m)); n > 100 {
			t.Errorf("%d findings", n)
		}
	})
}
