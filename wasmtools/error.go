package wasmtools

import (
	"encoding/json"

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
	CodeToolChanged          Code = "tool_changed"
	CodeToolDisabled         Code = "tool_disabled"
	CodeToolNotGranted       Code = "tool_not_granted"
	CodeRateLimited          Code = "rate_limited"
	CodeOverloaded           Code = "overloaded"
	CodeNotReady             Code = "not_ready"
	CodeCancelled            Code = "cancelled"
	CodeInternal             Code = "internal"
)

// An Error is a failure that a client may learn about.
type Error struct {
	// Code is why.
	Code Code
	// Message is a sentence for the client; it is the "detail" of the answer unless there are Violations.
	Message string
	// Status is the HTTP status that a tool asked for (tool_error only), 400 to 599, or 0 for 400.
	Status int
	// ToolCode and Data are what the tool said about its own failure (tool_error only); either may be empty.
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
