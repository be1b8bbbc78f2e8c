package wasmtools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Clients of FastAPI read this shape.
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

// TestAsError makes one of the service's errors of each error that a call can end with.
func TestAsError(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	own := &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "full"}
	cut, end := context.WithCancelCause(t.Context())
	end(fmt.Errorf("end: %w", &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: "shut down"}))
	odd, end := context.WithCancelCause(t.Context())
	end(own)
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"its own", t.Context(), own, "overloaded full"},
		{"its own, wrapped", t.Context(), fmt.Errorf("call: %w", own), "overloaded full"},
		{"its own, at the end", gone, own, "overloaded full"},
		{"nil", t.Context(), (*wasmtools.Error)(nil), "internal internal: the error is a nil *wasmtools.Error"},
		{"a code that is not known", t.Context(), &wasmtools.Error{Code: "odd", Message: "m"}, `internal internal: unknown code "odd": m`},
		{"any other", t.Context(), io.EOF, "internal internal: EOF"},
		{"any other, at the end", gone, io.EOF, "internal internal: EOF"},
		{"the end of the call", gone, fmt.Errorf("query: %w", context.Canceled), "cancelled cancelled: query: context canceled"},
		{"the end of the call, with its reason", cut, &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: "gone", Err: io.EOF}, "cancelled shut down: EOF"},
		{"the end of a Go function's call, with its reason", cut, context.Canceled, "cancelled shut down: context canceled"},
		{"its own, at the end with its reason", cut, own, "overloaded full"},
		{"the end of the call, with another reason", odd, context.Canceled, "cancelled cancelled: context canceled"},
		{"the end of something else", t.Context(), context.Canceled, "internal internal: context canceled"},
		{"the end of the call's time", late, context.DeadlineExceeded, "tool_timeout tool_timeout: context deadline exceeded"},
	} {
		if e := wasmtools.AsError(test.ctx, test.err); string(e.Code)+" "+e.Error() != test.want {
			t.Errorf("%s: got %s %v, want %s", test.name, e.Code, e, test.want)
		}
	}
	if e := wasmtools.AsError(t.Context(), own); e != own {
		t.Error("the service's own error is copied")
	}
}

// TestLevelOf has each code at its level: a code that is added without a thought for the log is one more line for the operator to skip.
func TestLevelOf(t *testing.T) {
	t.Parallel()
	want := map[wasmtools.Code]slog.Level{
		wasmtools.CodeInternal:   slog.LevelError,
		wasmtools.CodeOverloaded: slog.LevelWarn, wasmtools.CodeToolTrapped: slog.LevelWarn, wasmtools.CodeToolBadOutput: slog.LevelWarn,
		wasmtools.CodeToolMemory: slog.LevelWarn, wasmtools.CodeToolStack: slog.LevelWarn, wasmtools.CodeToolFuel: slog.LevelWarn,
		wasmtools.CodeToolTimeout: slog.LevelWarn,
	}
	for _, code := range wasmtools.Codes() {
		if got := wasmtools.LevelOf(&wasmtools.Error{Code: code, Status: 422}); got != want[code] {
			t.Errorf("%s: got %s, want %s", code, got, want[code])
		}
		with := &wasmtools.Error{Code: code, Err: io.EOF}
		if got, want := wasmtools.LevelOf(with), want[code]; got != want && code != wasmtools.CodeToolError {
			t.Errorf("%s with a cause: got %s, want %s", code, got, want)
		}
	}
	for name, e := range map[string]*wasmtools.Error{
		"a status of its own above 500": {Code: wasmtools.CodeToolError, Status: 502}, "data that is not JSON": {Code: wasmtools.CodeToolError, Err: io.EOF},
	} {
		if got := wasmtools.LevelOf(e); got != slog.LevelWarn {
			t.Errorf("%s: got %s, want WARN", name, got)
		}
	}
}
