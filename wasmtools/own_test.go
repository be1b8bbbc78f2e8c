package wasmtools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A runner plays the sandbox: it is a Caller whose results are used as they are.
type runner struct{ wasmtools.CallerFunc }

func (runner) IsRunner() {}

// TestNativeOutcomes checks what clients see of what a Go function returns.
// Proves: Answers and logs show what is meant to be seen
func TestNativeOutcomes(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	refused := &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "there are 2 left", Status: 409, ToolCode: "not_in_stock"}
	hidden := &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "no connection", Err: errors.New("password hunter2")}
	long := strings.Repeat("é", 8<<10)
	for _, test := range []struct {
		name   string
		ctx    context.Context
		result string
		err    error
		want   string // code, status, tool code and message; or the result
	}{
		{"a result", t.Context(), ` {"a":1} `, nil, ` {"a":1} `},
		{"null", t.Context(), `null`, nil, `null`},
		{"no JSON", t.Context(), `Hello`, nil, "tool_bad_output 0 - -"},
		{"two values", t.Context(), `{}{}`, nil, "tool_bad_output 0 - -"},
		{"wrong UTF-8", t.Context(), "\"\xff\"", nil, "tool_bad_output 0 - -"},
		{"NaN", t.Context(), `NaN`, nil, "tool_bad_output 0 - -"},
		{"blank", t.Context(), "  ", nil, "tool_bad_output 0 - -"},
		{"nothing", t.Context(), "", nil, "tool_bad_output 0 - The tool returned no result"},
		{"a plain error", t.Context(), "{}", errors.New("the divisor is 0"), "tool_error 0 - the divisor is 0"},
		{"an error of its own", t.Context(), "", refused, "tool_error 409 not_in_stock there are 2 left"},
		{"an error of its own that is wrapped", t.Context(), "", fmt.Errorf("row 3: %w", refused), "tool_error 409 not_in_stock row 3: there are 2 left"},
		{"an error with a cause", t.Context(), "", hidden, "tool_error 0 - no connection"},
		{"a wrapped error with a cause", t.Context(), "", fmt.Errorf("row 3: %w", hidden), "tool_error 0 - no connection"},
		{"an error of the service", t.Context(), "", fmt.Errorf("x: %w", &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "full"}), "overloaded 0 - full"},
		{"a long one", t.Context(), "", errors.New(long), "tool_error 0 - " + long[:8<<10-4] + "..."},
		{"the end of the call", gone, "", fmt.Errorf("query: %w", context.Canceled), "error query: context canceled"},
		{"the end of something else", t.Context(), "", context.Canceled, "tool_error 0 - context canceled"},
	} {
		native := tool("", "native")
		native.Caller = wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(test.result), test.err })
		got, err := native.Call(test.ctx, &wasmtools.Call{Arguments: []byte("{}")})
		if text := outcome(got, err); text != test.want {
			t.Errorf("%s: got %.200q, want %.200q", test.name, text, test.want)
		}
	}
}

// TestRunnerOutcomes checks that results of a sandbox are not changed: the sandbox has checked them, and its errors are the service's.
func TestRunnerOutcomes(t *testing.T) {
	t.Parallel()
	var result []byte
	var err error
	guest := tool("", "guest")
	guest.Caller = runner{func(context.Context, *wasmtools.Call) ([]byte, error) { return result, err }}
	result = []byte("not looked at")
	if got, err := guest.Call(t.Context(), &wasmtools.Call{}); outcome(got, err) != "not looked at" {
		t.Errorf("got %s, %v", got, err)
	}
	result, err = nil, errors.New("the engine is closed")
	if got, err := guest.Call(t.Context(), &wasmtools.Call{}); outcome(got, err) != "error the engine is closed" {
		t.Errorf("got %s, %v", got, err)
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
