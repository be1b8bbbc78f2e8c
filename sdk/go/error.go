package toolsrv

import (
	"encoding/json"
	"strings"

	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// An Error fails a call with more than a message. Any other error that a tool returns counts as an Error with its text
// as the message. If another error wraps an Error, the message is the whole text, with the code, status and data of the
// Error.
type Error struct {
	// Code is a stable word of the tool's own for programs to act on, such as "division_by_zero", or empty. It has at
	// most 128 bytes.
	Code string
	// Message is a sentence for the client: what is wrong, where, and what to do. Clients see only 8 KiB of a longer one.
	Message string
	// Status is the HTTP status, 400 to 599, or 0 for 400. Any other value is the tool's fault, and gives 500.
	Status int
	// Data is any further data that JSON can express, or nil. The host accepts 64 KiB of JSON for the whole error.
	Data any
}

// Error returns the message, or the code if there is no message. A nil *Error that was returned as an error fails
// the call like an empty one.
func (e *Error) Error() string {
	if e == nil {
		return "the tool failed"
	}
	if e.Message != "" {
		return e.Message
	}
	if e.Code != "" {
		return e.Code
	}
	return "the tool failed"
}

// A Failure says why the host did not do what a tool asked for: a request to another server, a key's value, a secret, another tool.
// A tool may look at it ([AsType]) and go on, or return it: clients then get its code and message, with status 502.
type Failure struct {
	// Code is a stable word: "not_granted", "invalid", "too_large", "limit", "unavailable", "timeout", and those that the function's
	// documentation names.
	Code string
	// Message says what is wrong, and what to do.
	Message string
	// ToolCode and Data come from the error of another tool, if one was called. Data is JSON.
	ToolCode string
	Data     json.RawMessage
}

// Error returns the message, or the code if there is no message.
func (f *Failure) Error() string {
	switch {
	case f == nil:
		return "the host failed"
	case f.Message == "":
		return f.Code
	}
	return f.Message
}

// statusFailure is the status of a call that fails by a Failure: what the tool depends on is at fault, not who calls it.
const statusFailure = 502

// AsError returns what a client sees of err, which is not nil: the [*Error] that it wraps, with the whole text of err as the message; or an Error
// made from the [*Failure] that it wraps; or an Error with only the message.
func AsError(err error) *Error {
	out := &Error{}
	if e, ok := AsType[*Error](err); ok && e != nil {
		*out = *e
	} else if f, ok := AsType[*Failure](err); ok && f != nil {
		out.Code, out.Status = f.Code, statusFailure
	}
	out.Message = err.Error()
	if out.Message == "" {
		out.Message = out.Error()
	}
	return out
}

// AsType returns the first error that err is or wraps and whose type is E, and whether there is one. It finds what [errors.As] finds,
// without reflection: a program that uses both errors.As and encoding/json panics when TinyGo up to
// 0.40.1 has compiled it ("reflect: unimplemented: AssignableTo with interface"). From Go 1.26 on, package errors has a function with this name that does the same.
func AsType[E error](err error) (E, bool) {
	for err != nil {
		if found, ok := err.(E); ok {
			return found, true
		}
		if x, ok := err.(interface{ As(any) bool }); ok {
			var found E
			if x.As(&found) {
				return found, true
			}
		}
		switch x := err.(type) {
		case interface{ Unwrap() error }:
			err = x.Unwrap()
		case interface{ Unwrap() []error }:
			for _, wrapped := range x.Unwrap() {
				if found, ok := AsType[E](wrapped); ok {
					return found, true
				}
			}
			err = nil
		default:
			err = nil
		}
	}
	var none E
	return none, false
}

// maxMessage is how much of a message is sent, in bytes: quoted as JSON it still fits into what the host takes.
const maxMessage = 8 << 10

// MarshalJSON writes the error as the host reads it. It fails if JSON can't express Data.
func (e *Error) MarshalJSON() ([]byte, error) {
	message := e.Error()
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return typed.Encode(struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Status  int    `json:"status,omitempty"`
		Data    any    `json:"data,omitempty"`
	}{message, e.Code, e.Status, e.Data})
}
