package toolsrv

import "errors"

// An Error fails a call with more than a message. Any other error that a tool returns counts as one with that message
// and nothing else; an Error that another error wraps gives its code, status and data to the whole message.
type Error struct {
	// Code is a stable word of the tool's own for programs to act on, such as "division_by_zero", or empty.
	Code string
	// Message is a sentence for the client: what is wrong, where, and what to do.
	Message string
	// Status is the HTTP status, 400 to 599, or 0 for 400. Any other is the tool's fault and answered with 500.
	Status int
	// Data is anything more, JSON can express it, or nil.
	Data any
}

// Error returns the message, or the code where there is no message.
func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	if e.Code != "" {
		return e.Code
	}
	return "the tool failed"
}

// AsError returns what a client sees of err, which is not nil: the [*Error] in it with the message of the whole, or one
// with the message only.
func AsError(err error) *Error {
	out := &Error{}
	var e *Error
	if errors.As(err, &e) && e != nil {
		*out = *e
	}
	out.Message = err.Error()
	if out.Message == "" {
		out.Message = out.Error()
	}
	return out
}

// MarshalJSON writes the error as the host reads it. It fails where JSON can't express Data.
func (e *Error) MarshalJSON() ([]byte, error) {
	return encode(struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Status  int    `json:"status,omitempty"`
		Data    any    `json:"data,omitempty"`
	}{e.Error(), e.Code, e.Status, e.Data})
}
