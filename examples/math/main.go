// Command math is a module of two small tools: the first one to read.
package main

import (
	"math"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type terms struct {
	A float64 `json:"a" description:"The first term."`
	B float64 `json:"b" description:"The second term."`
}

type fraction struct {
	Dividend float64 `json:"dividend" description:"The number to divide."`
	Divisor  float64 `json:"divisor" description:"The number to divide by; not 0."`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "math",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("add", "Add two numbers.", add,
			toolsrv.Example{Arguments: `{"a": 2, "b": 3}`, Result: `5`},
			toolsrv.Example{Arguments: `{"a": 0.5, "b": -1}`, Result: `-0.5`},
		).With(toolsrv.Options{Title: "Add two numbers", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
		toolsrv.Func("divide", "Divide one number by another.", divide,
			toolsrv.Example{Arguments: `{"dividend": 7, "divisor": 2}`, Result: `3.5`},
		).With(toolsrv.Options{Title: "Divide two numbers", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

func add(_ *toolsrv.Call, in terms) (float64, error) {
	return finite(in.A + in.B)
}

func divide(_ *toolsrv.Call, in fraction) (float64, error) {
	if in.Divisor == 0 {
		return 0, &toolsrv.Error{
			Code:    "division_by_zero",
			Message: "The divisor is 0: pass another number.",
			Data:    map[string]any{"dividend": in.Dividend},
		}
	}
	return finite(in.Dividend / in.Divisor)
}

// finite returns x, or an error if it is too large: JSON has no infinity.
func finite(x float64) (float64, error) {
	if math.IsInf(x, 0) {
		return 0, &toolsrv.Error{Code: "overflow", Message: "The result is beyond the largest number (about 1.8e308): pass smaller ones."}
	}
	return x, nil
}
