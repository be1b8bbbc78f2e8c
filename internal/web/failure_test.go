package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// TestFailure checks that Failure agrees with the table of errors.
func TestFailure(t *testing.T) {
	t.Parallel()
	internal := `{"detail":"Internal error; give the operator the request id","code":"internal"}`
	for _, c := range []struct {
		name   string
		err    error
		status int
		body   string
	}{
		{"the tool's own", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "2 are left.", Status: 409, ToolCode: "few", Data: json.RawMessage(`{"left":2}`)},
			409, `{"detail":"2 are left.","code":"tool_error","error":{"code":"few","data":{"left":2}}}`},
		{"wrapped", fmt.Errorf("call: %w", &wasmtools.Error{Code: wasmtools.CodeToolTimeout}), 504, `{"detail":"The tool ran out of time","code":"tool_timeout"}`},
		{"violations", &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []misfit.Violation{{Type: "missing", Loc: []any{"body", "a"}, Msg: "Field required", Input: json.RawMessage("{}")}}},
			422, `{"detail":[{"type":"missing","loc":["body","a"],"msg":"Field required","input":{}}],"code":"invalid_arguments"}`},
		{"a violation that is not JSON", &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []misfit.Violation{{Input: json.RawMessage("{")}}}, 500, internal},
		{"data that is not JSON", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "No.", Data: json.RawMessage("{")}, 400, `{"detail":"No.","code":"tool_error"}`},
		{"internal, with a secret", &wasmtools.Error{Code: wasmtools.CodeInternal, Message: "secret", Err: errors.New("secret")}, 500, internal},
		{"any error", errors.New("secret"), 500, internal},
		{"a code that is not known", &wasmtools.Error{Code: "odd", Message: "secret"}, 500, internal},
		{"a nil *Error", (*wasmtools.Error)(nil), 500, internal},
	} {
		if status, body := web.Failure(c.err); status != c.status || string(body) != c.body {
			t.Errorf("%s: got %d %s, want %d %s", c.name, status, body, c.status, c.body)
		}
	}
}

// TestEveryCodeHasAnAnswer checks that the table of statuses has all codes of the domain.
func TestEveryCodeHasAnAnswer(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		status, body := web.Failure(&wasmtools.Error{Code: code})
		if status < 400 || status > 599 || !strings.Contains(string(body), `"detail":"`) {
			t.Errorf("%s: got %d, %s", code, status, body)
		}
	}
}
