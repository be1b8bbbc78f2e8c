package wasmtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// A Code tells clients, in a stable word, why a request failed.
type Code string

// The codes of the service. Package web holds the one table from code to HTTP status.
const (
	CodeUnauthorized         Code = "unauthorized"
	CodeForbidden            Code = "forbidden"
	CodeHostNotAllowed       Code = "host_not_allowed"
	CodeOriginNotAllowed     Code = "origin_not_allowed"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeChanged              Code = "changed"
	CodeRequestTimeout       Code = "request_timeout"
	CodeInputTooLarge        Code = "input_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeInvalidArguments     Code = "invalid_arguments"
	CodeToolError            Code = "tool_error"
	CodeToolTrapped          Code = "tool_trapped"
	CodeToolBadOutput        Code = "tool_bad_output"
	CodeToolMemory           Code = "tool_memory"
	CodeToolStack            Code = "tool_stack"
	CodeToolFuel             Code = "tool_fuel"
	CodeToolTimeout          Code = "tool_timeout"
	CodeToolDisabled         Code = "tool_disabled"
	CodeToolNotGranted       Code = "tool_not_granted"
	CodeOverloaded           Code = "overloaded"
	CodeNotReady             Code = "not_ready"
	CodeCancelled            Code = "cancelled"
	CodeInternal             Code = "internal"
)

// An Error is a failure that a client may be told of.
type Error struct {
	// Code is why.
	Code Code
	// Message is a sentence for the client; it is the "detail" of the answer unless there are Violations.
	Message string
	// Status is the HTTP status that a tool asked for (tool_error only), 400 to 599, or 0 for 400.
	Status int
	// ToolCode and Data are what the tool said of its own failure (tool_error only); either may be empty.
	ToolCode string
	Data     json.RawMessage
	// Violations are all the reasons for CodeInvalidArguments.
	Violations []misfit.Violation
	// Err is the cause, for the log. It is never shown to a client.
	Err error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = string(e.Code)
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var codes = [...]Code{CodeUnauthorized, CodeForbidden, CodeHostNotAllowed, CodeOriginNotAllowed, CodeNotFound, CodeMethodNotAllowed, CodeChanged, CodeRequestTimeout, CodeInputTooLarge, CodeUnsupportedMediaType,
	CodeInvalidArguments, CodeToolError, CodeToolTrapped, CodeToolBadOutput, CodeToolMemory, CodeToolStack, CodeToolFuel, CodeToolTimeout,
	CodeToolDisabled, CodeToolNotGranted, CodeOverloaded, CodeNotReady, CodeCancelled, CodeInternal}

// Codes returns all codes of the service.
func Codes() []Code { return slices.Clone(codes[:]) }

// LevelOf returns at which level the log tells that a request or a call ended with an error. LevelWarn and LevelError are what an
// operator should look at: a tool that broke or met a limit, a server that has no room, a fault of the service. What is a client's own
// doing, or was the operator's decision, is LevelInfo.
func LevelOf(e *Error) slog.Level {
	switch e.Code {
	case CodeInternal:
		return slog.LevelError
	case CodeToolTrapped, CodeToolBadOutput, CodeToolMemory, CodeToolStack, CodeToolFuel, CodeToolTimeout, CodeOverloaded:
		return slog.LevelWarn
	case CodeToolError:
		if e.Status >= 500 || e.Err != nil { // it could not do its work, or what it said of that was not well-formed
			return slog.LevelWarn
		}
	}
	return slog.LevelInfo
}

// AsError returns the service's error for any error of a call with ctx or of a request: the *Error that err is or wraps, if its code is
// one of the service's; what the end of ctx means, if err is that; or else one with CodeInternal and err as its cause. Where that is
// CodeCancelled, and who ended ctx gave an *Error as the cause, it has the words of that. err must not
// be nil.
func AsError(ctx context.Context, err error) *Error {
	e := asError(ctx, err)
	if e.Code != CodeCancelled {
		return e
	}
	if cause, ok := errors.AsType[*Error](context.Cause(ctx)); ok && cause.Code == CodeCancelled {
		return &Error{Code: CodeCancelled, Message: cause.Message, Err: e.Err}
	}
	return e
}

func asError(ctx context.Context, err error) *Error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && e == nil:
		err = errors.New("the error is a nil *wasmtools.Error")
	case ok && slices.Contains(codes[:], e.Code):
		return e
	case ok:
		err = fmt.Errorf("unknown code %q: %w", text.Clip(string(e.Code), 256), err)
	case ctx.Err() == nil:
	case errors.Is(err, context.Canceled): // a Go function may hand on what its context told it
		return &Error{Code: CodeCancelled, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: CodeToolTimeout, Err: err}
	}
	return &Error{Code: CodeInternal, Err: err}
}
