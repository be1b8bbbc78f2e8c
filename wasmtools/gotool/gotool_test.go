package gotool_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

type order struct {
	Item  string   `json:"item" description:"What to order." minLength:"1"`
	Count int8     `json:"count" default:"1" minimum:"1"`
	Notes []string `json:"notes,omitempty"`
	Gift  *wrap    `json:"gift"`
}

type wrap struct {
	Colour string `json:"colour" enum:"red,gold"`
}

type receipt struct {
	Text  string   `json:"text"`
	Lines []string `json:"lines"`
}

func buy(_ context.Context, in order) (receipt, error) {
	return receipt{Text: fmt.Sprintf("%d <%s>", in.Count, in.Item)}, nil
}

// called returns what a client gets for a call with a body.
func called(t *testing.T, tool *wasmtools.Tool, body string) string {
	t.Helper()
	arguments, err := tool.Parameters.Validate([]byte(body))
	if err != nil {
		return "invalid_arguments 0 - " + err.Error()
	}
	return outcome(tool.Call(t.Context(), &wasmtools.Call{Arguments: arguments}))
}

func TestNew(t *testing.T) {
	t.Parallel()
	tool := gotool.New("shop/eu/buy", "Buy things.", buy)
	if tool.Path() != "/shop/eu/buy" || tool.Namespace != "shop/eu" || tool.Description != "Buy things." {
		t.Errorf("got %s in %s: %s", tool.Path(), tool.Namespace, tool.Description)
	}
	// The SDK derives the same schemas: see TestTypedIsTheSDKs.
	if got, want := string(tool.Parameters.JSON()), `{"type":"object","properties":{"item":{"type":"string","description":"What to order.","minLength":1},`+
		`"count":{"type":"integer","minimum":1,"maximum":127,"default":1},"notes":{"type":"array","items":{"type":"string"}},"gift":{"$ref":"#/$defs/wrap"}},`+
		`"required":["item"],"additionalProperties":false,"$defs":{"wrap":{"type":"object","properties":{"colour":{"type":"string","enum":["red","gold"]}},`+
		`"required":["colour"],"additionalProperties":false}}}`; got != want {
		t.Errorf("parameters:\ngot  %s\nwant %s", got, want)
	}
	if got, want := string(tool.Result.JSON()), `{"type":"object","properties":{"text":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}},"required":["text","lines"]}`; got != want {
		t.Errorf("result:\ngot  %s\nwant %s", got, want)
	}
	for body, want := range map[string]string{
		`{"item":"tea"}`:             `{"text":"1 <tea>","lines":[]}`,
		`{"item":"tea","count":2.0}`: `{"text":"2 <tea>","lines":[]}`,
		``:                           "invalid_arguments 0 - the arguments do not fit the tool's schema",
		`{"item":""}`:                "invalid_arguments 0 - the arguments do not fit the tool's schema",
		`{"item":"tea","conut":2}`:   "invalid_arguments 0 - the arguments do not fit the tool's schema",
		`{"item":`:                   "invalid_arguments 0 - the body is not valid JSON",
	} {
		if got := called(t, tool, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// TestNewOutcomes lets typed functions end in every way.
func TestNewOutcomes(t *testing.T) {
	t.Parallel()
	type none struct{}
	type when struct {
		N  int64     `json:"n" default:"0"`
		At time.Time `json:"at" default:"2024-12-31T00:00:00Z"`
	}
	var broken *receipt
	for _, test := range []struct {
		name, body, want string
		tool             *wasmtools.Tool
	}{
		{"a number", `{}`, `0.5`, gotool.New("f", "F.", func(context.Context, none) (float64, error) { return 0.5, nil })},
		{"NaN", `{}`, "tool_bad_output 0 - -", gotool.New("f", "F.", func(context.Context, none) (float64, error) { return math.NaN(), nil })},
		{"a nil pointer", `{}`, "tool_bad_output 0 - -", gotool.New("f", "F.", func(context.Context, none) (*receipt, error) { return broken, nil })},
		{"a nil list", `{}`, `[]`, gotool.New("f", "F.", func(context.Context, none) ([]int, error) { return nil, nil })},
		{"anything", `{"a":[1]}`, `{"a":[1]}`, gotool.New("f", "F.", func(_ context.Context, in map[string]any) (any, error) { return in, nil })},
		{"an error", `{}`, "tool_error 0 - no tea left", gotool.New("f", "F.", func(context.Context, none) (int, error) { return 0, errors.New("no tea left") })},
		{"an error with a status", `{}`, "tool_error 409 no_tea row 1: no tea left", gotool.New("f", "F.", func(context.Context, none) (int, error) {
			return 0, fmt.Errorf("row 1: %w", &wasmtools.Error{Code: wasmtools.CodeToolError, ToolCode: "no_tea", Message: "no tea left", Status: http.StatusConflict})
		})},
		{"a number beyond 64 bits", `{"n":1e22}`, "tool_error 0 invalid_arguments arguments: n: a JSON number 10000000000000000000000 does not fit int64",
			gotool.New("f", "F.", func(_ context.Context, in when) (int64, error) { return in.N, nil })},
	} {
		if got := called(t, test.tool, test.body); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestNewConcurrently calls one tool from many goroutines: no call sees the data of another.
func TestNewConcurrently(t *testing.T) {
	t.Parallel()
	tool := gotool.New("buy", "Buy things.", buy)
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for range 100 {
				if got, want := called(t, tool, fmt.Sprintf(`{"item":"%d"}`, i)), fmt.Sprintf(`{"text":"1 <%d>","lines":[]}`, i); got != want {
					t.Errorf("got %s, want %s", got, want)
					return
				}
			}
		})
	}
	calls.Wait()
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	type in struct{ A int }
	good := func(context.Context, in) (int, error) { return 0, nil }
	for _, test := range []struct {
		name string
		make func()
		want string
	}{
		{"no name", func() { gotool.New("", "F.", good) }, `is not a valid name`},
		{"a bad name", func() { gotool.New("math/a b", "F.", good) }, `"math/a b": "a b" is not a valid name`},
		{"two slashes", func() { gotool.New("math//add", "F.", good) }, `math/`},
		{"the service's path", func() { gotool.New("tools", "F.", good) }, `/tools is reserved for the service`},
		{"no description", func() { gotool.New("add", " ", good) }, `it has no description`},
		{"no function", func() { gotool.New[in, int]("add", "F.", nil) }, `it has no function`},
		{"no function with a call", func() { gotool.NewWithCall[in, int]("add", "F.", nil) }, `it has no function`},
		{"arguments that are not an object", func() { gotool.New("f", "F.", func(context.Context, int) (int, error) { return 0, nil }) }, `arguments: int is not a JSON object`},
		{"a type that JSON can't hold", func() {
			gotool.New("f", "F.", func(context.Context, struct{ C chan int }) (int, error) { return 0, nil })
		}, `arguments.C: chan int`},
		{"a result that JSON can't hold", func() { gotool.New("f", "F.", func(context.Context, in) (func(), error) { return nil, nil }) }, `result: func()`},
		{"a misspelt tag", func() {
			gotool.New("f", "F.", func(context.Context, struct {
				A int `descripton:"A."`
			}) (int, error) {
				return 0, nil
			})
		}, `did you mean "description"?`},
		{"an invalid pattern", func() {
			gotool.New("f", "F.", func(context.Context, struct {
				A string `pattern:"("`
			}) (int, error) {
				return 0, nil
			})
		}, `/properties/A/pattern`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if v := fmt.Sprint(recover()); !strings.HasPrefix(v, "gotool.New ") || !strings.Contains(v, test.want) {
					t.Errorf("panics with %s, want %s in it", v, test.want)
				}
			}()
			test.make()
		})
	}
}

