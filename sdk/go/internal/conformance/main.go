// Command conformance is the Go guest of the conformance kit: testdata/abi/README.md says what its tools do.
package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unsafe"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrand"
)

type nothing struct{}

type anything struct {
	Value json.RawMessage `json:"value"`
}

type text struct {
	Text string `json:"text"`
}

type numbers struct {
	Int   int64   `json:"int" default:"0"`
	Uint  uint64  `json:"uint" default:"0"`
	Float float64 `json:"float" default:"0"`
}

type parcel struct {
	Name  string   `json:"name" default:"world"`
	Count int64    `json:"count" default:"3"`
	Tags  []string `json:"tags" default:"[\"a\",\"b\"]"`
	Inner *Inner   `json:"inner"`
}

type Inner struct {
	Amount float64 `json:"amount"`
	Unit   string  `json:"unit" default:"kg"`
}

// Tree holds itself, so decoding it takes call stack for each level.
type Tree struct {
	Name     string `json:"name"`
	Children []Tree `json:"children" default:"[]"`
}

type failure struct {
	Message string          `json:"message"`
	Code    string          `json:"code" default:""`
	Status  int64           `json:"status" default:"0"`
	Data    json.RawMessage `json:"data" required:"false"`
}

type lines struct {
	Lines []Line `json:"lines"`
}

type Line struct {
	Level string `json:"level" enum:"debug,info,warn,error"`
	Text  string `json:"text"`
}

type work struct {
	Reports []Report `json:"reports"`
}

type Report struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total" default:"0"`
	Message string  `json:"message" default:""`
}

type repetition struct {
	Text  string `json:"text"`
	Times int64  `json:"times" minimum:"0" maximum:"10000000"`
}

var _ = toolsrv.Export(toolsrv.Module{
	Namespace: "conformance",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("echo", "Return the value.", func(_ *toolsrv.Call, in anything) (json.RawMessage, error) { return in.Value, nil }).With(toolsrv.Options{
			Title:       `Return "the" value`,
			Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, Destructive: toolsrv.No, Idempotent: toolsrv.Yes, OpenWorld: toolsrv.No},
			Icons: []toolsrv.Icon{
				{Src: "https://example.com/echo.svg", MIMEType: "image/svg+xml", Sizes: []string{"any"}, Theme: "dark"},
				{Src: "data:image/png;base64,iVBORw0KGgo="},
			},
		}),
		toolsrv.Func("text", "Return the text.", func(_ *toolsrv.Call, in text) (string, error) { return in.Text, nil }),
		toolsrv.Func("numbers", "Return the numbers.", func(_ *toolsrv.Call, in numbers) (numbers, error) { return in, nil }),
		toolsrv.Func("defaults", "Return the arguments.", func(_ *toolsrv.Call, in parcel) (parcel, error) { return in, nil }),
		toolsrv.Func("tree", "Return the tree.", func(_ *toolsrv.Call, in Tree) (Tree, error) { return in, nil }),
		toolsrv.Func("empty", "Return an object without members.", func(*toolsrv.Call, nothing) (nothing, error) { return nothing{}, nil }),
		toolsrv.Func("null", "Return null.", func(*toolsrv.Call, nothing) (any, error) { return nil, nil }),
		toolsrv.Func("list", "Return a list without elements.", func(*toolsrv.Call, nothing) ([]int64, error) { return nil, nil }),
		toolsrv.Func("fail", "Fail as told.", fail),
		toolsrv.Func("log", "Log the lines.", log),
		toolsrv.Func("panic", "Panic with the text.", func(_ *toolsrv.Call, in text) (nothing, error) { panic(in.Text) }),
		toolsrv.Func("count", "Count the calls of this sandbox.", count()),
		toolsrv.Func("random", "Return what no other call returns.", func(*toolsrv.Call, nothing) (string, error) {
			return fmt.Sprintf("%016x", toolsrand.New().Uint64()), nil
		}),
		toolsrv.Func("clock", "Return the milliseconds since 1970.", func(*toolsrv.Call, nothing) (int64, error) { return time.Now().UnixMilli(), nil }),
		toolsrv.Func("deadline", "Return how many milliseconds the call has left.", func(c *toolsrv.Call, _ nothing) (int64, error) {
			return c.TimeLeft().Milliseconds(), nil
		}),
		toolsrv.Func("progress", "Report the progress.", func(c *toolsrv.Call, in work) (nothing, error) {
			for _, r := range in.Reports {
				c.Progress(r.Done, r.Total, r.Message)
			}
			return nothing{}, nil
		}),
		toolsrv.Func("rewrite", "Write one output, then return another.", func(*toolsrv.Call, nothing) (string, error) {
			const first = `"first"`
			outputWrite(unsafe.Pointer(unsafe.StringData(first)), uint32(len(first)))
			return "second", nil
		}),
		toolsrv.Func("repeat", "Return the text so many times.", func(_ *toolsrv.Call, in repetition) (string, error) {
			return strings.Repeat(in.Text, int(in.Times)), nil
		}),
		toolsrv.Func("spin", "Never return.", func(*toolsrv.Call, nothing) (nothing, error) {
			for n := uint64(1); n != 0; n = 5*n + 2 { // it is odd forever
			}
			return nothing{}, nil
		}),
		toolsrv.Func("hoard", "Take memory until there is none.", func(*toolsrv.Call, nothing) (nothing, error) {
			for {
				hoarded = append(hoarded, make([]byte, 1<<20))
			}
		}),
	},
})

// hoarded keeps what hoard takes.
var hoarded [][]byte

func main() {}

func fail(_ *toolsrv.Call, in failure) (nothing, error) {
	e := &toolsrv.Error{Code: in.Code, Message: in.Message, Status: int(in.Status)}
	if in.Data != nil {
		e.Data = in.Data
	}
	return nothing{}, e
}

func log(c *toolsrv.Call, in lines) (nothing, error) {
	levels := map[string]toolsrv.Level{"debug": toolsrv.LevelDebug, "info": toolsrv.LevelInfo, "warn": toolsrv.LevelWarn, "error": toolsrv.LevelError}
	for _, l := range in.Lines {
		c.Log(levels[l.Level], l.Text)
	}
	return nothing{}, nil
}

// count returns a tool that keeps state, as no tool should: it must not survive a call.
func count() func(*toolsrv.Call, nothing) (int64, error) {
	calls := int64(0)
	return func(*toolsrv.Call, nothing) (int64, error) {
		calls++
		return calls, nil
	}
}
