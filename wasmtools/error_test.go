package wasmtools_test

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

func TestError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  wasmtools.Error
		want string
	}{
		{wasmtools.Error{Code: wasmtools.CodeToolTrapped, Message: "It trapped."}, "It trapped."},
		{wasmtools.Error{Code: wasmtools.CodeToolTrapped}, "tool_trapped"},
		{wasmtools.Error{Code: wasmtools.CodeInternal, Message: "Broken", Err: io.EOF}, "Broken: EOF"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if err := error(&wasmtools.Error{Err: io.EOF}); !errors.Is(err, io.EOF) {
		t.Errorf("%v hides its cause", err)
	}
}

// Clients of FastAPI read this form.
func TestViolationJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		violation misfit.Violation
		want      string
	}{
		{misfit.Violation{Type: "missing", Loc: []any{"body", "a"}, Msg: "Field required", Input: json.RawMessage(`{}`)},
			`{"type":"missing","loc":["body","a"],"msg":"Field required","input":{}}`},
		{misfit.Violation{Type: "greater_than", Loc: []any{"body", "items", 0}, Msg: "m", Input: json.RawMessage(`1`), Ctx: map[string]any{"gt": 2}},
			`{"type":"greater_than","loc":["body","items",0],"msg":"m","input":1,"ctx":{"gt":2}}`},
	} {
		if got, err := json.Marshal(c.violation); string(got) != c.want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}
