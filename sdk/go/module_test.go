package toolsrv_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type terms struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

func add(_ *toolsrv.Call, in terms) (float64, error) { return in.A + in.B, nil }

func TestManifest(t *testing.T) {
	t.Parallel()
	m := toolsrv.Export(toolsrv.Module{Namespace: "a/b-c", Version: "1.2.0", Tools: []toolsrv.Tool{
		toolsrv.Func("add", "Adds <two> numbers.", add,
			toolsrv.Example{Arguments: `{"a": 1, "b": 2}`, Result: `3`}, toolsrv.Example{Arguments: `{"a":1,"b":1}`}),
		toolsrv.Func("any", "Takes anything.", func(_ *toolsrv.Call, in map[string]any) (any, error) { return in, nil }),
	}})
	const want = `{"abi":1,"namespace":"a/b-c","version":"1.2.0","sdk":"go/` + toolsrv.Version + `","tools":[` +
		`{"name":"add","description":"Adds <two> numbers.","parameters":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},` +
		`"required":["a","b"],"additionalProperties":false},"result":{"type":"number"},"examples":[{"arguments":{"a":1,"b":2},"result":3},{"arguments":{"a":1,"b":1}}]},` +
		`{"name":"any","description":"Takes anything.","parameters":{"type":"object"}}]}`
	for range 2 { // the second is the same: nothing is used up
		got, err := m.Manifest()
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}

func TestManifestRefused(t *testing.T) {
	t.Parallel()
	tool := func(name, description string, examples ...toolsrv.Example) []toolsrv.Tool {
		return []toolsrv.Tool{toolsrv.Func(name, description, add, examples...)}
	}
	tests := []struct {
		name   string
		module toolsrv.Module
		want   string
	}{
		{"no tools", toolsrv.Module{}, "the module has no tools"},
		{"namespace", toolsrv.Module{Namespace: "a//b", Tools: tool("add", "A.")}, `namespace "a//b": "" is not a valid name`},
		{"namespace slash first", toolsrv.Module{Namespace: "/a", Tools: tool("add", "A.")}, `namespace "/a"`},
		{"namespace slash last", toolsrv.Module{Namespace: "a/", Tools: tool("add", "A.")}, `namespace "a/"`},
		{"name", toolsrv.Module{Tools: tool("äh", "A.")}, `tool "äh": "äh" is not a valid name`},
		{"no name", toolsrv.Module{Tools: tool("", "A.")}, `is not a valid name`},
		{"long name", toolsrv.Module{Tools: tool(strings.Repeat("a", 65), "A.")}, "use 1 to 64"},
		{"no description", toolsrv.Module{Tools: tool("add", "")}, "no description"},
		{"no function", toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func[struct{}, struct{}]("add", "Add.", nil)}}, "no function"},
		{"blank description", toolsrv.Module{Tools: tool("add", " \n")}, "no description"},
		{"twice", toolsrv.Module{Tools: slices.Concat(tool("add", "A."), tool("add", "B."))}, `two tools are called "add"`},
		{"empty tool", toolsrv.Module{Tools: make([]toolsrv.Tool, 1)}, "make tools with toolsrv.Func"},
		{"example is a list", toolsrv.Module{Tools: tool("add", "A.", toolsrv.Example{Arguments: `[]`})}, `tool "add": example 1: the arguments [] are not a JSON object`},
		{"example of nothing", toolsrv.Module{Tools: tool("add", "A.", toolsrv.Example{})}, "are not a JSON object"},
		{"example with a slip", toolsrv.Module{Tools: tool("add", "A.", toolsrv.Example{Arguments: `{"c":1}`})}, `unknown field "c"`},
		{"example of another type", toolsrv.Module{Tools: tool("add", "A.", toolsrv.Example{Arguments: `{"a":"x"}`})}, "example 1"},
		{"result is not JSON", toolsrv.Module{Tools: tool("add", "A.", toolsrv.Example{Arguments: `{}`, Result: `x`})}, "the result x is not valid JSON"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.module.Manifest()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %s, %v, want an error with %q", got, err, test.want)
			}
		})
	}
}

