package toolsrv_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type (
	point struct{ X, Y int }

	node struct {
		Name string `json:"name"`
		Kids []node `json:"kids,omitempty"`
	}

	linked struct {
		Next *linked `json:"next"`
	}

	base struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
	}

	outer struct {
		A string `json:"a"`
		base
		Kind int `json:"kind"` // hides base.Kind
	}

	viaPointer struct {
		*Shared
	}

	// Shared is exported because encoding/json can't fill an embedded pointer to an unexported struct.
	Shared struct {
		S string `json:"s"`
	}

	self struct {
		*Embedded
	}

	// Embedded embeds itself.
	Embedded struct {
		*Embedded
		V int `json:"v"`
	}

	names          []string
	loop           []loop
	ring           map[string]ring
	pair[A, B any] struct {
		First  A `json:"first"`
		Second B `json:"second"`
	}

	color  string
	secret struct{ v string }
)

// JSONSchema makes color a toolsrv.Describer.
func (color) JSONSchema() string { return `{"enum":["red","green"]}` }

func (s secret) MarshalJSON() ([]byte, error)  { return json.Marshal(s.v) }
func (s *secret) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &s.v) }

// of returns the schema of the arguments and of the result of a tool with these types.
func of[A, R any](t *testing.T) (parameters, result string, err error) {
	t.Helper()
	m := toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("t", "Test.", func(*toolsrv.Call, A) (out R, err error) { return out, nil })}}
	text, err := m.Manifest()
	if err != nil {
		return "", "", err
	}
	var manifest struct {
		Tools []struct{ Parameters, Result json.RawMessage }
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatalf("manifest %s: %v", text, err)
	}
	return string(manifest.Tools[0].Parameters), string(manifest.Tools[0].Result), nil
}

func arguments[A any](t *testing.T) (string, error) {
	s, _, err := of[A, any](t)
	return s, err
}

func result[R any](t *testing.T) (string, error) {
	_, s, err := of[struct{}, R](t)
	return s, err
}

// wrap is the schema of arguments with the one required member v.
func wrap(schema, defs string) string {
	if defs != "" {
		defs = `,"$defs":{` + defs + `}`
	}
	return `{"type":"object","properties":{"v":` + schema + `},"required":["v"],"additionalProperties":false` + defs + `}`
}

// optional is the schema of arguments with the one optional member v.
func optional(schema, defs string) string {
	return strings.Replace(wrap(schema, defs), `,"required":["v"]`, "", 1)
}

