package modelapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/modelapi"
)

const (
	o  = modelapi.OpenAI
	os = modelapi.OpenAIStrict
	a  = modelapi.Anthropic
	as = modelapi.AnthropicStrict
	g  = modelapi.Gemini
)

// object returns a schema that all APIs accept, with these members, all of them required.
func object(members string) string {
	var names map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+members+"}"), &names); err != nil {
		panic(err)
	}
	required := make([]string, 0, len(names))
	for name := range names {
		required = append(required, fmt.Sprintf("%q", name))
	}
	slices.Sort(required)
	return `{"type":"object","additionalProperties":false,"required":[` + strings.Join(required, ",") + `],"properties":{` + members + `}}`
}

func TestCheck(t *testing.T) {
	t.Parallel()
	many := func(n int, member string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(member, i)
		}
		return strings.Join(list, ",")
	}
	for _, c := range []struct {
		name, schema string
		want         string         // rule and place of each reason
		refuse       []modelapi.API // the APIs that refuse it
	}{
		{"all kinds", object(`"a":{"type":"string","description":"An a.","enum":["x"]},"b":{"type":["integer","null"]},"c":{"type":"array","items":{"type":"number"}}`), "", nil},
		{"no arguments", object(``), "", nil},
		{"a reference", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, "", nil},
		{"formats", object(`"a":{"type":"string","format":"date-time"},"b":{"type":"string","pattern":"^[a-z]+$"}`), "", nil},

		{"not a schema", `7`, "root-object parameters", []modelapi.API{o, os, a, as, g}},
		{"not JSON", `{`, "root-object parameters", []modelapi.API{o, os, a, as, g}},
		{"no type at the top", `{"additionalProperties":false,"properties":{}}`, "root-object parameters, strict parameters", []modelapi.API{o, os, a, as, g}},
		{"a choice at the top", `{"type":"object","additionalProperties":false,"properties":{},"anyOf":[{"type":"object","additionalProperties":false}]}`, "root-object parameters", []modelapi.API{o, os, a, as}},
		{"enum at the top", `{"type":"object","additionalProperties":false,"properties":{},"enum":["x"]}`, "root-object parameters", []modelapi.API{o, os}},
		{"a name with a dash", object(`"a-b":{"type":"string"}`), "name parameters/properties/a-b", []modelapi.API{g}},
		{"a name with a blank", object(`"a b":{"type":"string"}`), "name parameters/properties/a b", []modelapi.API{a, as, g}},
		{"a member's name further below", object(`"a":` + object(`"b c":{"type":"string"}`)), "", nil},
		{"an array of anything", object(`"a":{"type":"array"}`), "array-items parameters/properties/a", []modelapi.API{o, os}},
		{"an array of anything, below", object(`"a":` + object(`"b":{"type":["array","null"],"items":true}`)), "array-items parameters/properties/a/properties/b", []modelapi.API{o, os}},
		{"beside a reference", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"$ref":"#/$defs/a","type":"string"}},"$defs":{"a":{"type":"string"}}}`,
			"ref-sibling parameters/properties/a", []modelapi.API{os, g}},
		{"a description beside a reference", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"$ref":"#/$defs/a","description":"x"}},"$defs":{"a":{"type":"string"}}}`,
			"ref-sibling parameters/properties/a", []modelapi.API{os}},

		{"other members", `{"type":"object","properties":{}}`, "strict parameters", []modelapi.API{os, as}},
		{"an optional member", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`, "strict parameters", []modelapi.API{os}},
		{"a length", object(`"a":{"type":"string","maxLength":3}`), "strict parameters/properties/a, strict parameters/properties/a", []modelapi.API{os, as}},
		{"a bound", object(`"a":{"type":"integer","minimum":3}`), "strict parameters/properties/a", []modelapi.API{as}},
		{"a default", object(`"a":{"type":"integer","default":3}`), "strict parameters/properties/a", []modelapi.API{os}},
		{"two elements", object(`"a":{"type":"array","items":{"type":"string"},"minItems":2}`), "strict parameters/properties/a", []modelapi.API{as}},
		{"one element", object(`"a":{"type":"array","items":{"type":"string"},"minItems":1}`), "", nil},
		{"a link", object(`"a":{"type":"string","format":"uri"}`), "strict parameters/properties/a", []modelapi.API{os}},
		{"a pattern with look-ahead", object(`"a":{"type":"string","pattern":"^(?=x)"}`), "strict parameters/properties/a", []modelapi.API{as}},
		{"no type", object(`"a":{"description":"x"},"b":{}`), "strict parameters/properties/a, strict parameters/properties/b", []modelapi.API{os, as}},
		{"true", object(`"a":{"anyOf":[true]}`), "strict parameters/properties/a/anyOf/0", []modelapi.API{os, as}},
		{"a member true", object(`"a":true`), "strict parameters/properties/a", []modelapi.API{os, as}},
		{"a list as a value", object(`"a":{"enum":[[1]]}`), "strict parameters/properties/a", []modelapi.API{as}},
		{"itself", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, "strict parameters", []modelapi.API{as}},
		{"itself, further on", `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"null"}]},"b":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`,
			"strict parameters", []modelapi.API{as}},
		{"data", object(`"a":{"type":"string","const":"x"},"enum":{"type":"string","enum":["$ref"]}`), "", nil},
		{"ten levels", strings.Repeat(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":`, 10) + `{"type":"string"}` + strings.Repeat(`}}`, 10), "", nil},
		{"eleven levels", strings.Repeat(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":`, 11) + `{"type":"string"}` + strings.Repeat(`}}`, 11), "strict parameters", []modelapi.API{os}},
		{"many members", object(many(5001, `"a%d":{"type":"string"}`)), "strict parameters", []modelapi.API{os}},
		{"many optional members", `{"type":"object","additionalProperties":false,"properties":{` + many(25, `"a%d":{"type":"string"}`) + `}}`, "strict parameters, strict parameters", []modelapi.API{os, as}},
		{"many unions", object(many(17, `"a%d":{"type":["string","null"]}`)), "strict parameters", []modelapi.API{as}},
		{"many values", object(`"a":{"type":"string","enum":[` + many(1001, `"a%d"`) + `]}`), "strict parameters", []modelapi.API{os}},
		{"long values", object(`"a":{"type":"string","enum":[` + many(251, `"`+strings.Repeat("x", 60)+`%d"`) + `]}`), "strict parameters/properties/a", []modelapi.API{os}},
		{"much text", object(`"a":{"type":"string","enum":["` + strings.Repeat("x", 120_000) + `"]}`), "strict parameters", []modelapi.API{os}},
	} {
		reasons := modelapi.Check(modelapi.Tool{Name: "tool", Description: "A tool.", Parameters: json.RawMessage(c.schema)})
		var got []string
		for _, r := range reasons {
			got = append(got, r.Rule+" "+r.Place)
			if r.Message == "" || len(r.APIs) == 0 {
				t.Errorf("%s: got the reason %+v", c.name, r)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q: %v", c.name, got, c.want, reasons)
		}
		takers := modelapi.Takers(reasons)
		for _, api := range modelapi.APIs() {
			if takes, want := slices.Contains(takers, api), !slices.Contains(c.refuse, api); takes != want {
				t.Errorf("%s: %s takes it: %t, want %t: %v", c.name, api, takes, want, reasons)
			}
		}
	}
}

func TestCheckNameAndDescription(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tool, description string
		want                    string
		refuse                  []modelapi.API
	}{
		{"short", "math-add", "Add.", "", nil},
		{"the longest that fits with a prefix", strings.Repeat("x", 50), "X.", "", nil},
		{"too long with a prefix", strings.Repeat("x", 51), "X.", "tool-name name", nil},
		{"too long", strings.Repeat("x", 65), "X.", "tool-name name", modelapi.APIs()},
		{"a dot", "a.b", "X.", "tool-name name", modelapi.APIs()},
		{"empty", "", "X.", "tool-name name, tool-name name", modelapi.APIs()},
		{"a digit first", "2d-plot", "X.", "tool-name name", []modelapi.API{g}},
		{"a description of 1024 characters", "x", strings.Repeat("é", 1024), "", nil},
		{"a description of 1025 characters", "x", strings.Repeat("é", 1025), "description description", []modelapi.API{o, os}},
	} {
		reasons := modelapi.Check(modelapi.Tool{Name: c.tool, Description: c.description, Parameters: json.RawMessage(object(``))})
		var got []string
		var refuse []modelapi.API
		for _, r := range reasons {
			got = append(got, r.Rule+" "+r.Place)
			if !r.Usual() {
				t.Errorf("%s: %+v matters in strict mode only", c.name, r)
			}
			refuse = append(refuse, r.APIs...)
		}
		slices.Sort(refuse)
		refuse = slices.Compact(refuse)
		want := slices.Sorted(slices.Values(c.refuse))
		if strings.Join(got, ", ") != c.want || !slices.Equal(refuse, want) {
			t.Errorf("%s: got %q by %q, want %q by %q", c.name, got, refuse, c.want, want)
		}
	}
}

