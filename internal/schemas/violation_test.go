package schemas_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// violationsOf returns the violations of an error as JSON.
func violationsOf(t *testing.T, err error) string {
	t.Helper()
	var e *misfit.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *misfit.Error", err)
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e.Violations); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestViolations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, property, value, want string }{
		{"string", `{"type":"string"}`, `1`, `[{"type":"string_type","loc":["body","a"],"msg":"Input should be a valid string","input":1}]`},
		{"integer", `{"type":"integer"}`, `"x"`, `[{"type":"int_type","loc":["body","a"],"msg":"Input should be a valid integer","input":"x"}]`},
		{"integer with a fraction", `{"type":"integer"}`, `1.5`, `[{"type":"int_from_float","loc":["body","a"],"msg":"Input should be a valid integer, got a number with a fractional part","input":1.5}]`},
		{"number", `{"type":"number"}`, `true`, `[{"type":"float_type","loc":["body","a"],"msg":"Input should be a valid number","input":true}]`},
		{"boolean", `{"type":"boolean"}`, `0`, `[{"type":"bool_type","loc":["body","a"],"msg":"Input should be a valid boolean","input":0}]`},
		{"array", `{"type":"array"}`, `{}`, `[{"type":"list_type","loc":["body","a"],"msg":"Input should be a valid list","input":{}}]`},
		{"object", `{"type":"object"}`, `[]`, `[{"type":"dict_type","loc":["body","a"],"msg":"Input should be a valid dictionary","input":[]}]`},
		{"null", `{"type":"null"}`, `0`, `[{"type":"none_required","loc":["body","a"],"msg":"Input should be None","input":0}]`},
		{"string or null", `{"type":["null","string"]}`, `0`, `[{"type":"string_type","loc":["body","a"],"msg":"Input should be a valid string","input":0}]`},
		{"string or integer", `{"type":["string","integer"]}`, `[]`, `[{"type":"string_type","loc":["body","a"],"msg":"Input should be a valid string or a valid integer","input":[]}]`},
		{"minimum", `{"minimum":1.50}`, `1`, `[{"type":"greater_than_equal","loc":["body","a"],"msg":"Input should be greater than or equal to 1.50","input":1,"ctx":{"ge":1.50}}]`},
		{"maximum", `{"maximum":3}`, `4`, `[{"type":"less_than_equal","loc":["body","a"],"msg":"Input should be less than or equal to 3","input":4,"ctx":{"le":3}}]`},
		{"exclusiveMinimum", `{"exclusiveMinimum":3}`, `3.0`, `[{"type":"greater_than","loc":["body","a"],"msg":"Input should be greater than 3","input":3.0,"ctx":{"gt":3}}]`},
		{"exclusiveMaximum", `{"exclusiveMaximum":3}`, `3`, `[{"type":"less_than","loc":["body","a"],"msg":"Input should be less than 3","input":3,"ctx":{"lt":3}}]`},
		{"multipleOf", `{"multipleOf":0.1}`, `0.25`, `[{"type":"multiple_of","loc":["body","a"],"msg":"Input should be a multiple of 0.1","input":0.25,"ctx":{"multiple_of":0.1}}]`},
		{"minLength", `{"minLength":1}`, `""`, `[{"type":"string_too_short","loc":["body","a"],"msg":"String should have at least 1 character","input":"","ctx":{"min_length":1}}]`},
		{"maxLength", `{"maxLength":2}`, `"äöü"`, `[{"type":"string_too_long","loc":["body","a"],"msg":"String should have at most 2 characters","input":"äöü","ctx":{"max_length":2}}]`},
		{"pattern", `{"pattern":"^a+$"}`, `"b"`, `[{"type":"string_pattern_mismatch","loc":["body","a"],"msg":"String should match pattern '^a+$'","input":"b","ctx":{"pattern":"^a+$"}}]`},
		{"minItems", `{"minItems":1}`, `[]`, `[{"type":"too_short","loc":["body","a"],"msg":"List should have at least 1 item after validation, not 0","input":[],"ctx":{"actual_length":0,"field_type":"List","min_length":1}}]`},
		{"maxItems", `{"maxItems":2}`, `[1,2,3]`, `[{"type":"too_long","loc":["body","a"],"msg":"List should have at most 2 items after validation, not 3","input":[1,2,3],"ctx":{"actual_length":3,"field_type":"List","max_length":2}}]`},
		{"minProperties", `{"minProperties":2}`, `{"b":1}`, `[{"type":"too_short","loc":["body","a"],"msg":"Dictionary should have at least 2 items after validation, not 1","input":{"b":1},"ctx":{"actual_length":1,"field_type":"Dictionary","min_length":2}}]`},
		{"uniqueItems", `{"uniqueItems":true}`, `[1,2,1.0]`, `[{"type":"value_error","loc":["body","a"],"msg":"Value error, items should be unique, but those at 0 and 2 are equal","input":[1,2,1.0],"ctx":{"error":"items should be unique, but those at 0 and 2 are equal"}}]`},
		{"contains", `{"contains":{"type":"string"}}`, `[1]`, `[{"type":"value_error","loc":["body","a"],"msg":"Value error, list should have at least 1 item matching \"contains\", not 0","input":[1],"ctx":{"error":"list should have at least 1 item matching \"contains\", not 0"}}]`},
		{"enum", `{"enum":["a","b",3,null]}`, `"c"`, `[{"type":"enum","loc":["body","a"],"msg":"Input should be 'a', 'b', 3 or null","input":"c","ctx":{"expected":"'a', 'b', 3 or null"}}]`},
		{"const", `{"const":{"x":[1]}}`, `{"x":[2]}`, `[{"type":"literal_error","loc":["body","a"],"msg":"Input should be {\"x\":[1]}","input":{"x":[2]},"ctx":{"expected":"{\"x\":[1]}"}}]`},
		{"items", `{"items":{"type":"integer"}}`, `[1,"x",2,"y"]`, `[{"type":"int_type","loc":["body","a",1],"msg":"Input should be a valid integer","input":"x"},{"type":"int_type","loc":["body","a",3],"msg":"Input should be a valid integer","input":"y"}]`},
		{"missing", `{"properties":{"c":{"type":"string"}},"required":["b","c"]}`, `{"c":1}`, `[{"type":"missing","loc":["body","a","b"],"msg":"Field required","input":{"c":1}},{"type":"string_type","loc":["body","a","c"],"msg":"Input should be a valid string","input":1}]`},
		{"extra", `{"additionalProperties":false,"properties":{"b":{}}}`, `{"x":1,"b":2,"y":{}}`, `[{"type":"extra_forbidden","loc":["body","a","x"],"msg":"Extra inputs are not permitted","input":1},{"type":"extra_forbidden","loc":["body","a","y"],"msg":"Extra inputs are not permitted","input":{}}]`},
		{"unevaluated", `{"allOf":[{"properties":{"b":{}}}],"unevaluatedProperties":false}`, `{"b":1,"x":2}`, `[{"type":"extra_forbidden","loc":["body","a","x"],"msg":"Extra inputs are not permitted","input":2}]`},
		{"dependentRequired", `{"dependentRequired":{"b":["c"]}}`, `{"b":1}`, `[{"type":"missing","loc":["body","a","c"],"msg":"Field required where 'b' is present","input":{"b":1}}]`},
		{"propertyNames", `{"propertyNames":{"maxLength":1}}`, `{"b":1,"c\"d":2}`, `[{"type":"string_too_long","loc":["body","a","c\"d","[key]"],"msg":"String should have at most 1 character","input":"c\"d","ctx":{"max_length":1}}]`},
		{"not", `{"not":{"type":"string"}}`, `"x"`, `[{"type":"value_error","loc":["body","a"],"msg":"Value error, input should not match the schema in \"not\"","input":"x","ctx":{"error":"input should not match the schema in \"not\""}}]`},
		{"allOf says the same twice", `{"allOf":[{"required":["b"]},{"required":["b"]}]}`, `{}`, `[{"type":"missing","loc":["body","a","b"],"msg":"Field required","input":{}}]`},
		{"enum of another type", `{"type":"string","enum":["a","b"]}`, `1`, `[{"type":"enum","loc":["body","a"],"msg":"Input should be 'a' or 'b'","input":1,"ctx":{"expected":"'a' or 'b'"}}]`},
		{"enum with a value that the type forbids", `{"type":"string","enum":["a",1]}`, `1`, `[{"type":"string_type","loc":["body","a"],"msg":"Input should be a valid string","input":1}]`},
		{"object with members", `{"type":"object","properties":{"b":{}}}`, `1`, `[{"type":"model_attributes_type","loc":["body","a"],"msg":"Input should be a valid dictionary or object to extract fields from","input":1}]`},
		{"duration", `{"format":"duration"}`, `"x"`, `[{"type":"time_delta_parsing","loc":["body","a"],"msg":"Input should be a valid timedelta, expected a duration such as P1DT12H","input":"x","ctx":{"error":"expected a duration such as P1DT12H"}}]`},
		{"anyOf with null", `{"anyOf":[{"type":"null"},{"type":"integer"}]}`, `"x"`, `[{"type":"int_type","loc":["body","a"],"msg":"Input should be a valid integer","input":"x"}]`},
		{"anyOf of types", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `null`, `[{"type":"string_type","loc":["body","a"],"msg":"Input should be a valid string","input":null},{"type":"int_type","loc":["body","a"],"msg":"Input should be a valid integer","input":null}]`},
		{"anyOf, one of the right type", `{"anyOf":[{"type":"string","minLength":3},{"type":"null"}]}`, `"x"`, `[{"type":"string_too_short","loc":["body","a"],"msg":"String should have at least 3 characters","input":"x","ctx":{"min_length":3}}]`},
		{"anyOf of many", `{"anyOf":[{"const":1},{"const":2},{"const":3},{"const":4},{"const":5},{"const":6},{"const":7},{"const":8},{"const":9}]}`, `0`, `[{"type":"value_error","loc":["body","a"],"msg":"Value error, input should match one of 9 alternatives","input":0,"ctx":{"error":"input should match one of 9 alternatives"}}]`},
		{"oneOf matches twice", `{"oneOf":[{"type":"integer"},{"type":"string"},{"minimum":1}]}`, `2`, `[{"type":"value_error","loc":["body","a"],"msg":"Value error, input should match exactly one of the alternatives, but it matches those at 0 and 2","input":2,"ctx":{"error":"input should match exactly one of the alternatives, but it matches those at 0 and 2"}}]`},
		{"if", `{"if":{"required":["b"]},"then":{"required":["c"]},"else":{"required":["d"]}}`, `{"b":1}`, `[{"type":"missing","loc":["body","a","c"],"msg":"Field required","input":{"b":1}}]`},
		{"date", `{"format":"date"}`, `"2024-02-30"`, `[{"type":"date_from_datetime_parsing","loc":["body","a"],"msg":"Input should be a valid date or datetime, expected a date such as 2024-12-31","input":"2024-02-30","ctx":{"error":"expected a date such as 2024-12-31"}}]`},
		{"uuid", `{"format":"uuid"}`, `"x"`, `[{"type":"uuid_parsing","loc":["body","a"],"msg":"Input should be a valid UUID, expected 32 hexadecimal digits in groups of 8-4-4-4-12","input":"x","ctx":{"error":"expected 32 hexadecimal digits in groups of 8-4-4-4-12"}}]`},
		{"email", `{"format":"email"}`, `"x"`, `[{"type":"value_error","loc":["body","a"],"msg":"value is not a valid email address: expected one such as name@example.com","input":"x","ctx":{"error":"expected one such as name@example.com"}}]`},
		{"ipv4", `{"format":"ipv4"}`, `"+1.2.3.4"`, `[{"type":"ip_v4_address","loc":["body","a"],"msg":"Input is not a valid IPv4 address","input":"+1.2.3.4"}]`},
		{"hostname", `{"format":"hostname"}`, `"-"`, `[{"type":"value_error","loc":["body","a"],"msg":"Value error, input should have the format hostname","input":"-","ctx":{"error":"input should have the format hostname"}}]`},
		{"base64", `{"contentEncoding":"base64"}`, `"%"`, `[{"type":"base64_decode","loc":["body","a"],"msg":"Base64 decoding error: 'expected the standard alphabet with padding'","input":"%","ctx":{"error":"expected the standard alphabet with padding"}}]`},
		{"false", `false`, `1`, `[{"type":"extra_forbidden","loc":["body","a"],"msg":"Extra inputs are not permitted","input":1}]`},
		{"a long value", `{"type":"integer"}`, `"` + strings.Repeat("ä", 1000) + `"`, `[{"type":"int_type","loc":["body","a"],"msg":"Input should be a valid integer","input":"\"` + strings.Repeat("ä", 63) + `... (2002 bytes)"}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := schemas.CompileParameters(json.RawMessage(`{"type":"object","properties":{"a":` + test.property + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Validate([]byte(`{"a":` + test.value + `}`))
			if got := violationsOf(t, err); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	s := schemas.MustCompile(`{"type":"object","required":["a"]}`)
	for _, test := range []struct{ name, body, want string }{
		{"empty", ``, `[{"type":"missing","loc":["body","a"],"msg":"Field required","input":{}}]`},
		{"white space", " \t\r\n", `[{"type":"missing","loc":["body","a"],"msg":"Field required","input":{}}]`},
		{"list", ` [1] `, `[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":[1]}]`},
		{"null", `null`, `[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":null}]`},
		{"cut off", `{"a":`, `[{"type":"json_invalid","loc":["body",5],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting value"}}]`},
		{"duplicate", `{"a":1,"a":2}`, `[{"type":"json_invalid","loc":["body",7],"msg":"JSON decode error","input":{},"ctx":{"error":"Duplicate property name"}}]`},
		{"trailing", `{"a":1} x`, `[{"type":"json_invalid","loc":["body",8],"msg":"JSON decode error","input":{},"ctx":{"error":"Extra data"}}]`},
		{"NaN", `{"a":NaN}`, `[{"type":"json_invalid","loc":["body",5],"msg":"JSON decode error","input":{},"ctx":{"error":"NaN and Infinity are not JSON"}}]`},
		{"wrong UTF-8", "{\"a\":\"\xc3\"}", `[{"type":"json_invalid","loc":["body",6],"msg":"JSON decode error","input":{},"ctx":{"error":"Invalid UTF-8"}}]`},
	} {
		_, err := s.Validate([]byte(test.body))
		if got := violationsOf(t, err); got != test.want {
			t.Errorf("%s: got  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestMalformed checks that a body that is not JSON is reported as such, not as arguments that do not fit.
func TestMalformed(t *testing.T) {
	t.Parallel()
	s := schemas.MustCompile(`{"type":"object","required":["a"]}`)
	for body, want := range map[string]string{
		`{"a":`:   "the body is not valid JSON",
		`{'a':1}`: "the body is not valid JSON",
		`[1]`:     "the arguments do not fit the tool's schema",
		`{}`:      "the arguments do not fit the tool's schema",
	} {
		if _, err := s.Validate([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
	if err := s.Check([]byte(`{"a":`)); err == nil || err.Error() != "the body is not valid JSON" {
		t.Errorf("Check: got %v", err)
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, schema, body, want string }{
		{"a slip", `{"properties":{"name":{},"language":{}},"additionalProperties":false}`, `{"nmae":1,"langauge":2}`, "name language"},
		{"capitals", `{"properties":{"maxItems":{}},"additionalProperties":false}`, `{"max_items":1}`, "maxItems"},
		{"nothing near", `{"properties":{"name":{}},"additionalProperties":false}`, `{"colour":1}`, "-"},
		{"there already", `{"properties":{"name":{}},"additionalProperties":false}`, `{"name":1,"nmae":1}`, "-"},
		{"there by its default", `{"properties":{"nights":{"default":1}},"additionalProperties":false}`, `{"night":2}`, "nights"},
		{"forbidden itself", `{"properties":{"name":false},"additionalProperties":false}`, `{"nmae":1}`, "-"},
		{"deeper", `{"properties":{"o":{"items":{"properties":{"street":{}},"additionalProperties":false}}}}`, `{"o":[{"steret":1}]}`, "street"},
		{"an alternative", `{"anyOf":[{"type":"object","properties":{"street":{}},"additionalProperties":false}]}`, `{"steret":1}`, "street"},
		{"unevaluated", `{"allOf":[{"$ref":"#/$defs/a"}],"properties":{"town":{}},"unevaluatedProperties":false,"$defs":{"a":{"properties":{"street":{}}}}}`,
			`{"steret":1,"twon":2}`, "street town"},
		{"unevaluated items", `{"properties":{"a":{"unevaluatedItems":false,"properties":{"a":{}}}}}`, `{"a":[1]}`, "-"},
	} {
		s, err := schemas.CompileParameters(json.RawMessage(`{"type":"object",` + test.schema[1:]))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Validate([]byte(test.body))
		failed, ok := errors.AsType[*misfit.Error](err)
		if !ok {
			t.Errorf("%s: got %v", test.name, err)
			continue
		}
		var got []string
		for _, v := range failed.Violations {
			if v.Type != "extra_forbidden" {
				t.Errorf("%s: got the type %s", test.name, v.Type)
			}
			meant, said := v.Ctx["did_you_mean"]
			want := "Extra inputs are not permitted"
			if said {
				got = append(got, meant.(string))
				want += ": did you mean '" + meant.(string) + "'?"
			}
			if v.Msg != want {
				t.Errorf("%s: got %q, want %q", test.name, v.Msg, want)
			}
		}
		if got := cmp.Or(strings.Join(got, " "), "-"); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestDidYouMeanIsBounded has many members whose names are similar to those in a large schema: guessing ends when the work of the check is used up.
// Proves: Limits hold, one by one and in sum
func TestDidYouMeanIsBounded(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	long := strings.Repeat("n", 100)
	for _, test := range []struct{ name, schema, body string }{
		{"many names", `{"type":"object","additionalProperties":false,"properties":{` + numbered(4900, `"`+long+`%d":{}`) + `}}`,
			`{` + numbered(5000, `"`+long+`x%d":1`) + `}`},
		{"many objects", `{"type":"object","additionalProperties":{"additionalProperties":false,"properties":{` + numbered(4900, `"`+long+`%d":{}`) + `}}}`,
			`{` + numbered(1000, `"a%d":{"`+long+`x%[1]d":1}`) + `}`},
		{"many schemas", `{"type":"object","unevaluatedProperties":false,"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, 99) + `{}],"$defs":{"a":{"properties":{` +
			numbered(4000, `"`+long+`%d":{}`) + `}}}}`, `{` + numbered(5000, `"`+long+`x%d":1`) + `}`},
	} {
		s, err := schemas.CompileParameters(json.RawMessage(test.schema))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		_, err = s.Validate([]byte(test.body))
		got := violationsOf(t, err)
		if n := strings.Count(got, "did you mean"); n == schemas.MaxViolations {
			t.Errorf("%s: got %d guesses, want the guessing to stop earlier", test.name, n)
		}
		if n := strings.Count(got, "extra_forbidden"); n < 50 {
			t.Errorf("%s: got %d violations, want all that fit", test.name, n)
		}
	}
}

// The violations have at most some kilobytes, and are the same every time.
// Proves: Limits hold, one by one and in sum
func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 10_000)
	for _, test := range []struct{ name, schema, body string }{
		{"many", `{"type":"object","additionalProperties":false}`, `{` + numbered(5000, `"m%d":1`) + `}`},
		{"long names", `{"type":"object","additionalProperties":{"additionalProperties":false}}`, `{"` + long + `":{` + numbered(500, `"`+long+`%d":1`) + `}}`},
		{"long values", `{"type":"object","additionalProperties":false}`, `{` + numbered(500, `"m%d":"`+strings.Repeat("v", 1000)+`"`) + `}`},
		{"long members", `{"type":"object","properties":{"` + long + `":false},"required":["` + long + `x"]}`, `{"` + long + `":1}`},
		{"long patterns", `{"type":"object","additionalProperties":{"pattern":"^` + strings.Repeat("x", 3000) + `"}}`, `{` + numbered(500, `"m%d":"y"`) + `}`},
		{"long choices", `{"type":"object","additionalProperties":{"enum":["` + long + `",` + numbered(100, `"`+long[:500]+`%d"`) + `]}}`, `{` + numbered(500, `"m%d":"y"`) + `}`},
		{"deep", `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"},"additionalProperties":{"$ref":"#/$defs/a"},"maxLength":1}}}`,
			strings.Repeat(`{"`+long[:1000]+`":`, 120) + `[` + numbered(100, `"%d--"`) + `]` + strings.Repeat("}", 120)},
	} {
		s, err := schemas.CompileParameters(json.RawMessage(test.schema))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		_, err = s.Validate([]byte(test.body))
		first := violationsOf(t, err)
		if len(first) > 80<<10 {
			t.Errorf("%s: got %d bytes", test.name, len(first))
		}
		if n := strings.Count(first, `"loc":`); n > schemas.MaxViolations+1 {
			t.Errorf("%s: got %d violations", test.name, n)
		}
		_, err = s.Validate([]byte(test.body))
		if again := violationsOf(t, err); again != first {
			t.Errorf("%s: got another list the second time", test.name)
		}
	}
	s := schemas.MustCompile(`{"type":"object","additionalProperties":false}`)
	_, err := s.Validate([]byte(`{` + numbered(103, `"m%d":1`) + `}`))
	if got, want := violationsOf(t, err), `{"type":"too_many_violations","loc":["body"],"msg":"3 more violations not listed","input":null}]`; !strings.HasSuffix(got, want) {
		t.Errorf("got ...%s, want ...%s", got[len(got)-200:], want)
	}
}
