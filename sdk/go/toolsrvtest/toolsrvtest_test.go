package toolsrvtest_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

type item struct {
	Price float64 `json:"price" exclusiveMinimum:"0"`
	Unit  string  `json:"unit" enum:"kg,g" default:"kg"`
	Parts []item  `json:"parts,omitempty" maxItems:"2"`
}

type order struct {
	Name  string          `json:"name" minLength:"2" maxLength:"4" pattern:"^[a-zé]+$"`
	Count int             `json:"count" default:"3" minimum:"1" maximum:"9"`
	Items []item          `json:"items,omitempty"`
	First *item           `json:"first"`
	Note  *string         `json:"note" enum:"x,y"`
	When  *time.Time      `json:"when"`
	Odd   *int            `json:"odd" exclusiveMaximum:"5"`
	Map   map[int]item    `json:"map,omitempty" description:"By number."`
	Any   json.RawMessage `json:"any,omitempty"`
	Size  size            `json:"size,omitempty"`
}

// size has a schema of its own.
type size string

// JSONSchema makes size a toolsrv.Describer.
func (size) JSONSchema() string {
	return `{"anyOf":[{"type":"string","pattern":"^[SML]$"},{"type":"null"}]}`
}

var module = toolsrv.Module{Tools: []toolsrv.Tool{
	toolsrv.Func("echo", "Returns its arguments.", func(c *toolsrv.Call, in order) (order, error) {
		c.Infof("echo %s", in.Name)
		return in, nil
	}, toolsrv.Example{Arguments: `{"name":"tea"}`}, toolsrv.Example{
		Arguments: `{"name":"tea","count":3}`,
		Result:    `{"count":3,"name":"tea","first":null,"note":null,"odd":null,"when":null}`,
	}),
	toolsrv.Func("fail", "Fails.", func(*toolsrv.Call, struct{}) (any, error) { return nil, &toolsrv.Error{Code: "no", Message: "No."} }),
}}

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, arguments, want string }{
		{"default", `{"name":"tea"}`, `{"name":"tea","count":3,"first":null,"note":null,"when":null,"odd":null}`},
		{"deep defaults", `{"name":"tea","items":[{"price":1,"parts":[{"price":2,"unit":"g"}]}],"first":{"price":3},"map":{"-7":{"price":4}}}`,
			`{"name":"tea","count":3,"items":[{"price":1,"unit":"kg","parts":[{"price":2,"unit":"g"}]}],"first":{"price":3,"unit":"kg"},"note":null,"when":null,"odd":null,"map":{"-7":{"price":4,"unit":"kg"}}}`},
		{"null", `{"name":"tea","note":null,"when":null}`, `{"name":"tea","count":3,"first":null,"note":null,"when":null,"odd":null}`},
		{"values", `{"name":"éé","count":9,"note":"x","when":"2026-01-02T03:04:05Z","odd":4,"any":[1,"<"],"size":"S"}`,
			`{"name":"éé","count":9,"first":null,"note":"x","when":"2026-01-02T03:04:05Z","odd":4,"any":[1,"<"],"size":"S"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, "echo", test.arguments)
			if err != nil || got != test.want {
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, arguments string
		want            []string
	}{
		{"no JSON", `{`, []string{"no JSON: unexpected EOF"}},
		{"more", `{} 1`, []string{"no JSON: there is more after the value"}},
		{"list", `[]`, []string{"arguments: is array, not of the type object"}},
		{"missing", `{}`, []string{"name: is missing"}},
		{"unknown", `{"name":"tea","nam":1}`, []string{"nam: is not a member that the tool takes"}},
		{"several", `{"name":"T","count":0}`, []string{"count: 0 is beyond the minimum 1", "name: has 1 characters, and 2 is the least", "name: does not match ^[a-zé]+$"}},
		{"type", `{"name":1}`, []string{"name: is number, not of the type string"}},
		{"null", `{"name":null}`, []string{"name: is null, not of the type string"}},
		{"fraction", `{"name":"tea","count":1.5}`, []string{"count: is number, not of the type integer"}},
		{"huge exponent", `{"name":"tea","count":1e999999999}`, []string{"count: is number, not of the type integer"}},
		{"maximum", `{"name":"tea","count":10}`, []string{"count: 10 is beyond the maximum 9"}},
		{"exclusive maximum", `{"name":"tea","odd":5}`, []string{"odd: 5 is beyond the exclusiveMaximum 5"}},
		{"enum", `{"name":"tea","note":"z"}`, []string{"note: is not one of [x y <nil>]"}},
		{"time", `{"name":"tea","when":"today"}`, []string{"when: is not a valid date-time"}},
		{"deep", `{"name":"tea","items":[{"price":1},{"price":0,"unit":"t","parts":[{},{},{}]}]}`, []string{
			"items[1].parts: has 3 elements, and 2 is the most", "items[1].parts[0].price: is missing", "items[1].parts[1].price: is missing", "items[1].parts[2].price: is missing",
			"items[1].price: 0 is beyond the exclusiveMinimum 0", "items[1].unit: is not one of [kg g]",
		}},
		{"null in place of a struct", `{"name":"tea","items":[null]}`, []string{"items[0]: is null, not of the type object"}},
		{"null for a struct", `{"name":"tea","first":null}`, []string{"first: is null, not of the type object"}},
		{"alternatives", `{"name":"tea","size":true}`, []string{"size: fits none of the alternatives"}},
		{"below a pointer", `{"name":"tea","first":{}}`, []string{"first.price: is missing"}},
		{"key", `{"name":"tea","map":{"a":{"price":1}}}`, []string{"map.a: does not match ^-?[0-9]+$"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, "echo", test.arguments)
			var refused *toolsrvtest.ArgumentsError
			if !errors.As(err, &refused) || !slices.Equal(refused.Violations, test.want) {
				t.Errorf("got %s, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

// TestNoArguments calls a tool without arguments, like a request without a body.
func TestNoArguments(t *testing.T) {
	t.Parallel()
	if _, err := toolsrvtest.Call(t, module, "fail", ""); toolsrv.AsError(err).Code != "no" {
		t.Errorf("got %v, want the tool's error", err)
	}
}

func TestToolError(t *testing.T) {
	t.Parallel()
	_, err := toolsrvtest.Call(t, module, "fail", `{}`)
	if e := toolsrv.AsError(err); e.Code != "no" || e.Message != "No." {
		t.Errorf("got %+v, want the tool's error", e)
	}
}

// TestProgress returns the reports that a host would pass on, and the result.
func TestProgress(t *testing.T) {
	t.Parallel()
	type steps struct {
		Fails bool `json:"fails" default:"false"`
	}
	module := toolsrv.Module{Tools: []toolsrv.Tool{
		toolsrv.Func("work", "Works.", func(c *toolsrv.Call, in steps) (int, error) {
			for _, done := range []float64{math.NaN(), -1, 0, 0, 2, 1, math.Inf(1), 3} {
				c.Progress(done, 3, "step")
			}
			if in.Fails {
				return 0, errors.New("no")
			}
			return 3, nil
		}),
	}}
	want := []toolsrvtest.Report{{0, 3, "step"}, {2, 3, "step"}, {3, 3, "step"}}
	reports, result, err := toolsrvtest.Progress(t, module, "work", `{}`)
	if !slices.Equal(reports, want) || result != "3" || err != nil {
		t.Errorf("got %v, %s, %v, want %v", reports, result, err, want)
	}
	if reports, _, err := toolsrvtest.Progress(t, module, "work", `{"fails": true}`); !slices.Equal(reports, want) || err == nil {
		t.Errorf("got %v, %v, want %v and an error", reports, err, want)
	}
	if reports, _, err := toolsrvtest.Progress(t, module, "work", `{"fails": 1}`); reports != nil || err == nil {
		t.Errorf("got %v, %v, want an error", reports, err)
	}
}
