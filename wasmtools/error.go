package wasmtools

import "github.com/toolsrv/toolsrv/wasmtools/failure"

// A Code tells clients, in a stable word, why a request failed.
type Code = failure.Code

// The codes of the service. Package openapi holds the one table from code to HTTP status.
const (
	CodeUnauthorized         Code = "unauthorized"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeRequestTimeout       Code = "request_timeout"
	CodeInputTooLarge        Code = "input_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeInvalidArguments     Code = failure.InvalidArguments
	CodeToolError            Code = "tool_error"
	CodeToolTrapped          Code = "tool_trapped"
	CodeToolBadOutput        Code = "tool_bad_output"
	CodeToolMemory           Code = "tool_memory"
	CodeToolStack            Code = "tool_stack"
	CodeToolFuel             Code = "tool_fuel"
	CodeToolTimeout          Code = "tool_timeout"
	CodeToolDisabled         Code = "tool_disabled"
	CodeOverloaded           Code = "overloaded"
	CodeNotReady             Code = "not_ready"
	CodeCancelled            Code = "cancelled"
	CodeInternal             Code = "internal"
)

// An Error is a failure that a client may be told of.
type Error = failure.Error

// A Violation is one way in which arguments do not fit their schema, in the shape that FastAPI's clients read.
type Violation = failure.Violation