// TestCheckIsBounded checks a schema with more faults, and longer names, than anybody would read.
func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 400_000)
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `"%d %s":{"$ref":"#/$defs/%d/x","type":"array"},`, i, "x", i)
	}
	begun := time.Now()
	reasons := modelapi.Check(modelapi.Tool{Name: long, Description: long, Parameters: json.RawMessage(`{"` + long + `":1,"properties":{` + members.String() + `"` + long + `":{"pattern":7}}}`)})
	if took := time.Since(begun); len(reasons) != 50 || took > time.Minute {
		t.Errorf("got %d reasons in %s, want 50 in less than a minute", len(reasons), took)
	}
	for _, r := range reasons {
		if len(r.Place)+len(r.Message) > 1000 {
			t.Errorf("a reason of %d bytes: %.200s", len(r.Place)+len(r.Message), r.Message)
		}
	}
}

// No schema can do harm, whatever it contains.
func FuzzCheck(f *testing.F) {
	f.Add("tool", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a","b":1}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`)
	f.Add("2 x", `{"anyOf":[{"not":{"items":[true,false,1]}}],"required":7,"enum":[[]],"properties":{"a b":[]}}`)
	f.Fuzz(func(t *testing.T, name, schema string) {
		reasons := modelapi.Check(modelapi.Tool{Name: name, Description: name, Parameters: json.RawMessage(schema)})
		if len(reasons) > 50 {
			t.Errorf("%d reasons", len(reasons))
		}
		for _, api := range modelapi.Takers(reasons) {
			for _, r := range reasons {
				if slices.Contains(r.APIs, api) {
					t.Errorf("%s takes a tool that it refuses: %+v", api, r)
				}
			}
		}
	})
}
