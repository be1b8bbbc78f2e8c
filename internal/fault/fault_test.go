package fault_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestOf maps each error that a call can end with to one of the service's errors.
func TestOf(t *testing.T) {
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
		{"its own, after the call was cancelled", gone, own, "overloaded full"},
		{"nil", t.Context(), (*wasmtools.Error)(nil), "internal internal: the error is a nil *wasmtools.Error"},
		{"a code that is not known", t.Context(), &wasmtools.Error{Code: "odd", Message: "m"}, `internal internal: unknown code "odd": m`},
		{"any other", t.Context(), io.EOF, "internal internal: EOF"},
		{"any other, after the call was cancelled", gone, io.EOF, "internal internal: EOF"},
		{"the call was cancelled", gone, fmt.Errorf("query: %w", context.Canceled), "cancelled cancelled: query: context canceled"},
		{"the call was cancelled, with a reason for the client", cut, &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: "gone", Err: io.EOF}, "cancelled shut down: EOF"},
		{"a Go function's call was cancelled, with a reason for the client", cut, context.Canceled, "cancelled shut down: context canceled"},
		{"its own, after the call was cancelled with a reason for the client", cut, own, "overloaded full"},
		{"the call was cancelled, with another reason", odd, context.Canceled, "cancelled cancelled: context canceled"},
		{"something other than the call was cancelled", t.Context(), context.Canceled, "internal internal: context canceled"},
		{"the call took too long", late, context.DeadlineExceeded, "tool_timeout tool_timeout: context deadline exceeded"},
	} {
		if e := fault.Of(test.ctx, test.err); string(e.Code)+" "+e.Error() != test.want {
			t.Errorf("%s: got %s %v, want %s", test.name, e.Code, e, test.want)
		}
	}
	if e := fault.Of(t.Context(), own); e != own {
		t.Error("the service's own error is copied")
	}
}

// TestLevel lists the level of each code, so that nobody adds a code without thinking of the log.
func TestLevel(t *testing.T) {
	t.Parallel()
	want := map[wasmtools.Code]slog.Level{
		wasmtools.CodeInternal:   slog.LevelError,
		wasmtools.CodeOverloaded: slog.LevelWarn, wasmtools.CodeToolTrapped: slog.LevelWarn, wasmtools.CodeToolBadOutput: slog.LevelWarn,
		wasmtools.CodeToolMemory: slog.LevelWarn, wasmtools.CodeToolStack: slog.LevelWarn, wasmtools.CodeToolFuel: slog.LevelWarn,
		wasmtools.CodeToolTimeout: slog.LevelWarn,
	}
	for _, code := range fault.Codes() {
		if got := fault.Level(&wasmtools.Error{Code: code, Status: 422}); got != want[code] {
			t.Errorf("%s: got %s, want %s", code, got, want[code])
		}
		with := &wasmtools.Error{Code: code, Err: io.EOF}
		if got, want := fault.Level(with), want[code]; got != want && code != wasmtools.CodeToolError {
			t.Errorf("%s with a cause: got %s, want %s", code, got, want)
		}
	}
	for name, e := range map[string]*wasmtools.Error{
		"a status of its own above 500": {Code: wasmtools.CodeToolError, Status: 502}, "data that is not JSON": {Code: wasmtools.CodeToolError, Err: io.EOF},
	} {
		if got := fault.Level(e); got != slog.LevelWarn {
			t.Errorf("%s: got %s, want WARN", name, got)
		}
	}
}