// full has a nil slice or map in every place where encoding/json would write null.
type full struct {
	List   []int             `json:"list"`
	Map    map[string]int    `json:"map"`
	Lists  [][]string        `json:"lists"`
	ByName map[string][]int  `json:"byName"`
	Array  [1][]int          `json:"array"`
	Ptr    *inner            `json:"ptr"`
	Inner  inner             `json:"inner"`
	Bytes  []byte            `json:"bytes"`
	Empty  []int             `json:"empty,omitempty"`
	Zero   []int             `json:"zero,omitzero"`
	Nested inner             `json:"nested,omitzero"`
	Raw    json.RawMessage   `json:"raw"`
	Any    any               `json:"any"`
	Kids   []full            `json:"kids"`
	Null   *int              `json:"null"`
	Text   map[string]string `json:"-"`
	hidden []int
	inner2
}

type inner struct {
	L []int `json:"l"`
}

type inner2 struct {
	M []int `json:"m"`
}

func TestResults(t *testing.T) {
	t.Parallel()
	give := func(v any) func(*testing.T) (string, error) {
		return func(t *testing.T) (string, error) { return callFor[any](t, v) }
	}
	var nilPointer *full
	value := 7
	tests := []struct {
		name string
		call func(*testing.T) (string, error)
		want string // or, with a ! before it, a part of the error
	}{
		{"number", give(1.5), "1.5"},
		{"text without HTML escapes", give("<a & b>"), `"<a & b>"`},
		{"null", give(nil), "null"},
		{"NaN", func(t *testing.T) (string, error) { return callFor(t, math.NaN()) }, "!the result can't be written as JSON"},
		{"nil pointer", func(t *testing.T) (string, error) { return callFor(t, nilPointer) }, "!nil pointer"},
		{"pointer", func(t *testing.T) (string, error) { return callFor(t, &value) }, "7"},
		{"chan in any", give(make(chan int)), "!the result can't be written as JSON"},
		{"nil slice", func(t *testing.T) (string, error) { return callFor(t, []string(nil)) }, "[]"},
		{"nil map", func(t *testing.T) (string, error) { return callFor(t, map[string]int(nil)) }, "{}"},
		{"recursive slice", func(t *testing.T) (string, error) { return callFor(t, loop{nil, {nil}}) }, "[[],[[]]]"},
		{"struct", func(t *testing.T) (string, error) {
			return callFor(t, full{Lists: [][]string{nil}, ByName: map[string][]int{"a": nil}, Ptr: &inner{}, hidden: nil})
		}, `{"list":[],"map":{},"lists":[[]],"byName":{"a":[]},"array":[[]],"ptr":{"l":[]},"inner":{"l":[]},"bytes":"","raw":null,"any":null,"kids":[],"null":null,"m":[]}`},
		{"cycle", func(t *testing.T) (string, error) {
			l := &linked{}
			l.Next = l
			return callFor(t, l)
		}, "!cycle"},
		{"cycle of slices", func(t *testing.T) (string, error) {
			l := loop{nil}
			l[0] = l
			return callFor(t, l)
		}, "!cycle"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.call(t)
			if want, fails := strings.CutPrefix(test.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %s, %v, want an error with %q", got, err, want)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

// callFor calls a tool that returns v.
func callFor[R any](t *testing.T, v R) (string, error) {
	t.Helper()
	m := toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("t", "T.", func(*toolsrv.Call, struct{}) (R, error) { return v, nil })}}
	out, err := m.Call(new(toolsrv.Call), "t", nil)
	return string(out), err
}

func TestArguments(t *testing.T) {
	t.Parallel()
	type in struct {
		N     int8 `json:"n"`
		Items []struct{ Price int }
		P     *terms `json:"p"`
		Raw   []byte
		When  time.Time
	}
	m := toolsrv.Module{Tools: []toolsrv.Tool{
		toolsrv.Func("t", "T.", func(_ *toolsrv.Call, in in) (string, error) { return fmt.Sprint(in.N, in.Items, in.P != nil), nil }),
		toolsrv.Func("p", "P.", func(_ *toolsrv.Call, in *in) (bool, error) { return in != nil, nil }),
	}}
	tests := []struct{ name, tool, arguments, want string }{
		{"all", "t", `{"n":1,"Items":[{"Price":2}],"p":{}}`, `"1 [{2}] true"`},
		{"empty", "t", ``, `"0 [] false"`},
		{"null", "t", `{"p":null}`, `"0 [] false"`},
		{"pointer", "p", `{}`, `true`},
		{"beyond the type", "t", `{"n":300}`, "!arguments: n: a JSON number 300 does not fit int8"},
		{"fraction", "t", `{"Items":[{"Price":1.5}]}`, "!arguments: Items.Price: a JSON number 1.5 does not fit int"},
		{"whole number with a point", "t", `{"n":1.0}`, "!arguments: n: a JSON number 1.0 does not fit int8"},
		{"no base64", "t", `{"n":1,"Raw":"%"}`, "!arguments: Raw: illegal base64"},
		{"no time", "t", `{"n":1,"When":"2026-01-01T00:00:60Z","Raw":""}`, "!arguments: When: parsing time"},
		{"no JSON", "t", `{`, "!arguments: unexpected end"},
		{"two values", "t", `{}{}`, "!arguments: "},
		{"no such tool", "x", `{}`, `!no tool "x"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := m.Call(new(toolsrv.Call), test.tool, []byte(test.arguments))
			if want, fails := strings.CutPrefix(test.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %s, %v, want an error with %q", got, err, want)
				}
				return
			}
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	coded := &toolsrv.Error{Code: "gone", Message: "It is gone.", Status: 410, Data: map[string]int{"n": 1}}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"plain", errors.New("no <way>"), `{"message":"no <way>"}`},
		{"empty", errors.New(""), `{"message":"the tool failed"}`},
		{"all", coded, `{"message":"It is gone.","code":"gone","status":410,"data":{"n":1}}`},
		{"wrapped", fmt.Errorf("row 3: %w", coded), `{"message":"row 3: It is gone.","code":"gone","status":410,"data":{"n":1}}`},
		{"code only", &toolsrv.Error{Code: "x"}, `{"message":"x","code":"x"}`},
		{"nothing", &toolsrv.Error{}, `{"message":"the tool failed"}`},
		{"nil that is not a nil error", (*toolsrv.Error)(nil), `{"message":"the tool failed"}`},
		{"long", errors.New(strings.Repeat("ä", 1<<16)), `{"message":"` + strings.Repeat("ä", 1<<12) + `..."}`},
		{"cut within a letter", errors.New("a" + strings.Repeat("ä", 1<<16)), `{"message":"a` + strings.Repeat("ä", 1<<12-1) + `..."}`},
		{"wrong UTF-8", errors.New("a\xffb"), `{"message":"a\ufffdb"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrv.AsError(test.err).MarshalJSON()
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
	if text, err := (&toolsrv.Error{Data: math.NaN()}).MarshalJSON(); err == nil {
		t.Errorf("data NaN: got %s, want an error", text)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var got []string
	c := toolsrv.NewCall(func(level toolsrv.Level, message string) { got = append(got, level.String()+" "+message) })
	c.Debugf("a %d", 1)
	c.Infof("b")
	c.Warnf("c")
	c.Errorf("100%%")
	c.Log(toolsrv.Level(9), "100%")
	if want := []string{"DEBUG a 1", "INFO b", "WARN c", "ERROR 100%", "Level(9) 100%"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var none *toolsrv.Call
	none.Infof("nothing happens")
	new(toolsrv.Call).Log(toolsrv.LevelInfo, "nothing happens")
}

func TestCallIsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(new(toolsrv.Call))
	if ctx.Err() != nil {
		t.Errorf("got %v, want nil", ctx.Err())
	}
	if _, ok := ctx.Deadline(); ok {
		t.Error("got a deadline, want none")
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("got nil after cancel, want an error")
	}
}

// TestProgress: the reports of a Call are passed on, and dropped if nobody listens.
func TestProgress(t *testing.T) {
	t.Parallel()
	var heard []string
	c := new(toolsrv.Call).Reporting(func(done, total float64, message string) {
		heard = append(heard, fmt.Sprintf("%v of %v: %s", done, total, message))
	}).Until(time.Now().Add(time.Hour))
	c.Progress(1, 3, "read")
	c.Progress(2.5, 0, "")
	if got := strings.Join(heard, "; "); got != "1 of 3: read; 2.5 of 0: " || c.TimeLeft() > time.Hour {
		t.Errorf("heard %q with %v left", got, c.TimeLeft())
	}
	for _, silent := range []*toolsrv.Call{nil, new(toolsrv.Call), toolsrv.NewCall(nil), new(toolsrv.Call).Reporting(nil)} {
		silent.Progress(1, 3, "unheard")
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	var none *toolsrv.Call
	if left := none.TimeLeft(); left != math.MaxInt64 {
		t.Errorf("without a deadline: got %v left, want the longest time", left)
	}
	logged := 0
	c := toolsrv.NewCall(func(toolsrv.Level, string) { logged++ }).Until(time.Now().Add(time.Hour))
	if left := c.TimeLeft(); left > time.Hour || left < 59*time.Minute {
		t.Errorf("got %v left, want an hour", left)
	}
	if deadline, ok := c.Deadline(); !ok || time.Until(deadline) > time.Hour || time.Until(deadline) < 59*time.Minute {
		t.Errorf("got %v, %t, want a deadline in an hour", deadline, ok)
	}
	if c.Infof("logged"); logged != 1 {
		t.Errorf("got %d log lines, want the one", logged)
	}
	if left := c.Until(time.Now().Add(-time.Hour)).TimeLeft(); left != 0 {
		t.Errorf("beyond the deadline: got %v left, want 0", left)
	}
}

// FuzzArguments calls a tool with arbitrary bytes, as a host without validation would.
func FuzzArguments(f *testing.F) {
	type in struct {
		S string            `json:"s"`
		N int               `json:"n"`
		F *float64          `json:"f"`
		L []node            `json:"l"`
		M map[string][]byte `json:"m"`
		A any               `json:"a"`
	}
	m := toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("t", "T.", func(_ *toolsrv.Call, in in) (any, error) { return in, nil })}}
	for _, seed := range []string{``, `{}`, `{"s":"a","n":1,"f":null,"l":[{"kids":[{}]}],"m":{"x":"AA=="},"a":[1]}`, `{"n":1e999}`, `[`, "\xff", `{"a":` + strings.Repeat("[", 20000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, arguments []byte) {
		out, err := m.Call(new(toolsrv.Call), "t", arguments)
		if (err == nil) != json.Valid(out) {
			t.Errorf("%q: got %q, %v, want JSON or an error", arguments, out, err)
		}
		if err != nil {
			if text, err := toolsrv.AsError(err).MarshalJSON(); err != nil || !json.Valid(text) {
				t.Errorf("%q: got %q, %v, want the error as JSON", arguments, text, err)
			}
		}
	})
}

func BenchmarkCall(b *testing.B) {
	m := toolsrv.Module{Tools: []toolsrv.Tool{
		toolsrv.Func("add", "Add two numbers.", add),
		toolsrv.Func("lists", "Lists.", func(_ *toolsrv.Call, in terms) (full, error) { return full{}, nil }),
	}}
	c := new(toolsrv.Call)
	for _, tool := range []string{"add", "lists"} {
		b.Run(tool, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Call(c, tool, []byte(`{"a":1,"b":2}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
