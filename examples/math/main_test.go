package main

import (
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, tool, arguments, code string }{
		{"division by zero", "divide", `{"dividend": 1, "divisor": 0}`, "division_by_zero"},
		{"division by minus zero", "divide", `{"dividend": 1, "divisor": -0.0}`, "division_by_zero"},
		{"zero by zero", "divide", `{"dividend": 0, "divisor": 0}`, "division_by_zero"},
		{"sum too large", "add", `{"a": 1e308, "b": 1e308}`, "overflow"},
		{"quotient too large", "divide", `{"dividend": 1e308, "divisor": 1e-10}`, "overflow"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolsrvtest.Call(t, module, test.tool, test.arguments)
			if err == nil {
				t.Fatalf("got %s, want an error", got)
			}
			if e := toolsrv.AsError(err); e.Code != test.code || e.Message == "" {
				t.Errorf("got %+v, want the code %s and a message", e, test.code)
			}
		})
	}
}

func TestArgumentsRefused(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{`{}`, `{"a": 1}`, `{"a": 1, "b": "2"}`, `{"a": 1, "b": null}`, `{"a": 1, "b": 2, "c": 3}`} {
		if got, err := toolsrvtest.Call(t, module, "add", arguments); err == nil {
			t.Errorf("%s: got %s, want an error", arguments, got)
		}
	}
}