func TestSchema(t *testing.T) {
	t.Parallel()
	const pointDef = `"point":{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],"additionalProperties":false}`
	type v[T any] struct {
		V T `json:"v"`
	}
	tests := []struct {
		name  string
		build func(*testing.T) (string, error)
		want  string
	}{
		{"nothing", arguments[struct{}], `{"type":"object","additionalProperties":false}`},
		{"bool", arguments[v[bool]], wrap(`{"type":"boolean"}`, "")},
		{"int", arguments[v[int]], wrap(`{"type":"integer"}`, "")},
		{"int8", arguments[v[int8]], wrap(`{"type":"integer","minimum":-128,"maximum":127}`, "")},
		{"int32", arguments[v[int32]], wrap(`{"type":"integer","minimum":-2147483648,"maximum":2147483647}`, "")},
		{"int64", arguments[v[int64]], wrap(`{"type":"integer"}`, "")},
		{"uint", arguments[v[uint]], wrap(`{"type":"integer","minimum":0}`, "")},
		{"uint32", arguments[v[uint32]], wrap(`{"type":"integer","minimum":0,"maximum":4294967295}`, "")},
		{"float", arguments[v[float32]], wrap(`{"type":"number"}`, "")},
		{"string", arguments[v[string]], wrap(`{"type":"string"}`, "")},
		{"any", arguments[v[any]], wrap(`{}`, "")},
		{"raw", arguments[v[json.RawMessage]], wrap(`{}`, "")},
		{"number", arguments[v[json.Number]], wrap(`{"type":"number"}`, "")},
		{"time", arguments[v[time.Time]], wrap(`{"type":"string","format":"date-time"}`, "")},
		{"duration", arguments[v[time.Duration]], wrap(`{"type":"integer","description":"A duration in nanoseconds."}`, "")},
		{"text", arguments[v[net.IP]], wrap(`{"type":"string"}`, "")},
		{"bytes", arguments[v[[]byte]], wrap(`{"type":"string","contentEncoding":"base64"}`, "")},
		{"named bytes", arguments[v[Raw]], wrap(`{"type":"string","contentEncoding":"base64"}`, "")},
		{"byte array", arguments[v[[2]byte]], wrap(`{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":2,"maxItems":2}`, "")},
		{"slice", arguments[v[[]string]], wrap(`{"type":"array","items":{"type":"string"}}`, "")},
		{"slice of any", arguments[v[[]any]], wrap(`{"type":"array"}`, "")},
		{"slice of pointers", arguments[v[[]*string]], wrap(`{"type":"array","items":{"type":["string","null"]}}`, "")},
		{"named slice", arguments[v[names]], wrap(`{"$ref":"#/$defs/names"}`, `"names":{"type":"array","items":{"type":"string"}}`)},
		{"map", arguments[v[map[string]bool]], wrap(`{"type":"object","additionalProperties":{"type":"boolean"}}`, "")},
		{"map of any", arguments[v[map[string]any]], wrap(`{"type":"object"}`, "")},
		{"map by int", arguments[v[map[int]string]], wrap(`{"type":"object","propertyNames":{"pattern":"^-?[0-9]+$"},"additionalProperties":{"type":"string"}}`, "")},
		{"map by uint", arguments[v[map[uint8]any]], wrap(`{"type":"object","propertyNames":{"pattern":"^[0-9]+$"}}`, "")},
		{"map by text", arguments[v[map[stamp]any]], wrap(`{"type":"object"}`, "")},
		{"pointer", arguments[v[*int]], optional(`{"type":["integer","null"]}`, "")},
		{"pointer to pointer", arguments[v[**int]], optional(`{"type":["integer","null"]}`, "")},
		{"pointer to any", arguments[v[*any]], optional(`{}`, "")},
		{"pointer to struct", arguments[v[*point]], optional(`{"$ref":"#/$defs/point"}`, pointDef)},
		{"struct", arguments[v[point]], wrap(`{"$ref":"#/$defs/point"}`, pointDef)},
		{"struct twice", arguments[v[[2]point]], wrap(`{"type":"array","items":{"$ref":"#/$defs/point"},"minItems":2,"maxItems":2}`, pointDef)},
		{"unnamed struct", arguments[v[struct{ A bool }]], wrap(`{"type":"object","properties":{"A":{"type":"boolean"}},"required":["A"],"additionalProperties":false}`, "")},
		{"generic", arguments[v[pair[int, names]]], wrap(`{"$ref":"#/$defs/pair"}`,
			`"pair":{"type":"object","properties":{"first":{"type":"integer"},"second":{"$ref":"#/$defs/names"}},"required":["first","second"],"additionalProperties":false},"names":{"type":"array","items":{"type":"string"}}`)},
		{"generic, thrice", arguments[v[pair[pair[bool, bool], pair[int, int]]]], wrap(`{"$ref":"#/$defs/pair"}`,
			`"pair":{"type":"object","properties":{"first":{"$ref":"#/$defs/pair2"},"second":{"$ref":"#/$defs/pair3"}},"required":["first","second"],"additionalProperties":false},`+
				`"pair2":{"type":"object","properties":{"first":{"type":"boolean"},"second":{"type":"boolean"}},"required":["first","second"],"additionalProperties":false},`+
				`"pair3":{"type":"object","properties":{"first":{"type":"integer"},"second":{"type":"integer"}},"required":["first","second"],"additionalProperties":false}`)},
		{"describer", arguments[v[color]], wrap(`{"enum":["red","green"]}`, "")},
		{"pointer to describer", arguments[v[*color]], optional(`{"enum":["red","green"]}`, "")},
		{"recursive root", arguments[node], `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"],"additionalProperties":false,` +
			`"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"],"additionalProperties":false}}}`},
		{"recursive slice", arguments[v[loop]], wrap(`{"$ref":"#/$defs/loop"}`, `"loop":{"type":"array","items":{"$ref":"#/$defs/loop"}}`)},
		{"recursive map", arguments[v[ring]], wrap(`{"$ref":"#/$defs/ring"}`, `"ring":{"type":"object","additionalProperties":{"$ref":"#/$defs/ring"}}`)},
		{"pointer to arguments", arguments[*struct{}], `{"type":"object","additionalProperties":false}`},
		{"map as arguments", arguments[map[string]any], `{"type":"object"}`},

		{"embedded", arguments[outer], `{"type":"object","properties":{"a":{"type":"string"},"id":{"type":"string"},"kind":{"type":"integer"}},"required":["a","id","kind"],"additionalProperties":false}`},
		{"embedded by pointer", arguments[viaPointer], `{"type":"object","properties":{"s":{"type":"string"}},"additionalProperties":false}`},
		{"embeds itself", arguments[self], `{"type":"object","properties":{"v":{"type":"integer"}},"additionalProperties":false}`},
		{"embedded with a name", arguments[struct {
			Shared `json:"v"`
		}], wrap(`{"$ref":"#/$defs/Shared"}`, `"Shared":{"type":"object","properties":{"s":{"type":"string"}},"required":["s"],"additionalProperties":false}`)},
		{"left out", arguments[struct {
			A  int `json:"-"`
			b  int
			D  int  `json:",omitempty"`
			E  int  `json:"e,omitzero"`
			F  bool `json:"<f>"`
			_  chan int
			at int
		}], `{"type":"object","properties":{"D":{"type":"integer"},"e":{"type":"integer"},"<f>":{"type":"boolean"}},"required":["<f>"],"additionalProperties":false}`},
		{"as string", arguments[struct {
			A int     `json:"a,string"`
			B float64 `json:"b,string"`
			C bool    `json:"c,string"`
		}], `{"type":"object","properties":{"a":{"type":"string","pattern":"^-?[0-9]+$"},"b":{"type":"string","pattern":"^-?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"},` +
			`"c":{"type":"string","enum":["true","false"]}},"required":["a","b","c"],"additionalProperties":false}`},

		{"result any", result[any], ""},
		{"result number", result[float64], `{"type":"number"}`},
		{"result struct", result[point], `{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"]}`},
		{"result pointer", result[*point], `{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"]}`},
		{"result slice", result[[]int], `{"type":"array","items":{"type":"integer"}}`},
		{"result recursive slice", result[loop], `{"type":"array","items":{"$ref":"#/$defs/loop"},"$defs":{"loop":{"type":"array","items":{"$ref":"#/$defs/loop"}}}}`},
		{"result with pointer", result[linked], `{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/linked"},{"type":"null"}]}},"required":["next"],` +
			`"$defs":{"linked":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/linked"},{"type":"null"}]}},"required":["next"]}}}`},
		{"result describer", result[color], `{"enum":["red","green"]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.build(t)
			if err != nil || got != test.want {
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

// stamp is a key with a text form.
type stamp struct{ n int }

func (s stamp) MarshalText() ([]byte, error)  { return []byte{byte('0' + s.n)}, nil }
func (s *stamp) UnmarshalText(b []byte) error { s.n = len(b); return nil }

func TestTags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		build func(*testing.T) (string, error)
		want  string
	}{
		{"description", arguments[struct {
			V int `json:"v" description:"An \"int\" <b>."`
		}], wrap(`{"type":"integer","description":"An \"int\" <b>."}`, "")},
		{"numbers", arguments[struct {
			V float64 `json:"v" minimum:"-1.5" maximum:"1e3" exclusiveMinimum:"-2" exclusiveMaximum:"2000"`
		}], wrap(`{"type":"number","minimum":-1.5,"maximum":1e3,"exclusiveMinimum":-2,"exclusiveMaximum":2000}`, "")},
		{"bounds of its type", arguments[struct {
			V uint8 `json:"v" maximum:"9"`
		}], wrap(`{"type":"integer","minimum":0,"maximum":9}`, "")},
		{"text", arguments[struct {
			V string `json:"v" minLength:"1" maxLength:"9" pattern:"^\\d+$" format:"email"`
		}], wrap(`{"type":"string","format":"email","pattern":"^\\d+$","minLength":1,"maxLength":9}`, "")},
		{"list", arguments[struct {
			V []int `json:"v" minItems:"1" maxItems:"3"`
		}], wrap(`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`, "")},
		{"named list", arguments[struct {
			V names `json:"v" maxItems:"3"`
		}], wrap(`{"allOf":[{"$ref":"#/$defs/names"}],"maxItems":3}`, `"names":{"type":"array","items":{"type":"string"}}`)},
		{"enum", arguments[struct {
			V string `json:"v" enum:"a, b,c"`
		}], wrap(`{"type":"string","enum":["a","b","c"]}`, "")},
		{"enum as JSON", arguments[struct {
			V string `json:"v" enum:"[\"a,b\", \"c\"]"`
		}], wrap(`{"type":"string","enum":["a,b","c"]}`, "")},
		{"enum of numbers", arguments[struct {
			V int `json:"v" enum:"1,2"`
		}], wrap(`{"type":"integer","enum":[1,2]}`, "")},
		{"enum or null", arguments[struct {
			V *string `json:"v" enum:"a,b"`
		}], optional(`{"type":["string","null"],"enum":["a","b",null]}`, "")},
		{"default text", arguments[struct {
			V string `json:"v" default:"a b"`
		}], optional(`{"type":"string","default":"a b"}`, "")},
		{"default empty text", arguments[struct {
			V string `json:"v" default:""`
		}], optional(`{"type":"string","default":""}`, "")},
		{"default list", arguments[struct {
			V []string `json:"v" default:"[\"a\", \"b\"]"`
		}], optional(`{"type":"array","items":{"type":"string"},"default":["a","b"]}`, "")},
		{"default struct", arguments[struct {
			V *Shared `json:"v" default:"{\"s\":\"x\"}" description:"D."`
		}], optional(`{"description":"D.","allOf":[{"$ref":"#/$defs/Shared"}],"default":{"s":"x"}}`,
			`"Shared":{"type":"object","properties":{"s":{"type":"string"}},"required":["s"],"additionalProperties":false}`)},
		{"default of a pointer", arguments[struct {
			V *string `json:"v" default:"a"`
		}], optional(`{"type":["string","null"],"default":"a"}`, "")},
		{"default time", arguments[struct {
			V time.Time `json:"v" default:"2026-01-02T03:04:05Z"`
		}], optional(`{"type":"string","format":"date-time","default":"2026-01-02T03:04:05Z"}`, "")},
		{"examples", arguments[struct {
			V int `json:"v" examples:"1,2"`
		}], wrap(`{"type":"integer","examples":[1,2]}`, "")},
		{"examples of lists", arguments[struct {
			V []int `json:"v" examples:"[[1,2],[3]]"`
		}], wrap(`{"type":"array","items":{"type":"integer"},"examples":[[1,2],[3]]}`, "")},
		{"one example of a list", arguments[struct {
			V []int `json:"v" examples:"[1,2]"`
		}], wrap(`{"type":"array","items":{"type":"integer"},"examples":[[1,2]]}`, "")},
		{"not required", arguments[struct {
			V int `json:"v" required:"false"`
		}], optional(`{"type":"integer"}`, "")},
		{"required pointer", arguments[struct {
			V *int `json:"v" required:"true"`
		}], wrap(`{"type":["integer","null"]}`, "")},
		{"required describer", arguments[struct {
			V color `json:"v" required:"true"`
		}], wrap(`{"enum":["red","green"]}`, "")},
		{"described describer", arguments[struct {
			V color `json:"v" description:"C." default:"\"red\""`
		}], optional(`{"description":"C.","allOf":[{"enum":["red","green"]}],"default":"red"}`, "")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.build(t)
			if err != nil || got != test.want {
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

// TestRefused has types that can't be described. Each error has the path of the field and a remedy.
func TestRefused(t *testing.T) {
	t.Parallel()
	type in[T any] struct {
		V T `json:"v"`
	}
	tests := []struct {
		name  string
		build func(*testing.T) (string, error)
		want  []string
	}{
		{"chan", arguments[in[chan int]], []string{`tool "t": arguments.v: chan int is a chan`, "json:\"-\""}},
		{"func", arguments[in[[]func()]], []string{`arguments.v[]: func() is a func`}},
		{"complex", arguments[in[map[string]complex128]], []string{`arguments.v{}: complex128`}},
		{"uintptr", arguments[in[uintptr]], []string{`arguments.v: uintptr`}},
		{"deep", arguments[in[[]map[string]struct{ W *chan int }]], []string{`arguments.v[]{}.W: chan int`}},
		{"interface", arguments[in[error]], []string{"arguments.v: error is an interface with methods"}},
		{"odd keys", arguments[in[map[bool]int]], []string{"arguments.v: map[bool]int has keys"}},
		{"struct keys", arguments[in[map[point]int]], []string{"arguments.v:", "has keys"}},
		{"own JSON", arguments[in[secret]], []string{"arguments.v:", "UnmarshalJSON", "JSONSchema"}},
		{"own JSON of a result", result[in[secret]], []string{"result.v:", "MarshalJSON", "JSONSchema"}},
		{"number as arguments", arguments[int], []string{"arguments: int is not a JSON object: take a struct"}},
		{"list as arguments", arguments[[]int], []string{"arguments: []int is not a JSON object"}},
		{"any as arguments", arguments[any], []string{"not a JSON object"}},
		{"chan as result", result[chan int], []string{"result: chan int"}},
		{"embedded pointer", arguments[struct{ *base }], []string{"the field base embeds a pointer to an unexported struct"}},
		{"as string with tag", arguments[struct {
			A int `json:"a,string" minimum:"1"`
		}], []string{"arguments.a: the tag minimum can't be combined with"}},
		{"minimum of text", arguments[struct {
			V string `json:"v" minimum:"1"`
		}], []string{"arguments.v: the tag minimum is for a JSON number or integer, and this is a JSON string"}},
		{"minItems of a struct", arguments[struct {
			V point `json:"v" minItems:"1"`
		}], []string{"the tag minItems is for a JSON array, and this is a JSON object"}},
		{"maximum no number", arguments[struct {
			V int `json:"v" maximum:"many"`
		}], []string{`arguments.v: the tag maximum:"many" is not a JSON number`}},
		{"minLength negative", arguments[struct {
			V string `json:"v" minLength:"-1"`
		}], []string{`the tag minLength:"-1" is not a count`}},
		{"default of another type", arguments[struct {
			V int `json:"v" default:"x"`
		}], []string{"arguments.v: the tag default"}},
		{"default out of the type", arguments[struct {
			V int8 `json:"v" default:"300"`
		}], []string{"arguments.v: the tag default: 300 does not fit int8"}},
		{"default null", arguments[struct {
			V []int `json:"v" default:"null"`
		}], []string{"null is not accepted"}},
		{"default not in enum", arguments[struct {
			V string `json:"v" default:"c" enum:"a,b"`
		}], []string{`the default "c" is not one of the enum's values`}},
		{"default and required", arguments[struct {
			V int `json:"v" default:"1" required:"true"`
		}], []string{"it has a default and is required"}},
		{"required maybe", arguments[struct {
			V int `json:"v" required:"maybe"`
		}], []string{`required:"maybe"`}},
		{"empty tag", arguments[struct {
			V int `json:"v" minimum:""`
		}], []string{"the tag minimum is empty"}},
		{"enum of another type", arguments[struct {
			V int `json:"v" enum:"1,b"`
		}], []string{"arguments.v: the tag enum"}},
		{"broken list", arguments[struct {
			V int `json:"v" examples:"[1,"`
		}], []string{"the tag examples"}},
		{"minimum above the maximum", arguments[struct {
			V int `json:"v" minimum:"5" maximum:"1"`
		}], []string{"arguments.v: no value is within the minimum 5 and the maximum 1"}},
		{"nothing between exclusive bounds", arguments[struct {
			V float64 `json:"v" exclusiveMinimum:"1" exclusiveMaximum:"1"`
		}], []string{"arguments.v: no value is within the exclusiveMinimum 1 and the exclusiveMaximum 1"}},
		{"minLength above maxLength", arguments[struct {
			V string `json:"v" minLength:"10" maxLength:"9"`
		}], []string{"arguments.v: no value is within the minLength 10 and the maxLength 9"}},
		{"minItems of a short array", arguments[struct {
			V [3]int `json:"v" minItems:"5"`
		}], []string{"arguments.v: no value is within the minItems 5 and the maxItems 3"}},
		{"maxItems of a short array", arguments[struct {
			V [3]int `json:"v" maxItems:"5"`
		}], []string{`arguments.v: the tag maxItems:"5" is out of the type's range, which is 3`}},
		{"minItems of a long array", arguments[struct {
			V [3]int `json:"v" minItems:"1"`
		}], []string{`arguments.v: the tag minItems:"1" is out of the type's range, which is 3`}},
		{"maximum beyond the type", arguments[struct {
			V int8 `json:"v" maximum:"300"`
		}], []string{`arguments.v: the tag maximum:"300" is out of the type's range, which is 127`}},
		{"minimum beyond the type", arguments[struct {
			V *uint `json:"v" minimum:"-5"`
		}], []string{`arguments.v: the tag minimum:"-5" is out of the type's range, which is 0`}},
		{"default above the maximum", arguments[struct {
			V int `json:"v" maximum:"100" default:"200"`
		}], []string{"arguments.v: the tag default: 200 is not within the maximum 100"}},
		{"default of too few characters", arguments[struct {
			V *string `json:"v" minLength:"2" default:"ä"`
		}], []string{`arguments.v: the tag default: "ä" is not within the minLength 2`}},
		{"default of too few items", arguments[struct {
			V []int `json:"v" minItems:"3" default:"[1]"`
		}], []string{"arguments.v: the tag default: [1] is not within the minItems 3"}},
		{"example at an exclusive bound", arguments[struct {
			V float64 `json:"v" exclusiveMinimum:"0" examples:"0.5,0"`
		}], []string{"arguments.v: the tag examples: 0 is not within the exclusiveMinimum 0"}},
		{"enum below the minimum", arguments[struct {
			V int `json:"v" minimum:"2" enum:"1,2"`
		}], []string{"arguments.v: the tag enum: 1 is not within the minimum 2"}},
		{"tag in capitals", arguments[struct {
			V int `json:"v" Minimum:"1"`
		}], []string{"the field V: its tag \"Minimum\" is not known: did you mean \"minimum\"?"}},
		{"tag that is misspelt", arguments[struct {
			V int `json:"v" descripton:"A."`
		}], []string{"arguments: the field V: its tag \"descripton\" is not known: did you mean \"description\"?"}},
		{"tag that is misspelt in an embedded struct of a result", result[[]struct{ misspelt }], []string{"result[]: the field misspelt.V: its tag \"minimim\" is not known"}},
		{"unexported in a list of results", result[[]struct {
			V int
			w int `description:"A."`
		}], []string{"result[]: the field w has the tag description"}},
		{"default that is not a number", arguments[struct {
			V int `json:"v" default:"ten"`
		}], []string{`arguments.v: the tag default:"ten" is not a JSON integer`}},
		{"default that is not a boolean", arguments[struct {
			V bool `json:"v" default:"yes"`
		}], []string{`arguments.v: the tag default:"yes" is not a JSON boolean`}},
		{"enum with no number", arguments[struct {
			V int `json:"v" enum:"1,x"`
		}], []string{`arguments.v: the tag enum:"x" is not a JSON integer`}},
		{"default without quotes", arguments[struct {
			V any `json:"v" default:"train"`
		}], []string{`arguments.v: the tag default:"train" is not valid JSON: write a text in quotes, as in default:"\"train\""`}},
		{"bad describer", arguments[in[liar]], []string{"arguments.v:", "JSONSchema does not return a JSON object"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.build(t)
			if err == nil {
				t.Fatalf("got %s, want an error", got)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

type misspelt struct {
	V int `json:"v" minimim:"1"`
}

type liar struct{}

// JSONSchema returns something that is not a schema.
func (liar) JSONSchema() string { return "none" }