// TestNewShared checks that a result that all calls of a function share is only read.
// Proves: Answers and logs show what is meant to be seen
func TestNewShared(t *testing.T) {
	t.Parallel()
	type hidden struct {
		Kept []receipt `json:"kept"`
	}
	type shelf struct {
		hidden
		own   hidden
		Books []string            `json:"books"`
		Below *receipt            `json:"below"`
		By    map[string][]string `json:"by"`
		Rows  []receipt           `json:"rows"`
		Two   [1][]int            `json:"two"`
	}
	shared := &shelf{hidden: hidden{[]receipt{{}}}, Below: &receipt{}, By: map[string][]string{"a": nil}, Rows: []receipt{{}}}
	tool := gotool.New("shelf", "Show the shelf.", func(context.Context, struct{}) (*shelf, error) { return shared, nil })
	const want = `{"kept":[{"text":"","lines":[]}],"books":[],"below":{"text":"","lines":[]},"by":{"a":[]},"rows":[{"text":"","lines":[]}],"two":[[]]}`
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := called(t, tool, `{}`); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	all.Wait()
	if shared.own.Kept != nil || shared.Kept[0].Lines != nil || shared.Books != nil || shared.Below.Lines != nil || shared.By["a"] != nil || shared.Rows[0].Lines != nil || shared.Two[0] != nil {
		t.Errorf("the value of the function was changed: %+v", shared)
	}
}

// outcome returns a result, or an error in a line.
func outcome(result []byte, err error) string {
	if err == nil {
		return string(result)
	}
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		return "error " + err.Error()
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return fmt.Sprintf("%s %d %s %s", failed.Code, failed.Status, dash(failed.ToolCode), dash(failed.Message))
}
